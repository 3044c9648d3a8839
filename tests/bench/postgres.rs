//! The private PostgreSQL: a database for each measurement, and pgbench for the references.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context as _;
use sqlx::{Connection as _, Executor as _, PgConnection};
use tokio::process::Command;
use tokio::time::sleep;

use super::load::{WARM_UP, analyse};
use super::reference::MINIMAL_TABLES;

/// The server.
pub struct Postgres {
    /// Of the superuser's database.
    url: String,
    made: AtomicU32,
}

/// A database that is there for one measurement.
pub struct Database {
    /// Where it is.
    pub url: String,
    name: String,
    server: String,
}

impl Database {
    /// Drops it despite open connections: the next measurement shares the memory and the disk.
    pub async fn remove(self) -> anyhow::Result<()> {
        let mut connection = PgConnection::connect(&self.server).await?;
        let drop = format!("drop database {} with (force)", self.name);
        connection.execute(sqlx::AssertSqlSafe(drop)).await?;
        Ok(())
    }
}

impl Postgres {
    /// The server that `scripts/with-postgres --durable` started.
    pub async fn from_environment() -> anyhow::Result<Self> {
        let url = std::env::var("DATABASE_URL").context("run this with `make bench`")?;
        let mut connection = PgConnection::connect(&url).await?;
        let durable: String = sqlx::query_scalar("select current_setting('fsync')")
            .fetch_one(&mut connection)
            .await?;
        anyhow::ensure!(
            durable == "on",
            "a database that does not wait for the disk is no reference"
        );
        Ok(Self {
            url,
            made: AtomicU32::new(0),
        })
    }

    /// A new database, and what came before it written out, so that nobody pays for another's work.
    pub async fn database(&self) -> anyhow::Result<Database> {
        let name = format!("bench_{}", self.made.fetch_add(1, Ordering::Relaxed));
        let mut connection = PgConnection::connect(&self.url).await?;
        let create = format!("create database {name}");
        connection.execute(sqlx::AssertSqlSafe(create)).await?;
        connection.execute("checkpoint").await?;
        let (server, _) = self.url.rsplit_once('/').context("a database in the URL")?;
        Ok(Database {
            url: format!("{server}/{name}"),
            name,
            server: self.url.clone(),
        })
    }

    /// Has every flush of the log wait for this long first, as a slow disk would.
    pub async fn delay_flushes(&self, by: std::time::Duration) -> anyhow::Result<()> {
        let mut connection = PgConnection::connect(&self.url).await?;
        // Also with no other transaction under way.
        let siblings = "alter system set commit_siblings = 0";
        connection.execute(siblings).await?;
        let delay = format!("alter system set commit_delay = {}", by.as_micros());
        connection.execute(sqlx::AssertSqlSafe(delay)).await?;
        connection.execute("select pg_reload_conf()").await?;
        Ok(())
    }

    /// A new database with our tables in it and nothing else.
    pub async fn migrated(&self) -> anyhow::Result<Database> {
        let database = self.database().await?;
        let done = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(["migrate", "--database-url", &database.url])
            .stdout(Stdio::null())
            .status()
            .await?;
        anyhow::ensure!(done.success(), "the migration failed");
        Ok(database)
    }

    /// Runs a script with pgbench on a database of its own, and tells its transactions per second.
    pub async fn pgbench(&self, script: &str, clients: usize, seconds: u64) -> anyhow::Result<f64> {
        let database = self.migrated().await?;
        let mut connection = PgConnection::connect(&database.url).await?;
        connection.execute(MINIMAL_TABLES).await?;
        let analysed = async {
            sleep(WARM_UP / 2).await;
            analyse(&database.url).await
        };
        let run = pgbench(&database.url, script, clients, seconds);
        let (rate, ()) = tokio::try_join!(run, analysed)?;
        database.remove().await?;
        Ok(rate)
    }
}

/// One run on connections that stay. Its reports, one each second, count once it is warm, as the
/// gateway's load does.
async fn pgbench(url: &str, script: &str, clients: usize, seconds: u64) -> anyhow::Result<f64> {
    let file = tempfile::Builder::new().suffix(".sql").tempfile()?;
    std::fs::write(file.path(), script)?;
    let output = Command::new(program("pgbench")?)
        .args(["--no-vacuum", "--protocol=prepared", "--jobs=2"])
        .args(["--progress=1", "--define=n=0"])
        .arg(format!("--client={clients}"))
        .arg(format!("--time={}", WARM_UP.as_secs() + seconds))
        .arg("-f")
        .arg(file.path())
        .arg(url)
        .output()
        .await?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    anyhow::ensure!(output.status.success(), "pgbench failed: {said}");
    let warm: Vec<f64> = said.lines().filter_map(warm_rate).collect();
    let most = usize::try_from(seconds)?;
    anyhow::ensure!(
        (most.saturating_sub(1)..=most).contains(&warm.len()),
        "pgbench reported {} of {seconds} seconds: {said}",
        warm.len()
    );
    Ok(warm.iter().sum::<f64>() / f64::from(u32::try_from(warm.len())?))
}

/// Out of `progress: 5.0 s, 1234.5 tps, …`, where that second lies after the warm-up.
fn warm_rate(line: &str) -> Option<f64> {
    let (at, rest) = line.strip_prefix("progress: ")?.split_once(" s, ")?;
    let (rate, _) = rest.split_once(" tps")?;
    let at: f64 = at.parse().ok()?;
    (at > WARM_UP.as_secs_f64() + 0.5).then(|| rate.parse().ok())?
}

/// One of PostgreSQL's programs, beside the server that runs.
pub fn program(name: &str) -> anyhow::Result<PathBuf> {
    let directory = std::process::Command::new("scripts/with-postgres")
        .arg("--where")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()?;
    let directory = String::from_utf8(directory.stdout)?;
    Ok(PathBuf::from(directory.trim()).join(name))
}
