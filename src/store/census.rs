//! Counting what is pending. Bounded, however long the backlog: past a thousand nobody needs the exact figure, and
//! the count must not cost more the worse things are.

use super::Store;
use super::error::StoreError;
use super::tenant_scope::TenantScope;

/// Most rows that are counted, of an index that holds nothing but pending exchanges.
const MOST: i64 = 1_000;

/// How many exchanges there are, in the whole cluster.
#[derive(Debug, Clone, Copy)]
pub struct Census {
    pub pending: i64,
    /// Past their time and not closed yet.
    pub overdue: i64,
}

impl Store {
    pub async fn census(&self) -> Result<Census, StoreError> {
        // In the index's order, or the planner gathers all of it before it counts to the limit; and by a clock that is read
        // once, since one that moves is no bound for an index.
        // All: an operator asks for the cluster, and learns no more than two numbers.
        let mut lease = self.background.lease(TenantScope::All).await?;
        let census = sqlx::query_as!(
            Census,
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
            self.clock.offset(),
            MOST,
        )
        .fetch_one(lease.connection()?)
        .await;
        Ok(lease.settle(census)?)
    }
}
