//! Reads credentials by id or certificate, before the tenant is known. Batched, so that a flood of unknown ones costs few
//! statements.

use sqlx::PgConnection;

use super::batch::{BatchResult, BatchStatement};
use super::credential::Credential;
use super::rows::column;
use super::tenant_scope::TenantScope;
use crate::protocol::credential::RoleName;
use crate::protocol::id::{CredentialId, TenantId};
use crate::protocol::timestamp::Timestamp;

pub struct ReadCredentials;

impl BatchStatement for ReadCredentials {
    const NAME: &'static str = "read_credential";
    type Row = CredentialId;
    type Fact = Option<Credential>;

    fn tenant_scope(_: &[CredentialId]) -> TenantScope<'_> {
        // The credential determines the tenant.
        TenantScope::All
    }

    async fn run(&self, connection: &mut PgConnection, rows: &[Self::Row]) -> BatchResult<Self> {
        let found = sqlx::query_as!(
            Credential,
            r#"
            select c.tenant_id as "tenant: TenantId", c.credential_id as "id: CredentialId", c.role as "role: RoleName",
                   c.bound_id, c.secret_hash as "secret_hash: [u8; 32]", c.thumbprint as "thumbprint: [u8; 32]",
                   c.expires_at as "expires_at: Timestamp",
                   c.revoked_at is not null or t.disabled_at is not null as "revoked!"
              from unnest($1::text[]) as i (credential_id)
              join credentials c on c.credential_id = i.credential_id
              join tenants t on t.tenant_id = c.tenant_id
            "#,
            column(rows, |id| id) as _,
        )
        .fetch_all(connection)
        .await?;
        let with = |id: &CredentialId| found.iter().find(|found| found.id == *id);
        Ok(column(rows, |id| with(id).cloned()))
    }
}

pub struct ReadCertificates;

impl BatchStatement for ReadCertificates {
    const NAME: &'static str = "read_certificate";
    /// The certificate's thumbprint.
    type Row = [u8; 32];
    type Fact = Option<Credential>;

    fn tenant_scope(_: &[[u8; 32]]) -> TenantScope<'_> {
        // The certificate determines the tenant.
        TenantScope::All
    }

    async fn run(&self, connection: &mut PgConnection, rows: &[Self::Row]) -> BatchResult<Self> {
        let found = sqlx::query_as!(
            Credential,
            r#"
            select c.tenant_id as "tenant: TenantId", c.credential_id as "id: CredentialId", c.role as "role: RoleName",
                   c.bound_id, c.secret_hash as "secret_hash: [u8; 32]", c.thumbprint as "thumbprint: [u8; 32]",
                   c.expires_at as "expires_at: Timestamp",
                   c.revoked_at is not null or t.disabled_at is not null as "revoked!"
              from unnest($1::bytea[]) as i (thumbprint)
              join credentials c on c.thumbprint = i.thumbprint and c.kind = 'certificate'
              join tenants t on t.tenant_id = c.tenant_id
            "#,
            rows as _,
        )
        .fetch_all(connection)
        .await?;
        let with = |thumbprint: &[u8; 32]| {
            let mut found = found.iter();
            found.find(|found| found.thumbprint.as_ref() == Some(thumbprint))
        };
        Ok(column(rows, |thumbprint| with(thumbprint).cloned()))
    }
}
