//! Whether tenants are there and not disabled, for tokens that name one. Gathered, so that a crowd costs few statements.

use std::collections::HashSet;

use sqlx::PgConnection;

use super::batch::BatchStatement;
use super::error::StoreError;
use super::tenant_scope::TenantScope;
use super::{Store, rows};
use crate::protocol::id::TenantId;

/// The query that reads whether tenants are active.
pub struct ReadTenants;

impl BatchStatement for ReadTenants {
    const NAME: &'static str = "read_tenant";
    type Row = TenantId;
    type Fact = bool;

    fn tenant_scope(rows: &[TenantId]) -> TenantScope<'_> {
        TenantScope::of(rows.iter())
    }

    fn conflict_keys(_: &TenantId) -> Vec<String> {
        Vec::new()
    }

    fn bytes(_: &TenantId) -> usize {
        128
    }

    async fn run(
        &self,
        connection: &mut PgConnection,
        rows: &[TenantId],
    ) -> Result<Vec<bool>, sqlx::Error> {
        let active = active(connection, rows.iter()).await?;
        Ok(rows.iter().map(|tenant| active.contains(tenant)).collect())
    }
}

/// Those of the tenants that are there and not disabled.
async fn active<'a>(
    connection: &mut PgConnection,
    tenants: impl Iterator<Item = &'a TenantId>,
) -> Result<HashSet<TenantId>, sqlx::Error> {
    let tenants: Vec<String> = tenants.map(|tenant| tenant.as_str().to_owned()).collect();
    let found = sqlx::query_scalar!(
        "select tenant_id from tenants where tenant_id = any($1) and disabled_at is null",
        &tenants,
    )
    .fetch_all(connection)
    .await?;
    found.iter().map(|id| rows::id(id)).collect()
}

impl Store {
    /// Whether a tenant is there and not disabled.
    pub async fn tenant_is_active(&self, tenant: &TenantId) -> Result<bool, StoreError> {
        self.tenants.run(tenant.clone()).await
    }

    /// Those of the tenants that are there and not disabled.
    pub async fn active_tenants(
        &self,
        tenants: &HashSet<TenantId>,
    ) -> Result<HashSet<TenantId>, StoreError> {
        let mut lease = self
            .background
            .lease(TenantScope::of(tenants.iter()))
            .await?;
        let found = active(lease.connection()?, tenants.iter()).await;
        Ok(lease.settle(found)?)
    }
}
