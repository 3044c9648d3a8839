//! Deletes rows that are past their retention period, in small batches. Rows that another
//! transaction has locked are left for the next run.

pub mod due;
mod exchange;
mod global;
pub(in crate::store) mod lease;
mod rules;
mod tenant;

use self::rules::BATCH;
pub use self::rules::{DeletedBatch, GlobalRule, RetentionPeriods, RetentionRule, TenantRule};
use super::Database;
use super::error::Result;
use crate::protocol::cursor::PagePosition;
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::tenant_scope::TenantScope;

impl Database {
    /// Deletes one batch of expired rows, the oldest first. `after` is `last` of the previous
    /// batch.
    pub async fn delete_expired(
        &self,
        rule: RetentionRule<'_>,
        periods: &RetentionPeriods,
        after: Option<&PagePosition>,
    ) -> Result<DeletedBatch> {
        match rule {
            RetentionRule::Global(rule) => {
                let query = global::statement(rule, clock_offset(&self.clock), periods);
                // All: the sweep serves every tenant.
                let scope = TenantScope::All;
                let rows = self.background.execute(scope, query).await?;
                Ok(DeletedBatch::counted(rows, BATCH))
            }
            RetentionRule::Tenant(tenant, rule) => match rule.period(periods) {
                Some(keep) => tenant::delete(self, rule, tenant, keep, after).await,
                None => Ok(DeletedBatch::default()),
            },
        }
    }
}
