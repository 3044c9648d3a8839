//! The questions of `countersign check` to the database beyond those that nodes ask when they start: its version, clock, TLS and connection
//! limits, and whether notifications arrive.

use std::time::Duration;

use tokio::time::timeout;

use crate::config;
use crate::store::Database;
use crate::store::database::notify::WakeListener;
use crate::store::database::tenant_scope::TenantScope;
use crate::store::error::Result;

/// How long a notification may take before it counts as lost.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub struct ServerFacts {
    /// Its version, as `server_version_num`.
    pub version: i32,
    /// The version of TLS that it is reached through, if it is.
    pub tls: Option<String>,
    pub writable: bool,
    /// How many connections the role that connects may open.
    pub connections: i32,
    /// How far its clock is ahead of this machine's.
    pub ahead: time::Duration,
}

impl Database {
    pub async fn server(&self) -> Result<ServerFacts> {
        // All: it belongs to no tenant.
        let mut lease = self.background.lease(TenantScope::All).await?;
        let asked = self.clock.now().inner();
        let query = sqlx::query!(
            r#"
            select current_setting('server_version_num')::integer as "version!",
                   (select s.version from pg_stat_ssl s where s.pid = pg_backend_pid()) as "tls?",
                   current_setting('transaction_read_only') = 'off' as "writable!",
                   least(current_setting('max_connections')::integer
                         - current_setting('superuser_reserved_connections')::integer
                         - coalesce(current_setting('reserved_connections', true)::integer, 0),
                         (select nullif(d.datconnlimit, -1) from pg_database d where d.datname = current_database()),
                         (select nullif(r.rolconnlimit, -1) from pg_roles r where r.rolname = current_user)) as "connections!",
                   clock_timestamp() as "now!"
            "#
        );
        let found = query.fetch_one(lease.connection()?);
        let found = self.background.within(found).await;
        let row = lease.settle(found)?;
        let answered = self.clock.now().inner();
        Ok(ServerFacts {
            version: row.version,
            tls: row.tls,
            writable: row.writable,
            connections: row.connections,
            ahead: row.now - (asked + (answered - asked) / 2),
        })
    }

    /// Whether a notification that is sent through the pool arrives on a connection such as nodes listen on.
    pub async fn receives_notifications(&self, config: &config::Database) -> Result<bool> {
        // The listener's connection is used for nothing else, so a timeout may interrupt it.
        let Ok(listener) = timeout(NOTIFY_TIMEOUT, WakeListener::connect(config)).await else {
            return Ok(false);
        };
        let mut listener = listener?;
        // In the form of a node's canary, which other nodes ignore.
        let payload = format!("c {}", self.clock.operation_id());
        let query = sqlx::query!(
            "select pg_notify($1, $2)",
            crate::store::database::notify::CHANNEL,
            payload
        );
        self.background.execute(TenantScope::All, query).await?;
        let received = async {
            while let Some(received) = listener.next().await? {
                if received == payload {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        timeout(NOTIFY_TIMEOUT, received).await.unwrap_or(Ok(false))
    }
}
