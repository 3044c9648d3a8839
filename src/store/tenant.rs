//! Tells which tenants exist and are not disabled, for tokens that name one; batched for many callers at once.

use std::collections::HashSet;

use sqlx::PgConnection;

use super::CredentialStore;
use super::batch::{BatchResult, BatchStatement};
use super::error::Result;
use super::tenant_scope::TenantScope;
use crate::protocol::id::TenantId;

pub struct ReadTenants;

impl BatchStatement for ReadTenants {
    const NAME: &'static str = "read_tenant";
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

impl CredentialStore {
    /// Whether a tenant exists and is not disabled.
    pub async fn tenant_is_active(&self, tenant: &TenantId) -> Result<bool> {
        self.tenants.run(tenant.clone()).await
    }

    /// Those of the tenants that exist and are not disabled.
    pub async fn active_tenants(&self, tenants: &HashSet<TenantId>) -> Result<HashSet<TenantId>> {
        let scope = TenantScope::of(tenants);
        let mut lease = self.database.background.lease(scope).await?;
        let found = active(lease.connection()?, tenants.iter()).await;
        Ok(lease.settle(found)?)
    }
}
