//! Serialises the statements that give an approver keys, or that count what it has. Two first keys at once would both find
//! none, and a decision without a signature asks whether there is one. They are rare enough to take turns.

use sqlx::Connection as _;
use sqlx::postgres::PgRow;

use crate::protocol::id::{ApproverId, TenantId};
use crate::store::database::pool::{ConnectionPool, RowQuery};
use crate::store::error::Result;

impl ConnectionPool {
    /// Runs one statement about an approver while no other such statement runs, and returns its row. The lock is taken by a
    /// statement of its own: the snapshot of the second one must be newer than the lock.
    pub(in crate::store) async fn fetch_one_in_turn<T: Send + Unpin>(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        query: RowQuery<'_, impl FnMut(PgRow) -> sqlx::Result<T> + Send>,
    ) -> Result<T> {
        let mut lease = self.lease(tenant).await?;
        let connection = lease.connection()?;
        let statements = async {
            let mut transaction = connection.begin().await?;
            sqlx::query!(
                "select pg_advisory_xact_lock(hashtextextended($1 || chr(10) || $2, 0))",
                tenant.as_str(),
                approver.as_str()
            )
            .execute(&mut *transaction)
            .await?;
            let found = query.fetch_one(&mut *transaction).await?;
            transaction.commit().await?;
            Ok(found)
        };
        let found = self.within(statements).await;
        Ok(lease.settle_transaction(found)?)
    }
}
