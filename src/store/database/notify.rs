//! LISTEN and NOTIFY, on two connections of their own: never from a pool, never in a transaction.

use sqlx::Connection;
use sqlx::postgres::{PgConnection, PgListener, PgPoolOptions};

use crate::config;
use crate::store::database::connect::basic_options;

pub(in crate::store) const CHANNEL: &str = "countersign";

pub struct WakeNotifier {
    connection: PgConnection,
}

impl WakeNotifier {
    pub async fn connect(config: &config::Database) -> sqlx::Result<Self> {
        let mut options = basic_options(config.direct_url(), "countersign-notify")?;
        if config.session_settings {
            options = options.options([("statement_timeout", "5s")]);
        }
        Ok(Self {
            connection: PgConnection::connect_with(&options).await?,
        })
    }

    /// Sends hints. Their commit does not wait for the disk, since polling makes up for a lost hint. The setting is made per
    /// statement because a pooler may hand out another connection each time.
    pub async fn send(&mut self, payloads: &[String]) -> sqlx::Result<()> {
        sqlx::query!(
            "select pg_notify($1, p.payload) from set_config('synchronous_commit', 'off', true), unnest($2::text[]) as p (payload)",
            CHANNEL,
            payloads
        )
        .execute(&mut self.connection)
        .await?;
        Ok(())
    }
}

pub struct WakeListener {
    listener: PgListener,
}

impl WakeListener {
    pub async fn connect(config: &config::Database) -> sqlx::Result<Self> {
        let options = basic_options(config.direct_url(), "countersign-listen")?;
        // sqlx listens on a connection of a pool: a pool of one, which is never replaced.
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

    /// The next hint. `None` or an error mean that hints may have been lost: connect again.
    pub async fn next(&mut self) -> sqlx::Result<Option<String>> {
        Ok(self
            .listener
            .try_recv()
            .await?
            .map(|notification| notification.payload().to_owned()))
    }
}
