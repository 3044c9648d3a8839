//! Makes connections to PostgreSQL for the pools, and says for how long each may be used.

use std::io;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use deadpool::managed::{self, Metrics, Object, RecycleError, RecycleResult, Timeouts};
use futures_util::future::BoxFuture;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection, Row};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use crate::config;
use crate::jitter::jitter;
use crate::store::database::pulse::ServerPulse;
use crate::store::error::{Result, StoreError};

/// How long an attempt to connect may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(8);
/// Attempts of a pool that begin at once. One that takes longer than `SLOW_CONNECT` may hang, so that others begin beside it, up to the
/// size of the pool.
const CONCURRENT_ATTEMPTS: usize = 8;
const SLOW_CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Connects for a pool. An attempt goes on when the call that needed it has given up, and its connection serves the next one.
/// Otherwise a server that is slow to connect would never be connected to: every attempt would be thrown away and begun again,
/// which keeps the server slow.
pub struct ConnectionManager {
    options: PgConnectOptions,
    /// How long a connection is used, give or take a fifth: those of a name that leads elsewhere now must end some day.
    max_age: Duration,
    handover: Arc<ConnectionHandover>,
    /// All attempts under way, and those of them that began less than `SLOW_CONNECT` ago.
    attempts: Arc<Semaphore>,
    new_attempts: Arc<Semaphore>,
    pub(in crate::store) pulse: Arc<ServerPulse>,
}

/// Gives connections to the pool whose calls had given up. Each is here only until the pool has taken it.
#[derive(Default)]
pub(in crate::store) struct ConnectionHandover {
    pool: OnceLock<managed::WeakPool<ConnectionManager>>,
    connections: Mutex<Vec<PooledConnection>>,
}

impl ConnectionHandover {
    pub(in crate::store) fn belong_to(&self, pool: managed::WeakPool<ConnectionManager>) {
        let _set_once = self.pool.set(pool);
    }

    fn connections(&self) -> MutexGuard<'_, Vec<PooledConnection>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<PooledConnection> {
        self.connections().pop()
    }

    /// Has the pool take a connection as a new one. It is closed if the pool is full or has idle ones. Boxed, since the pool asks the
    /// manager for it.
    fn give(self: Arc<Self>, connection: PooledConnection) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let Some(pool) = self.pool.get().and_then(managed::WeakPool::upgrade) else {
                return;
            };
            self.connections().push(connection);
            let at_once = Timeouts {
                wait: Some(Duration::ZERO),
                ..Timeouts::default()
            };
            let object = pool.timeout_get(&at_once).await;
            let is_new = object.is_ok_and(|object| Object::metrics(&object).recycle_count == 0);
            if !is_new {
                drop(self.take());
            }
        })
    }
}

impl ConnectionManager {
    /// For a pool of this size.
    pub(in crate::store) fn new(config: &config::Database, size: usize) -> sqlx::Result<Self> {
        Ok(Self {
            options: connect_options(config)?,
            max_age: Duration::from_secs(config.connection_max_age_seconds),
            handover: Arc::default(),
            attempts: Arc::new(Semaphore::new(size)),
            new_attempts: Arc::new(Semaphore::new(CONCURRENT_ATTEMPTS.min(size))),
            pulse: Arc::default(),
        })
    }

    pub(in crate::store) fn handover(&self) -> &Arc<ConnectionHandover> {
        &self.handover
    }
}

pub struct PooledConnection {
    pub(in crate::store) connection: PgConnection,
    /// The tenants last set on it; `None` if that is not known.
    pub(in crate::store) tenants: Option<String>,
    /// When the server last answered on it.
    pub(in crate::store) answered: Instant,
    max_age: Duration,
}

impl managed::Manager for ConnectionManager {
    type Type = PooledConnection;
    type Error = StoreError;

