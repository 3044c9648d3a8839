//! Counts pending exchanges for the metrics. The count stops at a thousand: past that the exact figure is of no use, and a
//! long backlog must not make the count slow.

use super::ExchangeStore;
use super::error::Result;
use super::tenant_scope::TenantScope;

/// Most rows that are counted, of an index that holds nothing but pending exchanges.
const MOST: i64 = 1_000;

/// Exchanges of the whole cluster.
#[derive(Debug, Clone, Copy)]
pub struct PendingCounts {
    pub pending: i64,
    /// Past their expiry and not closed yet.
    pub overdue: i64,
}

impl ExchangeStore {
    pub async fn count_pending(&self) -> Result<PendingCounts> {
        // Ordered as the index is, or the planner would read all of it before it applies the limit.
        let query = sqlx::query_as!(
            PendingCounts,
            r#"
            select (select count(*)
                      from (select e.expires_at from exchanges e
                             where e.state = 'pendingApproval' and e.expires_at > (select clock_timestamp() + $1::interval)
                             order by e.expires_at
                             limit $2) p) as "pending!",
                   (select count(*)
                      from (select e.expires_at from exchanges e
                             where e.state = 'pendingApproval' and e.expires_at <= (select clock_timestamp() + $1::interval)
                             order by e.expires_at
                             limit $2) o) as "overdue!"
            "#,
            self.database.clock.offset(),
            MOST,
        );
        // All: an operator asks for the cluster, and learns no more than two numbers.
        let scope = TenantScope::All;
        self.database.background.fetch_one(scope, query).await
    }
}
