//! A connection for one call. It goes back to its pool only when the call has ended; one whose future was dropped half-way is
//! closed, because sqlx could otherwise reuse it in the middle of a transaction.

use std::time::{Duration, Instant};

use deadpool::managed::Object;
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use tokio::time::timeout;

use crate::store::database::connect::{ConnectionManager, PooledConnection};
use crate::store::database::pulse::PULSE_LIFETIME;
use crate::store::error::{ErrorClass, Result, classify, is_unanswered, unanswered};

/// How long a connection may be idle before it is tested.
const PING_INTERVAL: Duration = Duration::from_secs(1);

/// A connection taken from the pool for one call.
pub struct ConnectionLease {
    object: Option<Object<ConnectionManager>>,
}

impl ConnectionLease {
    pub(in crate::store) fn new(object: Object<ConnectionManager>) -> Self {
        Self {
            object: Some(object),
        }
    }

    fn pooled(&mut self) -> sqlx::Result<&mut PooledConnection> {
        self.object.as_deref_mut().ok_or(sqlx::Error::PoolClosed)
    }

    pub fn connection(&mut self) -> sqlx::Result<&mut PgConnection> {
        self.pooled().map(|pooled| &mut pooled.connection)
    }

    /// Sets the tenants of the call, unless they are set already, and tests a connection that was idle. Part of the call: if
    /// dropped here, the connection is closed.
    pub(in crate::store) async fn prepare(
        mut self,
        tenants: Option<&str>,
        limit: Duration,
    ) -> sqlx::Result<Self> {
        let pooled = self.pooled()?;
        let connection = &mut pooled.connection;
        let done = match tenants {
            Some(tenants) if pooled.tenants.as_deref() != Some(tenants) => {
                pooled.tenants = None;
                let set = sqlx::query_scalar!(
                    "select set_config('countersign.tenants', $1, false)",
                    tenants
                );
                let set = timeout(limit, set.fetch_one(connection)).await;
                set.unwrap_or_else(|_| Err(unanswered())).map(|_| {
                    pooled.tenants = Some(tenants.to_owned());
                })
            }
            // An idle connection may be dead, for instance after the server restarted. A ping costs a round trip, so one
            // that was just used is not tested.
            _ if pooled.answered.elapsed() > PING_INTERVAL => {
                let pong = timeout(limit, connection.ping()).await;
                pong.unwrap_or_else(|_| Err(unanswered()))
            }
            _ => Ok(()),
        };
        match done {
            Ok(()) => Ok(self),
            Err(error) => self.settle(Err(error)),
        }
    }

    /// Ends the call: a usable connection goes back to the pool, another is closed.
    pub fn settle<T>(mut self, result: Result<T, sqlx::Error>) -> sqlx::Result<T> {
        let reusable = match &result {
            Ok(_) => true,
            // The server answered, so the statement has ended and is rolled back.
            Err(error @ sqlx::Error::Database(_)) => classify(error) != ErrorClass::Lost,
            Err(error) => matches!(error, sqlx::Error::RowNotFound),
        };
        if reusable {
            if let Some(mut object) = self.object.take() {
                object.answered = Instant::now();
            }
        } else if let Err(error) = &result
            && classify(error) == ErrorClass::Lost
        {
            self.close_idle(error);
        }
        result
    }

    /// The same for several statements: a failure may have left their transaction open, so the connection is closed.
    pub fn settle_transaction<T>(self, result: sqlx::Result<T>) -> sqlx::Result<T> {
        match result {
            Ok(_) => self.settle(result),
            Err(_) => result,
        }
    }

    /// Closes the pool's idle connections: where one broke, or is silent, or leads to a standby, the others most likely do too, and the
    /// next call would only get the next dead one. A server that answers other calls is slow; those that it has just answered stay.
    fn close_idle(&self, error: &sqlx::Error) {
        let Some(pool) = self.object.as_ref().and_then(Object::pool) else {
            return;
        };
        let is_slow = is_unanswered(error) && pool.manager().pulse.is_alive();
        pool.retain(|idle, _| is_slow && idle.answered.elapsed() < PULSE_LIFETIME);
    }
}

impl Drop for ConnectionLease {
    fn drop(&mut self) {
        // The call was cancelled or failed: taken out of the pool, the connection closes.
        if let Some(object) = self.object.take() {
            drop(Object::take(object));
        }
    }
}
