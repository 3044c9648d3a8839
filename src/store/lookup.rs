//! Looking credentials up, by id or by certificate, before the tenant is known: gathered, so that a flood of unknown ones
//! costs few statements.

use std::collections::HashMap;

use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use super::batch::BatchStatement;
use super::credential::{Credential, RoleName};
use super::rows;
use super::tenant_scope::TenantScope;
use crate::protocol::id::{CredentialId, OperationId};

#[derive(Debug)]
pub struct LookupRow<K> {
    pub operation: OperationId,
    pub by: K,
}

struct Found {
    operation: Uuid,
    tenant_id: String,
    credential_id: String,
    role: String,
    bound_id: Option<String>,
    secret_hash: Option<Vec<u8>>,
    thumbprint: Option<Vec<u8>>,
    expires_at: Option<OffsetDateTime>,
    revoked: bool,
}

impl TryFrom<Found> for Credential {
    type Error = sqlx::Error;

    fn try_from(found: Found) -> Result<Self, sqlx::Error> {
        Ok(Self {
            tenant: rows::id(&found.tenant_id)?,
            id: rows::id(&found.credential_id)?,
            role: RoleName::parse(&found.role).ok_or_else(|| rows::foreign("role"))?,
            bound_id: found.bound_id,
            secret_hash: found.secret_hash.and_then(|hash| hash.try_into().ok()),
            thumbprint: found.thumbprint.and_then(|print| print.try_into().ok()),
            expires_at: found.expires_at.map(Into::into),
            revoked: found.revoked,
        })
    }
}

fn sorted<K>(
    rows: &[LookupRow<K>],
    found: Vec<Found>,
) -> Result<Vec<Option<Credential>>, sqlx::Error> {
    let mut credentials = found
        .into_iter()
        .map(|found| Ok((found.operation, Credential::try_from(found)?)))
        .collect::<Result<HashMap<_, _>, sqlx::Error>>()?;
    Ok(rows
        .iter()
        .map(|row| credentials.remove(&row.operation.0))
        .collect())
}

pub struct ReadCredentials;

impl BatchStatement for ReadCredentials {
    const NAME: &'static str = "read_credential";
    type Row = LookupRow<CredentialId>;
    type Fact = Option<Credential>;

    fn tenant_scope(_: &[Self::Row]) -> TenantScope<'_> {
        // Whose a credential is, is what is asked.
        TenantScope::All
    }

    fn conflict_keys(_: &Self::Row) -> Vec<String> {
        Vec::new()
    }

    fn bytes(_: &Self::Row) -> usize {
        256
    }

    async fn run(
        &self,
        connection: &mut PgConnection,
        rows: &[Self::Row],
    ) -> Result<Vec<Option<Credential>>, sqlx::Error> {
        let found = sqlx::query_as!(
            Found,
            r#"
            select i.operation_id as "operation!", c.tenant_id, c.credential_id, c.role, c.bound_id, c.secret_hash,
                   c.thumbprint, c.expires_at, c.revoked_at is not null or t.disabled_at is not null as "revoked!"
              from unnest($1::uuid[], $2::text[]) as i (operation_id, credential_id)
              join credentials c on c.credential_id = i.credential_id
              join tenants t on t.tenant_id = c.tenant_id
            "#,
            &rows.iter().map(|row| row.operation.0).collect::<Vec<Uuid>>(),
            &rows::texts(rows, |row| row.by.as_str()) as _,
        )
        .fetch_all(connection)
        .await?;
        sorted(rows, found)
    }
}

/// The query that reads credentials by the thumbprint of a certificate.
pub struct ReadCertificates;

impl BatchStatement for ReadCertificates {
    const NAME: &'static str = "read_certificate";
    type Row = LookupRow<[u8; 32]>;
    type Fact = Option<Credential>;

    fn tenant_scope(_: &[Self::Row]) -> TenantScope<'_> {
        // Whose a certificate is, is what is asked.
        TenantScope::All
    }

    fn conflict_keys(_: &Self::Row) -> Vec<String> {
        Vec::new()
    }

    fn bytes(_: &Self::Row) -> usize {
        256
    }

    async fn run(
        &self,
        connection: &mut PgConnection,
        rows: &[Self::Row],
    ) -> Result<Vec<Option<Credential>>, sqlx::Error> {
        let found = sqlx::query_as!(
            Found,
            r#"
            select i.operation_id as "operation!", c.tenant_id, c.credential_id, c.role, c.bound_id, c.secret_hash,
                   c.thumbprint, c.expires_at, c.revoked_at is not null or t.disabled_at is not null as "revoked!"
              from unnest($1::uuid[], $2::bytea[]) as i (operation_id, thumbprint)
              join credentials c on c.thumbprint = i.thumbprint and c.kind = 'certificate'
              join tenants t on t.tenant_id = c.tenant_id
            "#,
            &rows.iter().map(|row| row.operation.0).collect::<Vec<Uuid>>(),
            &rows.iter().map(|row| row.by.as_slice()).collect::<Vec<_>>() as _,
        )
        .fetch_all(connection)
        .await?;
        sorted(rows, found)
    }
}
