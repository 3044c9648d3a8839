//! Connections to PostgreSQL. A connection goes back to the pool only when its call has ended; one whose future was dropped
//! half-way is closed, because sqlx could otherwise reuse it in the middle of a transaction. With row-level security, the
//! tenants of a call are set on the connection before anything else.

use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use deadpool::Status;
use deadpool::managed::{self, Metrics, RecycleResult};
use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection, PgRow};
use sqlx::query::{Map, Query};
use sqlx::{ConnectOptions, Connection, Postgres};

use super::error::{Class, Result, StoreError, classify};
use super::tenant_scope::TenantScope;
use crate::config;
use crate::telemetry::Metrics as NodeMetrics;
use crate::telemetry::instrument::{Histogram, as_f64};

/// How long a connection may be idle before it is tested.
const PING_AFTER: Duration = Duration::from_secs(1);

/// How often the log says that there are no connections.
const WARN_EVERY: Duration = Duration::from_secs(5);

pub struct Manager {
    options: PgConnectOptions,
}

pub struct PooledConnection {
    connection: PgConnection,
    /// The tenants last set on it; `None` if that is not known.
    tenants: Option<String>,
}

impl managed::Manager for Manager {
    type Type = PooledConnection;
    type Error = sqlx::Error;

    async fn create(&self) -> sqlx::Result<PooledConnection> {
        Ok(PooledConnection {
            // Boxed, or every future that takes a connection would be six kilobytes larger.
            connection: Box::pin(PgConnection::connect_with(&self.options)).await?,
            tenants: None,
        })
    }

    async fn recycle(
        &self,
        pooled: &mut PooledConnection,
        metrics: &Metrics,
    ) -> RecycleResult<sqlx::Error> {
        // An idle connection may be dead, for instance after the server restarted. A ping costs a round trip, so one that
        // was just used is not tested.
        if metrics.last_used() > PING_AFTER {
            pooled.connection.ping().await?;
        }
        Ok(())
    }
}

/// The options of every connection; the server shows `name`.
pub(super) fn basic_options(url: &str, name: &str) -> sqlx::Result<PgConnectOptions> {
    Ok(PgConnectOptions::from_str(url)?
        .application_name(name)
        // Not needed for exact floats, and `PgBouncer` refuses settings that it does not know.
        .extra_float_digits(None)
        .disable_statement_logging())
}

/// Why there is no connection, with the server that was tried and what to do.
pub(super) fn cannot_connect(options: &PgConnectOptions, error: &sqlx::Error) -> StoreError {
    let cause = match error {
        sqlx::Error::Io(cause) => cause.to_string(),
        error => error.to_string(),
    };
    let (host, port) = (options.get_host(), options.get_port());
    StoreError::Unavailable(
        format!(
            "cannot connect to PostgreSQL at {host}:{port}: {cause}; check that it is running, that database.url is right, \
             and that pg_hba.conf admits its role"
        )
        .into(),
    )
}

/// Options of a connection for statements, with the settings that keep one statement from holding up the rest.
pub fn connect_options(config: &config::Database) -> Result<PgConnectOptions, sqlx::Error> {
    let options = basic_options(config.url.expose(), "countersign")?
        .statement_cache_capacity(config.statement_cache);
    if !config.session_settings {
        return Ok(options);
    }
    Ok(options.options([
        (
            "statement_timeout",
            format!("{}ms", config.statement_timeout_ms),
        ),
        ("lock_timeout", format!("{}ms", config.lock_timeout_ms)),
        (
            "idle_in_transaction_session_timeout",
            format!("{}ms", config.idle_in_transaction_timeout_ms),
        ),
        // Every statement has an index. On a table that was just filled and not analysed yet, the planner would choose to
        // scan it, and keep that plan.
        ("enable_seqscan", "off".into()),
        ("jit", "off".into()),
        // One plan per statement, whatever the arrays hold: planning costs more than running.
        ("plan_cache_mode", "force_generic_plan".into()),
        // For the server: locks of a node that vanished are released within minutes, not hours.
        ("tcp_keepalives_idle", "30".to_owned()),
        ("tcp_keepalives_interval", "10".to_owned()),
        ("tcp_keepalives_count", "3".to_owned()),
        ("tcp_user_timeout", "30s".to_owned()),
    ]))
}

/// A checked query that returns rows.
type RowQuery<'q, F> = Map<'q, Postgres, F, PgArguments>;

#[derive(Clone)]
pub struct Pool {
    pool: managed::Pool<Manager>,
    /// Whether the tenants of a call are set on its connection.
    row_security: bool,
    /// When the log last said why there are no connections. At first the time of creation: whoever starts with an
    /// unreachable database reports the error itself.
    warned: Arc<Mutex<Instant>>,
    acquire_time: Histogram,
    metrics: Arc<NodeMetrics>,
}

impl Pool {
    /// A pool of at most `size` connections, none of them open yet.
    pub fn new(
        name: &'static str,
        metrics: &Arc<NodeMetrics>,
        options: PgConnectOptions,
        size: usize,
        wait: Duration,
        row_security: bool,
    ) -> Result<Self> {
        let pool = managed::Pool::builder(Manager { options })
            .max_size(size)
            // The connection returned last is reused first: a few warm ones do better than many cold ones.
            .queue_mode(managed::QueueMode::Lifo)
            .wait_timeout(Some(wait))
            .create_timeout(Some(wait))
            .recycle_timeout(Some(wait))
            .runtime(deadpool::Runtime::Tokio1)
            .build()
            .map_err(|error| StoreError::Fault(error.to_string()))?;
        observe(&pool, name, metrics);
        Ok(Self {
            pool,
            row_security,
            warned: Arc::new(Mutex::new(Instant::now())),
            acquire_time: metrics.pool_acquire.of([name]),
            metrics: Arc::clone(metrics),
        })
    }

