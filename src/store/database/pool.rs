//! The pools of connections to PostgreSQL. With row-level security, the tenants of a call are set on its connection before
//! anything else.
//!
//! Nothing waits without limit for a server that says nothing: sqlx cannot set keepalive or a timeout on its sockets, so every
//! wait for an answer has a deadline here. Past it the connection is closed, and idle ones that are most likely dead too.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use deadpool::Status;
use deadpool::managed::{self, Object};
use sqlx::Postgres;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::{Map, Query};
use tokio::time::timeout;

use crate::config;
use crate::store::database::batch_gate::BatchGates;
use crate::store::database::connect::ConnectionManager;
use crate::store::database::lease::ConnectionLease;
use crate::store::database::pulse::ServerPulse;
use crate::store::database::tenant_scope::TenantScope;
use crate::store::error::{ErrorClass, Result, StoreError, classify, is_unanswered, unanswered};
use crate::telemetry::Metrics as NodeMetrics;
use crate::telemetry::instrument::{Histogram, as_f64};

/// The time that a commit may take beyond the statement's timeout, which does not cover it; and that a retry may take which
/// follows a statement without an answer, so that the two of them do not take twice as long.
const COMMIT_GRACE: Duration = Duration::from_secs(2);

/// How often the log says that there are no connections.
const WARN_INTERVAL: Duration = Duration::from_secs(5);

/// A checked query that returns rows.
pub(in crate::store) type RowQuery<'q, F> = Map<'q, Postgres, F, PgArguments>;

#[derive(Clone)]
pub struct ConnectionPool {
    pool: managed::Pool<ConnectionManager>,
    /// Whether the tenants of a call are set on its connection.
    row_security: bool,
    /// How long a call waits for a connection.
    wait: Duration,
    /// How long a call waits for the answer to its statements.
    limit: Duration,
    /// Whether connections that were used before are closed instead of reused.
    only_new: bool,
    pulse: Arc<ServerPulse>,
    /// When the log last said why there are no connections. At first the time of creation: a node that starts with
    /// an unreachable database reports the error itself.
    warned: Arc<Mutex<Instant>>,
    gates: BatchGates,
    acquire_time: Histogram,
    metrics: Arc<NodeMetrics>,
}

impl ConnectionPool {
    /// A pool of at most `size` connections, none of them open yet.
    pub fn new(
        name: &'static str,
        metrics: &Arc<NodeMetrics>,
        config: &config::Database,
        size: usize,
    ) -> Result<Self> {
        let manager = ConnectionManager::new(config, size)?;
        let (pulse, handover) = (Arc::clone(&manager.pulse), Arc::clone(manager.handover()));
        let pool = managed::Pool::builder(manager)
            .max_size(size)
            // The connection returned last is reused first: a few warm ones do better than many cold ones.
            .queue_mode(managed::QueueMode::Lifo)
            .runtime(deadpool::Runtime::Tokio1)
            .build()
            .map_err(|error| StoreError::Fault(error.to_string()))?;
        handover.belong_to(pool.weak());
        observe(&pool, name, metrics);
        Ok(Self {
            pool,
            row_security: config.row_security,
            wait: Duration::from_millis(config.acquire_timeout_ms),
            limit: Duration::from_millis(config.statement_timeout_ms) + COMMIT_GRACE,
            only_new: false,
            pulse,
            warned: Arc::new(Mutex::new(Instant::now())),
            gates: BatchGates::default(),
            acquire_time: metrics.pool_acquire.of([name]),
            metrics: Arc::clone(metrics),
        })
    }

    /// The same pool for the retry of a call that failed so. After a lost connection it gives only new ones. If the server
    /// did not answer in time, the retry has less time: a call takes at most its two waits for a connection, the limit of a
    /// statement, and the allowance for a commit.
    #[must_use]
    pub fn after(&self, error: &sqlx::Error) -> Self {
        Self {
            only_new: self.distrusts(error),
            limit: if is_unanswered(error) {
                COMMIT_GRACE
            } else {
                self.limit
            },
            ..self.clone()
        }
    }

    /// Whether the other connections are most likely as dead as the one that failed so.
    fn distrusts(&self, error: &sqlx::Error) -> bool {
        classify(error) == ErrorClass::Lost && !(is_unanswered(error) && self.pulse.is_alive())
    }

