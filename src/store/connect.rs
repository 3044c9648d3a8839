//! Makes connections to PostgreSQL for the pools, and says for how long each may be used.

use std::io;
use std::str::FromStr;
use std::time::{Duration, Instant};

use deadpool::managed::{self, Metrics, RecycleError, RecycleResult};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection, Row};

use super::error::{Result, StoreError};
use crate::config;
use crate::jitter::jitter;

pub struct Manager {
    pub(super) options: PgConnectOptions,
    /// How long a connection is used, give or take a fifth: those of a name that leads elsewhere now must end some day.
    pub(super) max_age: Duration,
}

pub struct PooledConnection {
    pub(super) connection: PgConnection,
    /// The tenants last set on it; `None` if that is not known.
    pub(super) tenants: Option<String>,
    /// When the server last answered on it.
    pub(super) answered: Instant,
    max_age: Duration,
}

impl managed::Manager for Manager {
    type Type = PooledConnection;
    type Error = StoreError;

    async fn create(&self) -> Result<PooledConnection> {
        // Boxed, or every future that takes a connection would be six kilobytes larger.
        let connection = Box::pin(connect(&self.options)).await?;
        Ok(PooledConnection {
            connection,
            tenants: None,
            answered: Instant::now(),
            max_age: jitter(self.max_age),
        })
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
