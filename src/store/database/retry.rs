//! The second try of a statement that recognises its own work.

use sqlx::postgres::PgRow;

use crate::protocol::id::TenantId;
use crate::store::database::pool::{ConnectionPool, RowQuery};
use crate::store::error::{ErrorClass, Result, classify};

impl ConnectionPool {
    /// Runs one statement and returns its first row, if any. Runs it once more after a conflict, or when the reply may have
    /// been lost. `work` is for the log.
    pub(in crate::store) async fn fetch_retried<'q, T, F>(
        &self,
        tenant: &TenantId,
        work: &'static str,
        query: impl Fn() -> RowQuery<'q, F>,
    ) -> Result<Option<T>>
    where
        T: Send + Unpin,
        F: FnMut(PgRow) -> sqlx::Result<T> + Send,
    {
        match self.fetch_settled(tenant, query()).await? {
            Err(error) if matches!(classify(&error), ErrorClass::Conflict | ErrorClass::Lost) => {
                tracing::debug!(%error, "{work} is retried");
                Ok(self.after(&error).fetch_settled(tenant, query()).await??)
            }
            found => Ok(found?),
        }
    }
}
