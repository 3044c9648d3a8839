//! The second try of a call that recognises its own work.

use super::error::{ErrorClass, classify};
use super::pool::ConnectionPool;

/// Allows a call one retry: after a conflict, or when the reply may have been lost.
pub(super) struct RetryOnce {
    pool: ConnectionPool,
    used: bool,
}

impl RetryOnce {
    pub fn new(pool: &ConnectionPool) -> Self {
        Self {
            pool: pool.clone(),
            used: false,
        }
    }

    /// The pool for the next try.
    pub fn pool(&self) -> &ConnectionPool {
        &self.pool
    }

    pub fn allows(&mut self, error: &sqlx::Error) -> bool {
        let used = std::mem::replace(&mut self.used, true);
        self.pool = self.pool.after(error);
        !used && matches!(classify(error), ErrorClass::Conflict | ErrorClass::Lost)
    }
}
