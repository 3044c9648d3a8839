//! Connections to PostgreSQL. A connection goes back to the pool only when its call is known to have ended; one whose
//! future was dropped half-way is closed, because sqlx could otherwise hand it on in the middle of a transaction. Under
//! row-level security it is told, before anything else, for which tenants the call is.

use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use deadpool::Status;
use deadpool::managed::{self, Metrics, RecycleResult};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection};

use super::error::{Class, StoreError, classify};
use super::tenant_scope::TenantScope;
use crate::config;
use crate::telemetry::Metrics as NodeMetrics;
use crate::telemetry::instrument::{Histogram, as_f64};

/// How long a connection may be idle before it is asked whether it still lives.
const ASK_AFTER: Duration = Duration::from_secs(1);

/// How often the log tells that there are no connections.
const COMPLAIN_EVERY: Duration = Duration::from_secs(5);

pub struct Manager {
    options: PgConnectOptions,
}

/// A connection, and for which tenants it was last told to be.
pub struct Link {
    connection: PgConnection,
    /// `None`: for nobody, or not known.
    reach: Option<String>,
}

impl managed::Manager for Manager {
    type Type = Link;
    type Error = sqlx::Error;

    async fn create(&self) -> Result<Link, sqlx::Error> {
        Ok(Link {
            // Boxed: every future that asks for a connection would be six kilobytes larger for what it seldom does.
            connection: Box::pin(PgConnection::connect_with(&self.options)).await?,
            reach: None,
        })
    }

    async fn recycle(&self, link: &mut Link, metrics: &Metrics) -> RecycleResult<sqlx::Error> {
        // Only connections that a call gave back whole are here. One that has been idle may have died in its sleep, with
        // a restarted server for instance; asking it costs a round trip, which nobody in a hurry pays.
        if metrics.last_used() > ASK_AFTER {
            link.connection.ping().await?;
        }
        Ok(())
    }
}

/// What every connection has in common. `name` is what the server calls it.
pub(super) fn basic_options(url: &str, name: &str) -> Result<PgConnectOptions, sqlx::Error> {
    Ok(PgConnectOptions::from_str(url)?
        .application_name(name)
        // Floats keep all their digits without it, and `PgBouncer` refuses a setting that it does not know.
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
        // Every statement has an index to go by. On a table that has just been filled and not been analysed yet, the
        // planner would rather read all of it, and keep to that plan.
        ("enable_seqscan", "off".into()),
        ("jit", "off".into()),
        // And to one plan per statement, whatever the arrays hold: planning one of them anew costs more than running it.
        ("plan_cache_mode", "force_generic_plan".into()),
        // For the server's end: what a node that vanished without a word had locked is free soon, and not after hours.
        ("tcp_keepalives_idle", "30".to_owned()),
        ("tcp_keepalives_interval", "10".to_owned()),
        ("tcp_keepalives_count", "3".to_owned()),
        ("tcp_user_timeout", "30s".to_owned()),
    ]))
}

#[derive(Clone)]
pub struct Pool {
    pool: managed::Pool<Manager>,
    /// Whether connections are told for which tenants they are.
    row_security: bool,
    /// When the log last said why there are no connections. At first the time of creation: whoever starts with an
    /// unreachable database reports the error itself.
    complained: Arc<Mutex<Instant>>,
    name: &'static str,
    acquire: Histogram,
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
    ) -> Result<Self, StoreError> {
        let pool = managed::Pool::builder(Manager { options })
            .max_size(size)
            // The last one back is the next one out: a few warm connections do better than many cold ones.
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
            complained: Arc::new(Mutex::new(Instant::now())),
            name,
            acquire: metrics.pool_acquire.of([name]),
            metrics: Arc::clone(metrics),
        })
    }

    /// Borrows a connection for a call about these tenants.
    pub async fn lease(&self, reach: TenantScope<'_>) -> Result<Lease, StoreError> {
        let lease = self.borrow().await?;
        if !self.row_security {
            return Ok(lease);
        }
        let setting = reach.setting();
        let error = match lease.reaching(&setting).await {
            Ok(lease) => return Ok(lease),
            Err(error) if classify(&error) == Class::Lost => error,
            Err(error) => return Err(error.into()),
        };
        // It broke in its sleep, and nothing of the call has been sent yet: another one, which is new, since the idle ones
        // were closed with it.
        tracing::debug!(%error, "a connection broke before its call");
        Ok(self.borrow().await?.reaching(&setting).await?)
    }

    /// Borrows a connection that may be for anyone.
    async fn borrow(&self) -> Result<Lease, StoreError> {
        let begun = Instant::now();
        let found = self.pool.get().await;
        self.acquire.took(begun.elapsed());
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
        self.complain(&error);
        Err(error)
    }

    /// Tells the operator why there are no connections: once in a while, since every request would have to.
    fn complain(&self, error: &StoreError) {
        let mut last = self
            .complained
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() > COMPLAIN_EVERY {
            *last = Instant::now();
            tracing::warn!(%error, "cannot get a connection to the database");
        }
    }

    /// Whether connections are told for which tenants they are.
    #[must_use]
    pub fn row_security(&self) -> bool {
        self.row_security
    }

    /// How many connections are open, and how many of them are idle.
    #[must_use]
    pub fn usage(&self) -> (usize, usize) {
        let status = self.pool.status();
        (status.size, status.available)
    }

    #[must_use]
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

/// A borrowed connection, in use until its call is settled.
pub struct Lease {
    object: Option<managed::Object<Manager>>,
}

impl Lease {
    fn link(&mut self) -> Result<&mut Link, sqlx::Error> {
        self.object.as_deref_mut().ok_or(sqlx::Error::PoolClosed)
    }

    pub fn connection(&mut self) -> Result<&mut PgConnection, sqlx::Error> {
        self.link().map(|link| &mut link.connection)
    }

    /// Tells the connection for which tenants it is, unless it knows. Part of the call: broken off here, it is closed.
    async fn reaching(mut self, setting: &str) -> Result<Self, sqlx::Error> {
        let link = self.link()?;
        if link.reach.as_deref() == Some(setting) {
            return Ok(self);
        }
        link.reach = None;
        let told = sqlx::query_scalar!(
            "select set_config('countersign.tenants', $1, false)",
            setting
        )
        .fetch_one(&mut link.connection)
        .await;
        match told {
            Ok(_) => {
                link.reach = Some(setting.to_owned());
                Ok(self)
            }
            Err(error) => self.settle(Err(error)),
        }
    }

    /// Ends the call: the connection goes back if it is still good, and is closed otherwise.
    pub fn settle<T>(mut self, result: Result<T, sqlx::Error>) -> Result<T, sqlx::Error> {
        let good = match &result {
            Ok(_) => true,
            // The server answered, so a lone statement has ended; what it broke off is rolled back.
            Err(error @ sqlx::Error::Database(_)) => classify(error) != Class::Lost,
            Err(error) => matches!(error, sqlx::Error::RowNotFound),
        };
        if good {
            drop(self.object.take());
        } else if result
            .as_ref()
            .is_err_and(|error| classify(error) == Class::Lost)
        {
            self.forget_idle();
        }
        result
    }

    /// Closes the pool's idle connections: where one broke, they most likely broke too, and whoever tries again would
    /// only be handed the next broken one.
    fn forget_idle(&self) {
        if let Some(pool) = self.object.as_ref().and_then(managed::Object::pool) {
            pool.retain(|_, _| false);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Still here: the call was cancelled or broke. Taken out of the pool, the connection closes.
        if let Some(object) = self.object.take() {
            drop(managed::Object::take(object));
        }
    }
}
