//! The private PostgreSQL: a database for each measurement, and pgbench for the references.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context as _;
use sqlx::{Connection as _, Executor as _, PgConnection};
use tokio::process::Command;

/// How long pgbench runs for nothing.
const WARM_UP_SECONDS: u64 = 2;

/// The server.
pub struct Postgres {
    /// Of the superuser's database.
    url: String,
    made: AtomicU32,
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
    pub async fn database(&self) -> anyhow::Result<String> {
        let name = format!("bench_{}", self.made.fetch_add(1, Ordering::Relaxed));
        let mut connection = PgConnection::connect(&self.url).await?;
        let create = format!("create database {name}");
        connection.execute(sqlx::AssertSqlSafe(create)).await?;
        connection.execute("checkpoint").await?;
        let (server, _) = self.url.rsplit_once('/').context("a database in the URL")?;
        Ok(format!("{server}/{name}"))
    }

    /// A new database with our tables in it and nothing else.
    pub async fn migrated(&self) -> anyhow::Result<String> {
        let url = self.database().await?;
        let done = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(["migrate", "--database-url", &url])
            .stdout(Stdio::null())
            .status()
            .await?;
        anyhow::ensure!(done.success(), "the migration failed");
        Ok(url)
    }
}

/// Runs a script with pgbench and tells its transactions per second, after a run for nothing and a look of the database
/// at its tables, as the gateway gets them.
pub async fn pgbench(url: &str, script: &str, clients: usize, seconds: u64) -> anyhow::Result<f64> {
    run(url, script, clients, WARM_UP_SECONDS, 0).await?;
    super::load::analyse(url).await?;
    run(url, script, clients, seconds, 1).await
}

async fn run(
    url: &str,
    script: &str,
    clients: usize,
    seconds: u64,
    round: usize,
) -> anyhow::Result<f64> {
    let file = tempfile::Builder::new().suffix(".sql").tempfile()?;
    std::fs::write(file.path(), script)?;
    let output = Command::new(program("pgbench")?)
        .args([
            "--no-vacuum",
            "--protocol=prepared",
            "--jobs=2",
            "-D",
            "n=0",
        ])
        .arg(format!("--define=round={round}"))
        .arg(format!("--client={clients}"))
        .arg(format!("--time={seconds}"))
        .arg("-f")
        .arg(file.path())
        .arg(url)
        .output()
        .await?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    anyhow::ensure!(output.status.success(), "pgbench failed: {complaint}");
    let tps = text.lines().find_map(|line| line.strip_prefix("tps = "));
    let tps = tps.and_then(|rest| rest.split(' ').next()?.parse().ok());
    tps.with_context(|| format!("pgbench said nothing of use: {text}{complaint}"))
}

/// One of PostgreSQL's programs, beside the server that runs.
fn program(name: &str) -> anyhow::Result<PathBuf> {
    let directory = std::process::Command::new("scripts/with-postgres")
        .arg("--where")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()?;
    let directory = String::from_utf8(directory.stdout)?;
    Ok(PathBuf::from(directory.trim()).join(name))
}
