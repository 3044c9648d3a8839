//! Nodes as a user starts them: `countersign dev` on a database, each node a process.

use std::ops::Deref;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use serde::Deserialize;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use super::postgres::Database;

/// How long nodes may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// Nodes while they run.
pub struct Running {
    nodes: Nodes,
    database: Database,
    child: Child,
    _data: TempDir,
}

/// How nodes are reached.
#[derive(Clone)]
pub struct Nodes {
    /// Where each listens: `127.0.0.1:8080`.
    pub addresses: Vec<String>,
    /// Where the metrics of each are read, if anywhere.
    pub metrics: Vec<String>,
    /// Their processes.
    pub pids: Vec<u32>,
    /// Their database.
    pub url: String,
    /// Acts as any enforcer.
    pub enforcer: String,
    /// Acts as any approver.
    pub approver: String,
    /// Registers keys.
    pub admin: String,
    /// The tenant of all of them.
    pub tenant: String,
}

/// A caller's key.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Key {
    api_key: String,
}

/// The file that tells they are ready.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ready {
    nodes: Vec<String>,
    metrics: Vec<String>,
    pids: Vec<u32>,
    tenant_id: String,
    admin: Key,
    enforcer: Key,
    approver: Key,
}

impl Deref for Running {
    type Target = Nodes;

    fn deref(&self) -> &Nodes {
        &self.nodes
    }
}

impl Running {
    /// Starts this many on a database, with settings as environment variables.
    pub async fn start(
        database: Database,
        count: usize,
        settings: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let data = TempDir::new()?;
        let file = data.path().join("ready.json");
        let mut child = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(["dev", "--listen", "127.0.0.1:0", "--nodes"])
            .arg(count.to_string())
            .args(["--database-url", &database.url, "--ready-file"])
            .arg(&file)
            .arg("--data-dir")
            .arg(data.path().join("data"))
            .env("COUNTERSIGN_LOG__FILTER", "warn")
            // Near its limit an inbox is counted for every submission; ten thousand pending are not
            // to be near it.
            .env("COUNTERSIGN_LIMITS__PENDING_PER_APPROVER", "100000")
            .envs(settings.iter().copied())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let deadline = Instant::now() + PATIENCE;
        let text = loop {
            if let Ok(text) = std::fs::read_to_string(&file) {
                break text;
            }
            anyhow::ensure!(child.try_wait()?.is_none(), "the nodes ended");
            anyhow::ensure!(Instant::now() < deadline, "the nodes are not ready");
            sleep(Duration::from_millis(20)).await;
        };
        let ready: Ready = serde_json::from_str(&text)?;
        let addresses = |urls: Vec<String>| {
            let urls = urls.into_iter();
            urls.map(|url| url.replace("http://", "")).collect()
        };
        let nodes = Nodes {
            addresses: addresses(ready.nodes),
            metrics: addresses(ready.metrics),
            pids: ready.pids,
            url: database.url.clone(),
            enforcer: ready.enforcer.api_key,
            approver: ready.approver.api_key,
            admin: ready.admin.api_key,
            tenant: ready.tenant_id,
        };
        Ok(Self {
            nodes,
            database,
            child,
            _data: data,
        })
    }

    /// Stops them, waits for their end, and takes their database away.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        let pid = self.child.id().context("they ended already")?;
        let pid = nix::unistd::Pid::from_raw(i32::try_from(pid)?);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM)?;
        self.child.wait().await?;
        self.database.remove().await
    }
}

impl Nodes {
    /// A node, in turn.
    pub fn address(&self, turn: usize) -> &str {
        self.addresses
            .get(turn % self.addresses.len().max(1))
            .map_or("", String::as_str)
    }

    /// Resident memory of a node, in KiB.
    pub fn resident_kib(&self, node: usize) -> anyhow::Result<f64> {
        resident_kib(*self.pids.get(node).context("no such node")?)
    }
}

/// Resident memory of a process, in KiB.
pub fn resident_kib(pid: u32) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| rest.trim().split(' ').next()?.parse().ok());
    kib.context("no VmRSS")
}
