//! LISTEN and NOTIFY: the two connections of waking, each its own, never in the pools and never in a transaction.

use sqlx::Connection;
use sqlx::postgres::{PgConnection, PgListener, PgPoolOptions};

use super::pool::basic_options;
use crate::config;

pub(super) const CHANNEL: &str = "countersign";

pub struct Notifier {
    connection: PgConnection,
}

impl Notifier {
    pub async fn connect(config: &config::Database) -> Result<Self, sqlx::Error> {
        let mut options = basic_options(config.direct_url(), "countersign-notify")?;
        if config.session_settings {
            options = options.options([("statement_timeout", "5s")]);
        }
        Ok(Self {
            connection: PgConnection::connect_with(&options).await?,
        })
    }

    /// Sends one hint. Its commit does not wait for the disk: what a crash loses, the net makes up for. Said with each and not
    /// once of the connection, which may be lent by a pooler.
    pub async fn send(&mut self, payload: &str) -> Result<(), sqlx::Error> {
        sqlx::query!(
            "select pg_notify($1, $2) from set_config('synchronous_commit', 'off', true)",
            CHANNEL,
            payload
        )
        .execute(&mut self.connection)
        .await?;
        Ok(())
    }
}

pub struct Listener {
    listener: PgListener,
}

impl Listener {
    pub async fn connect(config: &config::Database) -> Result<Self, sqlx::Error> {
        let options = basic_options(config.direct_url(), "countersign-listen")?;
        // One connection for as long as it lasts: sqlx listens on a pool's.
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .max_lifetime(None)
            .idle_timeout(None)
            .connect_with(options)
            .await?;
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.listen(CHANNEL).await?;
        Ok(Self { listener })
    }

    /// The next hint; `None` or an error mean that some may have been lost and the connection is done for.
    pub async fn next(&mut self) -> Result<Option<String>, sqlx::Error> {
        Ok(self
            .listener
            .try_recv()
            .await?
            .map(|notification| notification.payload().to_owned()))
    }
}
