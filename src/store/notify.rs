//! LISTEN and NOTIFY: the two connections of waking, each its own, never in the pools and never in a transaction.

use std::str::FromStr;

use sqlx::postgres::{PgConnectOptions, PgConnection, PgListener};
use sqlx::{ConnectOptions, Connection};

use crate::config;

/// The one channel of the cluster.
pub(super) const CHANNEL: &str = "countersign";

/// Sends hints to the cluster.
pub struct Notifier {
    connection: PgConnection,
}

impl Notifier {
    /// Connects. Commits of this connection do not wait for the disk: a hint that a crash loses, the net makes up for.
    pub async fn connect(config: &config::Database) -> Result<Self, sqlx::Error> {
        let options = PgConnectOptions::from_str(config.direct_url())?
            .application_name("countersign-notify")
            .options([("synchronous_commit", "off"), ("statement_timeout", "5s")])
            .disable_statement_logging();
        Ok(Self {
            connection: PgConnection::connect_with(&options).await?,
        })
    }

    /// Sends one hint.
    pub async fn send(&mut self, payload: &str) -> Result<(), sqlx::Error> {
        sqlx::query!("select pg_notify($1, $2)", CHANNEL, payload)
            .execute(&mut self.connection)
            .await?;
        Ok(())
    }
}

/// Hears the hints of the cluster.
pub struct Hearer {
    listener: PgListener,
}

impl Hearer {
    /// Connects and listens.
    pub async fn connect(config: &config::Database) -> Result<Self, sqlx::Error> {
        let mut listener = PgListener::connect(config.direct_url()).await?;
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