    async fn create(&self) -> Result<PooledConnection> {
        if let Some(connection) = self.handover.take() {
            return Ok(connection);
        }
        let ended = || StoreError::Unavailable("the attempt to connect ended".into());
        let attempt = Arc::clone(&self.attempts).acquire_owned().await;
        let attempt = attempt.map_err(|_| ended())?;
        let new_attempt = Arc::clone(&self.new_attempts).acquire_owned().await;
        let new_attempt = new_attempt.map_err(|_| ended())?;
        let (options, max_age) = (self.options.clone(), jitter(self.max_age));
        let handover = Arc::clone(&self.handover);
        let (connected, waiting) = oneshot::channel();
        tokio::spawn(async move {
            let mut connecting = Box::pin(timeout(CONNECT_TIMEOUT, connect(&options)));
            let result = if let Ok(result) = timeout(SLOW_CONNECT_TIMEOUT, &mut connecting).await {
                result
            } else {
                drop(new_attempt);
                connecting.await
            };
            drop(attempt);
            let result = result.unwrap_or_else(|_| {
                let silence = io::Error::new(io::ErrorKind::TimedOut, "no answer in time");
                Err(cannot_connect(&options, &silence.into()))
            });
            let result = result.map(|connection| PooledConnection {
                connection,
                tenants: None,
                answered: Instant::now(),
                max_age,
            });
            if let Err(Ok(unwanted)) = connected.send(result) {
                handover.give(unwanted).await;
            }
        });
        waiting.await.unwrap_or_else(|_| Err(ended()))
    }

    async fn recycle(
        &self,
        pooled: &mut PooledConnection,
        metrics: &Metrics,
    ) -> RecycleResult<StoreError> {
        if metrics.age() > pooled.max_age {
            return Err(RecycleError::message("the connection is old"));
        }
        Ok(())
    }
}

/// Connects to a server that takes writes. During a failover a name may lead to a standby, and a pool of connections to it
/// would stay there.
async fn connect(options: &PgConnectOptions) -> Result<PgConnection> {
    let connected = async {
        let mut connection = PgConnection::connect_with(options).await?;
        // Not prepared: it is asked once.
        let asked = sqlx::raw_sql("select pg_is_in_recovery()");
        let standby: bool = asked.fetch_one(&mut connection).await?.try_get(0)?;
        Ok((connection, standby))
    };
    let (connection, standby) = connected
        .await
        .map_err(|error| cannot_connect(options, &error))?;
    if standby {
        let (host, port) = (options.get_host(), options.get_port());
        let text = format!(
            "PostgreSQL at {host}:{port} is a standby, which takes no writes; point database.url to the primary"
        );
        return Err(StoreError::ReadOnly(text));
    }
    Ok(connection)
}

/// The options of every connection; the server shows `name`.
pub(in crate::store) fn basic_options(url: &str, name: &str) -> sqlx::Result<PgConnectOptions> {
    Ok(PgConnectOptions::from_str(url)?
        .application_name(name)
        // Not needed for exact floats, and `PgBouncer` refuses settings that it does not know.
        .extra_float_digits(None)
        .disable_statement_logging())
}

/// Why there is no connection, with the server that was tried and what to do.
pub(in crate::store) fn cannot_connect(
    options: &PgConnectOptions,
    error: &sqlx::Error,
) -> StoreError {
    let cause = match error {
        sqlx::Error::Io(cause) => cause.to_string(),
        error => error.to_string(),
    };
    let (host, port) = (options.get_host(), options.get_port());
    let text = format!(
        "cannot connect to PostgreSQL at {host}:{port}: {cause}; check that it is running, that database.url is right, and \
         that pg_hba.conf admits its role"
    );
    match error {
        sqlx::Error::Configuration(_) | sqlx::Error::Tls(_) => StoreError::Refused(text),
        // A certificate that is not trusted.
        sqlx::Error::Io(cause) if cause.kind() == io::ErrorKind::InvalidData => {
            StoreError::Refused(text)
        }
        sqlx::Error::Database(error) if refuses(error.code().as_deref().unwrap_or_default()) => {
            StoreError::Refused(text)
        }
        _ => StoreError::Unavailable(text.into()),
    }
}

/// Whether the server admits nobody under this configuration: a wrong role or password, no such database, no rights.
fn refuses(code: &str) -> bool {
    code.starts_with("28") || matches!(code, "3D000" | "42501")
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
        ("idle_in_transaction_session_timeout", "10s".into()),
        // Every statement has an index. On a table that was just filled and not analysed yet, the planner would choose to
        // scan it, and keep that plan.
        ("enable_seqscan", "off".into()),
        // With the usual cost of 0.005, all indexes of a small table cost the same, and a plan made then is kept: it may read all
        // rows of a tenant where another index has the one.
        ("cpu_index_tuple_cost", "1".into()),
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
