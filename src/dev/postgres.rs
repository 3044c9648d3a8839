//! A private PostgreSQL: initialised, started, recovered and stopped. However the last run ended,
//! the next start finds the committed data, and no two servers ever share a data directory. It
//! accepts connections from this machine only, with a password.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use countersign::gateway::identity::authenticate::random_text;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::fs;
use tokio::net::TcpListener;
use tokio::process::Child;
use tokio::time::{sleep, timeout};

use super::binaries::{PostgresBinaries, could_not};
use super::private_file::write_private;

/// How long the server may take to start or stop. After a crash it first replays its log.
const START_TIMEOUT: Duration = Duration::from_secs(60);

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How many ports are tried: a free port may be taken before the server binds it.
const PORTS_TO_TRY: u32 = 5;

/// The prefix of a data directory that is being initialised.
const UNFINISHED: &str = "postgres.new-";

const ROLES: &str = include_str!("../../deploy/roles.sql");

const CREATE_DATABASE: &str = "select 'create database countersign' \
     where not exists (select from pg_database where datname = 'countersign') \\gexec\n";

/// A running private server. Call `stop`; dropping it only sends the signal.
pub struct PrivatePostgres {
    server: PostgresServer,
    /// With user, password and database, over TCP on loopback.
    pub url: String,
    binaries: PostgresBinaries,
    data: PathBuf,
    password: String,
    port: u16,
}

impl PrivatePostgres {
    /// Starts the server on `data_dir/postgres`, initialising it the first time and recovering it
    /// if the last run was killed.
    pub async fn start(data_dir: &Path) -> anyhow::Result<Self> {
        let binaries = PostgresBinaries::find(data_dir.join("postgres.log")).await?;
        let created = fs::create_dir_all(data_dir).await;
        created.with_context(|| could_not("create", data_dir))?;
        let absolute = fs::canonicalize(data_dir).await;
        let data_dir = absolute.with_context(|| could_not("find", data_dir))?;
        binaries.open_way_to(&data_dir)?;
        sweep_unfinished(&data_dir).await;

        let data = data_dir.join("postgres");
        let password_file = data_dir.join("postgres.password");
        if !data.exists() {
            initialise(&binaries, &data, &password_file).await?;
        }
        let password = fs::read_to_string(&password_file).await;
        let password = password.with_context(|| could_not("read", &password_file))?;
        stop_leftover(&binaries, &data).await?;
        let (server, port) = launch(&binaries, &data).await?;

        let url = format!("postgres://countersign:{password}@127.0.0.1:{port}/countersign");
        let postgres = Self {
            server,
            url,
            binaries,
            data,
            password,
            port,
        };
        let what = "create the database";
        postgres.psql("postgres", what, CREATE_DATABASE).await?;
        Ok(postgres)
    }

    /// The URL of a role under row-level security, which our deployments use for nodes. It creates
    /// the roles of deploy/roles.sql, after the migrations.
    pub async fn restricted_url(&self) -> anyhow::Result<String> {
        let password = random_text::<24>()?;
        let what = "create the roles of --strict";
        self.psql("countersign", what, ROLES).await?;
        let set = format!("alter role countersign_application password '{password}';\n");
        self.psql("countersign", what, &set).await?;
        let port = self.port;
        Ok(format!(
            "postgres://countersign_application:{password}@127.0.0.1:{port}/countersign"
        ))
    }

    async fn psql(&self, database: &str, what: &'static str, input: &str) -> anyhow::Result<()> {
        let mut psql = self.binaries.command("psql", &self.data)?;
        psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d"]);
        let port = self.port;
        psql.arg(format!(
            "postgres://countersign@127.0.0.1:{port}/{database}"
        ));
        psql.env("PGPASSWORD", &self.password);
        self.binaries.run(psql, what, input).await
    }

    /// Stops a server that a killed run left behind.
    pub async fn stop_leftover(data_dir: &Path) -> anyhow::Result<()> {
        let data = data_dir.join("postgres");
        if PidFile::read(&data).await.is_none() {
            return Ok(());
        }
        let binaries = PostgresBinaries::find(data_dir.join("postgres.log")).await?;
        stop_leftover(&binaries, &data).await
    }

    /// Stops it cleanly (fast shutdown) and waits for its end.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.server.interrupt();
        match timeout(START_TIMEOUT, self.server.child.wait()).await {
            Ok(ended) => ended.map(drop).context("could not wait for postgres"),
            Err(_) => Err(self.binaries.failed("stop PostgreSQL in time")),
        }
    }
}

/// The server process, which is told to stop when this is dropped.
struct PostgresServer {
    child: Child,
}

impl PostgresServer {
    /// Asks for a fast shutdown, which ends sessions and writes a checkpoint.
    fn interrupt(&self) {
        if let Some(pid) = self.child.id().and_then(|id| i32::try_from(id).ok()) {
            // It can only fail because the server has ended.
            let _ = kill(Pid::from_raw(pid), Signal::SIGINT);
        }
    }

    /// Waits until the server is ready (true) or has ended (false).
    async fn ready(&mut self, data: &Path) -> bool {
        let id = self.child.id();
        while matches!(self.child.try_wait(), Ok(None)) {
            if let Some(file) = PidFile::read(data).await
                && u32::try_from(file.pid).ok() == id
                && file.ready
            {
                return true;
            }
            sleep(POLL_INTERVAL).await;
        }
        false
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.interrupt();
    }
}

