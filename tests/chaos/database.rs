//! A primary and a standby that every commit waits for, run by us or by Patroni.

use std::path::Path;
use std::time::Duration;

use sqlx::PgConnection;
use tokio::time::{Instant, sleep, timeout};

use super::patroni::Patroni;
use super::programs::Postgres;
use super::server::Server;

/// The database and its owner, whom the nodes connect as.
pub const NAME: &str = "gateway";
/// A commit that changes nothing.
pub const COMMIT: &str = "select pg_logical_emit_message(true, 'chaos', '')";
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Database {
    /// Runs the servers, if we do not. It ends before their files are gone.
    pub patroni: Option<Patroni>,
    servers: [Server; 2],
    /// Which of them is the primary.
    pub primary: usize,
}

impl Database {
    pub async fn start(directory: &Path, with_patroni: bool) -> anyhow::Result<Self> {
        let programs = Postgres::find()?;
        let mut servers = [
            Server::new(&programs, directory, "postgres-1")?,
            Server::new(&programs, directory, "postgres-2")?,
        ];
        let mut patroni = None;
        if with_patroni {
            patroni = Some(Patroni::start(&programs, &servers, directory).await?);
        } else {
            let [first, _] = &mut servers;
            first.initialise().await?;
            first.start().await?;
        }
        let mut database = Self {
            patroni,
            servers,
            primary: 0,
        };
        let role = format!("create role {NAME} login");
        database.primary().execute("postgres", &role).await?;
        let create = format!("create database {NAME} owner {NAME}");
        database.primary().execute("postgres", &create).await?;
        if !with_patroni {
            database.add_standby().await?;
        }
        Ok(database)
    }

    /// Where a node's connections to the primary go. Patroni's proxy closes those to a former
    /// primary, except the first node's.
    pub fn port(&self, node: usize) -> u16 {
        match &self.patroni {
            None => self.primary().port,
            Some(patroni) if node == 0 => patroni.keeping,
            Some(patroni) => patroni.closing,
        }
    }

    pub fn primary(&self) -> &Server {
        let [first, second] = &self.servers;
        if self.primary == 0 { first } else { second }
    }

    pub fn primary_mut(&mut self) -> &mut Server {
        let [first, second] = &mut self.servers;
        if self.primary == 0 { first } else { second }
    }

    pub fn standby(&self) -> &Server {
        let [first, second] = &self.servers;
        if self.primary == 0 { second } else { first }
    }

    fn standby_mut(&mut self) -> &mut Server {
        let [first, second] = &mut self.servers;
        if self.primary == 0 { second } else { first }
    }

    pub async fn connect(&self) -> anyhow::Result<PgConnection> {
        self.primary().connect(NAME).await
    }

    /// Makes the other server a standby, and has commits wait for it once it follows.
    pub async fn add_standby(&mut self) -> anyhow::Result<()> {
        let from = self.primary().port;
        self.standby_mut().stop().await?;
        self.standby_mut().copy_from(from).await?;
        self.standby_mut().start().await?;
        self.follows("streaming", "state").await?;
        self.primary().synchronise(true)?;
        let reload = "select pg_reload_conf()";
        self.primary().execute("postgres", reload).await?;
        self.follows("sync", "sync_state").await
    }

    async fn follows(&self, wanted: &str, column: &str) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        let state =
            format!("select {column} from pg_stat_replication where application_name = 'standby'");
        while self.primary().ask(&state).await?.as_deref() != Some(wanted) {
            anyhow::ensure!(
                Instant::now() < deadline,
                "the standby does not follow ({column} is not {wanted})"
            );
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Waits until the primary commits, which includes that the standby follows.
    pub async fn commits(&self) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let attempt = self.primary().execute("postgres", COMMIT);
            if let Ok(Ok(())) = timeout(Duration::from_secs(2), attempt).await {
                return Ok(());
            }
            anyhow::ensure!(Instant::now() < deadline, "the database does not commit");
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// Kills the primary and promotes the standby, which has everything that was ever acknowledged.
    /// Commits wait for nobody until `add_standby`.
    pub async fn fail_over(&mut self) -> anyhow::Result<()> {
        // Only a standby that every commit waited for may take over.
        self.follows("sync", "sync_state").await?;
        self.primary_mut().crash().await?;
        let promote = "select pg_promote(true, 30)";
        self.standby().execute("postgres", promote).await?;
        self.primary = 1 - self.primary;
        self.commits().await
    }

    /// Ends the nodes' sessions.
    pub async fn terminate(&self) -> anyhow::Result<()> {
        let all = format!(
            "select pg_terminate_backend(pid) from pg_stat_activity where usename = '{NAME}'"
        );
        self.primary().execute("postgres", &all).await
    }
}