    /// Takes a connection for a call about these tenants.
    pub async fn lease<'t>(&self, scope: impl Into<TenantScope<'t>>) -> Result<Lease> {
        let lease = self.acquire().await?;
        if !self.row_security {
            return Ok(lease);
        }
        let setting = scope.into().setting();
        let error = match lease.set_tenants(&setting).await {
            Ok(lease) => return Ok(lease),
            Err(error) if classify(&error) == Class::Lost => error,
            Err(error) => return Err(self.failed(error)),
        };
        // The idle connection was dead, and nothing of the call has been sent yet. The next one is new, since the idle ones
        // were closed with it.
        tracing::debug!(%error, "an idle connection was dead");
        let lease = self.acquire().await?.set_tenants(&setting).await;
        lease.map_err(|error| self.failed(error))
    }

    /// The error of a connection whose tenants could not be set, logged.
    fn failed(&self, error: sqlx::Error) -> StoreError {
        let error = error.into();
        self.warn(&error);
        error
    }

    /// Runs one statement about these tenants and returns its rows.
    pub async fn fetch_all<'t, T: Send + Unpin>(
        &self,
        scope: impl Into<TenantScope<'t>>,
        query: RowQuery<'_, impl FnMut(PgRow) -> sqlx::Result<T> + Send>,
    ) -> Result<Vec<T>> {
        let mut lease = self.lease(scope).await?;
        let found = query.fetch_all(lease.connection()?).await;
        Ok(lease.settle(found)?)
    }

    /// Runs one statement about these tenants and returns its first row, if any.
    pub async fn fetch_optional<'t, T: Send + Unpin>(
        &self,
        scope: impl Into<TenantScope<'t>>,
        query: RowQuery<'_, impl FnMut(PgRow) -> sqlx::Result<T> + Send>,
    ) -> Result<Option<T>> {
        let mut lease = self.lease(scope).await?;
        let found = query.fetch_optional(lease.connection()?).await;
        Ok(lease.settle(found)?)
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
        let done = query.execute(lease.connection()?).await;
        Ok(lease.settle(done)?.rows_affected())
    }

    async fn acquire(&self) -> Result<Lease> {
        let begun = Instant::now();
        let found = self.pool.get().await;
        self.acquire_time.took(begun.elapsed());
        let error = match found {
            Ok(object) => {
                return Ok(Lease {
                    object: Some(object),
                });
            }
            Err(managed::PoolError::Backend(error)) => {
                cannot_connect(&self.pool.manager().options, &error)
            }
            Err(managed::PoolError::Timeout(_)) => {
                StoreError::Unavailable("no connection in time".into())
            }
            Err(error) => StoreError::Unavailable(error.to_string().into()),
        };
        self.warn(&error);
        Err(error)
    }

    /// Logs why there are no connections, but not for every request.
    fn warn(&self, error: &StoreError) {
        let mut last = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() > WARN_EVERY {
            *last = Instant::now();
            tracing::warn!(%error, "cannot get a connection to the database");
        }
    }

    pub fn row_security(&self) -> bool {
        self.row_security
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
fn observe(pool: &managed::Pool<Manager>, name: &'static str, metrics: &NodeMetrics) {
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

/// A connection taken from the pool for one call.
pub struct Lease {
    object: Option<managed::Object<Manager>>,
}

impl Lease {
    fn pooled(&mut self) -> sqlx::Result<&mut PooledConnection> {
        self.object.as_deref_mut().ok_or(sqlx::Error::PoolClosed)
    }

    pub fn connection(&mut self) -> sqlx::Result<&mut PgConnection> {
        self.pooled().map(|pooled| &mut pooled.connection)
    }

    /// Sets the tenants of the call, unless they are set already. Part of the call: if dropped here, the connection is closed.
    async fn set_tenants(mut self, setting: &str) -> sqlx::Result<Self> {
        let pooled = self.pooled()?;
        if pooled.tenants.as_deref() == Some(setting) {
            return Ok(self);
        }
        pooled.tenants = None;
        let set = sqlx::query_scalar!(
            "select set_config('countersign.tenants', $1, false)",
            setting
        )
        .fetch_one(&mut pooled.connection)
        .await;
        match set {
            Ok(_) => {
                pooled.tenants = Some(setting.to_owned());
                Ok(self)
            }
            Err(error) => self.settle(Err(error)),
        }
    }

    /// Ends the call: a usable connection goes back to the pool, another is closed.
    pub fn settle<T>(mut self, result: Result<T, sqlx::Error>) -> sqlx::Result<T> {
        let reusable = match &result {
            Ok(_) => true,
            // The server answered, so the statement has ended and is rolled back.
            Err(error @ sqlx::Error::Database(_)) => classify(error) != Class::Lost,
            Err(error) => matches!(error, sqlx::Error::RowNotFound),
        };
        if reusable {
            drop(self.object.take());
        } else if result
            .as_ref()
            .is_err_and(|error| classify(error) == Class::Lost)
        {
            self.close_idle();
        }
        result
    }

    /// Closes the pool's idle connections: where one broke, the others most likely did too, and a retry would only get the
    /// next dead one.
    fn close_idle(&self) {
        if let Some(pool) = self.object.as_ref().and_then(managed::Object::pool) {
            pool.retain(|_, _| false);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // The call was cancelled or failed: taken out of the pool, the connection closes.
        if let Some(object) = self.object.take() {
            drop(managed::Object::take(object));
        }
    }
}