/// Creates a data directory with a new password, completely or not at all.
async fn initialise(
    binaries: &PostgresBinaries,
    data: &Path,
    password_file: &Path,
) -> anyhow::Result<()> {
    write_password(password_file)
        .and_then(|()| binaries.hand_over(password_file))
        .with_context(|| could_not("write", password_file))?;

    // Only a complete directory gets the name: no server can use what an interrupted initdb leaves.
    // The initdb of a killed run may still be running, so each attempt has its own directory.
    let unfinished = data.with_file_name(format!("{UNFINISHED}{}", std::process::id()));
    let created = fs::create_dir(&unfinished).await;
    created
        .and_then(|()| binaries.hand_over(&unfinished))
        .with_context(|| could_not("create", &unfinished))?;
    let mut initdb = binaries.command("initdb", &unfinished)?;
    initdb.args(["--username=countersign", "--auth=scram-sha-256"]);
    initdb.args(["--encoding=UTF8", "--locale=C", "-D"]);
    initdb.arg(&unfinished).arg("--pwfile").arg(password_file);
    binaries.run(initdb, "initialise a database", "").await?;
    let renamed = fs::rename(&unfinished, data).await;
    renamed.with_context(|| could_not("create", data))
}

fn write_password(path: &Path) -> io::Result<()> {
    let password = random_text::<24>().map_err(io::Error::other)?;
    write_private(path, password.as_bytes())
}

/// Removes what interrupted initialisations left. Failures do not matter: nothing depends on it.
async fn sweep_unfinished(data_dir: &Path) {
    let Ok(mut entries) = fs::read_dir(data_dir).await else {
        return;
    };
    while let Ok(Some(entry)) = entries.next_entry().await {
        let name = entry.file_name();
        if name.as_bytes().starts_with(UNFINISHED.as_bytes()) {
            let _ = fs::remove_dir_all(entry.path()).await;
        }
    }
}

/// Stops the server of an earlier run that was killed before it could do so.
async fn stop_leftover(binaries: &PostgresBinaries, data: &Path) -> anyhow::Result<()> {
    let Some(PidFile { pid, .. }) = PidFile::read(data).await else {
        return Ok(());
    };
    // By now the id may belong to another process, or to a zombie. Either would keep PostgreSQL
    // from starting; the command line distinguishes them from a server.
    if Path::new("/proc/self").exists() {
        let words = fs::read(format!("/proc/{pid}/cmdline")).await;
        let words = words.unwrap_or_default();
        let path = data.as_os_str().as_bytes();
        if !words.split(|byte| *byte == 0).any(|word| word == path) {
            let _ = fs::remove_file(data.join("postmaster.pid")).await;
            return Ok(());
        }
    } else if kill(Pid::from_raw(pid), None).is_err() {
        return Ok(());
    }
    tracing::info!(pid, "stopping a PostgreSQL left by an earlier run");
    let mut pg_ctl = binaries.command("pg_ctl", data)?;
    pg_ctl.args(["stop", "-m", "fast", "-w", "-t", "60", "-D"]);
    pg_ctl.arg(data);
    let what = "stop the server of an earlier run";
    match binaries.run(pg_ctl, what, "").await {
        // It was already stopping and has ended.
        Err(_) if PidFile::read(data).await.is_none() => Ok(()),
        outcome => outcome,
    }
}

/// Starts a server, waits until it accepts connections, and returns it with its port.
async fn launch(binaries: &PostgresBinaries, data: &Path) -> anyhow::Result<(PostgresServer, u16)> {
    for _ in 0..PORTS_TO_TRY {
        let port = free_port().await;
        let port = port.with_context(|| could_not("find a port for", data))?;
        let mut postgres = binaries.command("postgres", data)?;
        // No socket file: nothing uses it, and it would limit the length of `data_dir`.
        postgres.arg("-D").arg(data);
        postgres.args(["--unix_socket_directories=", "--max_connections=300"]);
        postgres.args(["--listen_addresses=127.0.0.1", "-p", &port.to_string()]);
        let child = postgres.spawn();
        let child = child.with_context(|| could_not("run postgres in", data))?;
        let mut server = PostgresServer { child };
        match timeout(START_TIMEOUT, server.ready(data)).await {
            Ok(true) => return Ok((server, port)),
            Ok(false) if binaries.log_tail().contains("Address already in use") => {}
            Ok(false) => break,
            Err(_) => return Err(binaries.failed("start PostgreSQL in time")),
        }
    }
    Err(binaries.failed("start PostgreSQL"))
}

async fn free_port() -> io::Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    Ok(listener.local_addr()?.port())
}

struct PidFile {
    pid: i32,
    ready: bool,
}

impl PidFile {
    async fn read(data: &Path) -> Option<Self> {
        let text = fs::read_to_string(data.join("postmaster.pid")).await.ok()?;
        let mut lines = text.lines();
        let pid = lines.next()?.trim().parse().ok()?;
        // The eighth line is the status: starting, ready, stopping.
        let ready = lines.nth(6).is_some_and(|status| status.trim() == "ready");
        Some(Self { pid, ready })
    }
}
