//! Reads credentials by id or certificate, before the tenant is known; signing keys; and which
//! tenants exist and are not disabled. Batched, so that a flood of unknown ones costs few
//! statements.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use sqlx::PgConnection;
use tokio_util::task::TaskTracker;

use crate::config::Auth;
use crate::protocol::credential::{CredentialProfile, RoleName};
use crate::protocol::decision::SigningKey;
use crate::protocol::id::{ApproverId, CredentialId, TenantId};
use crate::protocol::timestamp::Timestamp;
use crate::store::database::batch::StatementBatcher;
use crate::store::database::batch_statement::{BatchResult, BatchStatement};
use crate::store::database::pools::Database;
use crate::store::database::rows::column;
use crate::store::database::tenant_scope::TenantScope;
use crate::store::error::Result;
use crate::store::identity::credential::Credential;
use crate::store::identity::read_keys::{KeysRow, ReadKeys};
use crate::store::identity::read_revocations::ReadRevocations;

pub struct ReadCredentials;

impl BatchStatement for ReadCredentials {
    const NAME: &'static str = "read_credential";
    const IS_READ: bool = true;
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
                   c.bound_id, c.profile as "profile: CredentialProfile",
                   case when octet_length(c.secret_hash) = 32 then c.secret_hash end as "secret_hash: [u8; 32]",
                   case when octet_length(c.thumbprint) = 32 then c.thumbprint end as "thumbprint: [u8; 32]",
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
    const IS_READ: bool = true;
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
                   c.bound_id, c.profile as "profile: CredentialProfile",
                   case when octet_length(c.secret_hash) = 32 then c.secret_hash end as "secret_hash: [u8; 32]",
                   case when octet_length(c.thumbprint) = 32 then c.thumbprint end as "thumbprint: [u8; 32]",
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

pub struct ReadTenants;

impl BatchStatement for ReadTenants {
    const NAME: &'static str = "read_tenant";
    const IS_READ: bool = true;
    type Row = TenantId;
    type Fact = bool;

    fn tenant_scope(rows: &[TenantId]) -> TenantScope<'_> {
        TenantScope::of(rows.iter())
    }

    async fn run(&self, connection: &mut PgConnection, rows: &[Self::Row]) -> BatchResult<Self> {
        let active = active(connection, rows.iter()).await?;
        Ok(rows.iter().map(|tenant| active.contains(tenant)).collect())
    }
}

/// Those of the tenants that exist and are not disabled.
async fn active<'a>(
    connection: &mut PgConnection,
    tenants: impl Iterator<Item = &'a TenantId>,
) -> sqlx::Result<HashSet<TenantId>> {
    let found = sqlx::query_scalar!(
        r#"select tenant_id as "id: TenantId" from tenants where tenant_id = any($1) and disabled_at is null"#,
        tenants.collect::<Vec<_>>() as _,
    )
    .fetch_all(connection)
    .await?;
    Ok(found.into_iter().collect())
}

pub struct CredentialStore {
    pub(in crate::store) database: Arc<Database>,
    keys: StatementBatcher<ReadKeys>,
    pub credentials: StatementBatcher<ReadCredentials>,
    pub certificates: StatementBatcher<ReadCertificates>,
    /// Whether a tenant exists and is not disabled.
    pub tenants: StatementBatcher<ReadTenants>,
    /// The tokens that a tenant has revoked.
    pub revocations: StatementBatcher<ReadRevocations>,
    /// How far the clock of a tokens' issuer may be ahead.
    pub token_leeway: Duration,
}

impl CredentialStore {
    pub(in crate::store) fn new(
        database: &Arc<Database>,
        auth: &Auth,
        tasks: &TaskTracker,
    ) -> Self {
        Self {
            keys: database.batch(ReadKeys, tasks),
            credentials: database.batch(ReadCredentials, tasks),
            certificates: database.batch(ReadCertificates, tasks),
            tenants: database.batch(ReadTenants, tasks),
            revocations: database.batch(ReadRevocations, tasks),
            token_leeway: Duration::from_secs(auth.jwt_leeway_seconds),
            database: Arc::clone(database),
        }
    }

    /// Reads an approver's signing keys, revoked ones included.
    pub async fn keys_of(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
    ) -> Result<Vec<SigningKey>> {
        let (tenant, approver) = (tenant.clone(), approver.clone());
        self.keys.run(KeysRow { tenant, approver }).await
    }

    /// Those of the tenants that exist and are not disabled.
    pub async fn active_tenants(&self, tenants: &HashSet<TenantId>) -> Result<HashSet<TenantId>> {
        let scope = TenantScope::of(tenants);
        let mut lease = self.database.background.lease(scope).await?;
        let found = active(lease.connection()?, tenants.iter());
        let found = self.database.background.within(found).await;
        Ok(lease.settle(found)?)
    }
}
