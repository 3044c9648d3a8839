//! The interface of a statement that runs in batches.

use std::future::Future;
use std::time::Duration;

use sqlx::PgConnection;

use crate::store::database::tenant_scope::TenantScope;

/// One fact per row, in the order of the rows.
pub type BatchResult<S> = sqlx::Result<Vec<<S as BatchStatement>::Fact>>;

/// A statement that takes many rows at once.
pub trait BatchStatement: Send + Sync + 'static {
    const NAME: &'static str;
    /// Whether it only reads: then its batches do not wait for those that write.
    const IS_READ: bool = false;
    type Row: Send + Sync + 'static;
    type Fact: Send + 'static;

    fn tenant_scope(rows: &[Self::Row]) -> TenantScope<'_>;

    /// The keys that must not occur twice in a batch, because the statement would not see one row's
    /// work for the other.
    fn conflict_keys(_: &Self::Row) -> Vec<String> {
        Vec::new()
    }

    /// Roughly how many bytes the row sends or fetches.
    fn bytes(_: &Self::Row) -> usize {
        256
    }

    /// How many rows of tables it writes, compared with others of its kind.
    fn weight(_: &Self::Row) -> usize {
        1
    }

    /// Whether another transaction had locked the row, so that it is to be tried again.
    fn is_busy(_: &Self::Fact) -> bool {
        false
    }

    /// How long a busy row is tried again before it gets its fact as it is.
    fn patience(lock_timeout: Duration) -> Duration {
        lock_timeout
    }

    fn run(
        &self,
        connection: &mut PgConnection,
        rows: &[Self::Row],
    ) -> impl Future<Output = BatchResult<Self>> + Send;
}