    /// Takes a connection for a call about these tenants.
    pub async fn lease<'t>(&self, scope: impl Into<TenantScope<'t>>) -> Result<ConnectionLease> {
        let tenants = self.row_security.then(|| scope.into().setting());
        let begun = Instant::now();
        let found = timeout(self.wait, self.tested(tenants.as_deref())).await;
        self.acquire_time.took(begun.elapsed());
        let found =
            found.unwrap_or_else(|_| Err(StoreError::Unavailable("no connection in time".into())));
        found.inspect_err(|error| self.warn(error))
    }

    /// A connection that answers, with these tenants set.
    async fn tested(&self, tenants: Option<&str>) -> Result<ConnectionLease> {
        let lease = self.take(self.only_new).await?;
        // Half of the time, so that there is some left for a new connection.
        match lease.prepare(tenants, self.wait / 2).await {
            Err(error) if classify(&error) == ErrorClass::Lost => {
                // Nothing of the call has been sent yet.
                tracing::debug!(%error, "an idle connection was dead");
                let only_new = self.only_new || self.distrusts(&error);
                let lease = self.take(only_new).await?;
                Ok(lease.prepare(tenants, self.wait).await?)
            }
            lease => Ok(lease?),
        }
    }

    async fn take(&self, only_new: bool) -> Result<ConnectionLease> {
        loop {
            let object = match self.pool.get().await {
                Ok(object) => object,
                Err(managed::PoolError::Backend(error)) => return Err(error),
                Err(error) => return Err(StoreError::Unavailable(error.to_string().into())),
            };
            if only_new && Object::metrics(&object).recycle_count > 0 {
                drop(Object::take(object));
                continue;
            }
            return Ok(ConnectionLease::new(object));
        }
    }

    /// Waits for the answer to the statements of a call, but not for longer than the server should take.
    pub async fn within<T>(
        &self,
        statements: impl Future<Output = sqlx::Result<T>>,
    ) -> sqlx::Result<T> {
        let Ok(answer) = timeout(self.limit, statements).await else {
            tracing::warn!("a statement was not answered in time; its connection is closed");
            return Err(unanswered());
        };
        if match &answer {
            Ok(_) => true,
            Err(error) => {
                matches!(error, sqlx::Error::Database(_)) && classify(error) != ErrorClass::Lost
            }
        } {
            self.pulse.beat();
        }
        answer
    }

    /// Runs one statement about these tenants and returns its rows.
    pub async fn fetch_all<'t, T: Send + Unpin>(
        &self,
        scope: impl Into<TenantScope<'t>>,
        query: RowQuery<'_, impl FnMut(PgRow) -> sqlx::Result<T> + Send>,
    ) -> Result<Vec<T>> {
        let mut lease = self.lease(scope).await?;
        let found = self.within(query.fetch_all(lease.connection()?)).await;
        Ok(lease.settle(found)?)
    }

    /// Runs one statement about these tenants and returns its first row, if any.
    pub async fn fetch_optional<'t, T: Send + Unpin>(
        &self,
        scope: impl Into<TenantScope<'t>>,
        query: RowQuery<'_, impl FnMut(PgRow) -> sqlx::Result<T> + Send>,
    ) -> Result<Option<T>> {
        Ok(self.fetch_settled(scope, query).await??)
    }

    /// The same with the statement's own error, for a caller that may try again.
    pub(in crate::store) async fn fetch_settled<'t, T: Send + Unpin>(
        &self,
        scope: impl Into<TenantScope<'t>>,
        query: RowQuery<'_, impl FnMut(PgRow) -> sqlx::Result<T> + Send>,
    ) -> Result<sqlx::Result<Option<T>>> {
        let mut lease = self.lease(scope).await?;
        let found = self.within(query.fetch_optional(lease.connection()?)).await;
        Ok(lease.settle(found))
    }

    /// Runs one statement about these tenants and returns its row.
    pub async fn fetch_one<'t, T: Send + Unpin>(
        &self,
        scope: impl Into<TenantScope<'t>>,
        query: RowQuery<'_, impl FnMut(PgRow) -> sqlx::Result<T> + Send>,
    ) -> Result<T> {
        let found = self.fetch_optional(scope, query).await?;
        found.ok_or_else(|| sqlx::Error::RowNotFound.into())
    }

    /// Runs one statement about these tenants and returns how many rows it wrote.
    pub async fn execute<'t>(
        &self,
        scope: impl Into<TenantScope<'t>>,
        query: Query<'_, Postgres, PgArguments>,
    ) -> Result<u64> {
        let mut lease = self.lease(scope).await?;
        let done = self.within(query.execute(lease.connection()?)).await;
        Ok(lease.settle(done)?.rows_affected())
    }

    /// Logs why there are no connections, but not for every request.
    fn warn(&self, error: &StoreError) {
        let mut last = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() > WARN_INTERVAL {
            *last = Instant::now();
            tracing::warn!(%error, "cannot get a connection to the database");
        }
    }

    /// Where the batches on this pool wait for each other.
    pub(in crate::store) fn gates(&self) -> &BatchGates {
        &self.gates
    }

    pub fn row_security(&self) -> bool {
        self.row_security
    }

    /// Runs a check of the server within `limit`. If it fails, the idle connections are closed, and the next check gets a new one.
    /// `None` if it did not end while the server answers other calls: it is busy.
    pub async fn check<T>(
        &self,
        limit: Duration,
        check: impl Future<Output = Result<T>>,
    ) -> Result<Option<T>> {
        let failed = match timeout(limit, check).await {
            Ok(Ok(found)) => return Ok(Some(found)),
            Err(_) if self.is_busy() => return Ok(None),
            Ok(Err(error)) => error,
            Err(_) => unanswered().into(),
        };
        self.pool.retain(|_, _| false);
        Err(failed)
    }

    fn is_busy(&self) -> bool {
        let Status {
            available, size, ..
        } = self.pool.status();
        size > available && self.pulse.is_alive()
    }

    /// Open connections, and how many of them are idle.
    pub fn usage(&self) -> (usize, usize) {
        let status = self.pool.status();
        (status.size, status.available)
    }

    pub fn metrics(&self) -> &Arc<NodeMetrics> {
        &self.metrics
    }
}

/// Registers the gauges of a pool; they end with it.
fn observe(pool: &managed::Pool<ConnectionManager>, name: &'static str, metrics: &NodeMetrics) {
    let read = |read: fn(Status) -> usize| {
        let pool = pool.weak();
        move || pool.upgrade().map(|pool| as_f64(read(pool.status())))
    };
    let used = |status: Status| status.size.saturating_sub(status.available);
    let connections = &metrics.pool_connections;
    connections.observe([name, "idle"], read(|status| status.available));
    connections.observe([name, "used"], read(used));
    metrics
        .pool_limit
        .observe([name], read(|status| status.max_size));
    metrics
        .pool_waiting
        .observe([name], read(|status| status.waiting));
}
