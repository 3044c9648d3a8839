//! Nodes that are processes, on fixed ports, so that they can be killed or restarted under a
//! client's feet.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::cluster::CLUSTER_SECRET;
use super::process::{Process, Signal, countersign, signal};

/// A node that is a process.
pub struct FleetNode {
    /// Where it listens, also after a restart.
    pub url: String,
    process: Option<Process>,
}

/// Several of them, on one database.
pub struct Fleet {
    /// The nodes.
    pub nodes: Vec<FleetNode>,
    database_url: String,
    directory: tempfile::TempDir,
    starts: usize,
    settings: Vec<(String, String)>,
}

impl Fleet {
    /// Starts `count` nodes.
    pub fn start(database_url: &str, count: usize) -> Self {
        Self::start_with(database_url, count, &[])
    }

    /// Starts `count` nodes with settings of their own, as environment variables without our
    /// prefix.
    pub fn start_with(database_url: &str, count: usize, settings: &[(&str, &str)]) -> Self {
        let mut fleet = Self::empty(database_url, settings);
        for _ in 0..count {
            fleet.add("127.0.0.1:0");
        }
        fleet
    }

    /// Starts a node on each of these addresses of this machine, all on the same port, as in
    /// containers.
    pub fn start_alike(database_url: &str, hosts: &[&str], settings: &[(&str, &str)]) -> Self {
        let mut fleet = Self::empty(database_url, settings);
        for host in hosts {
            fleet.add_alike(host);
        }
        fleet
    }

    /// One more on another address, and the same port.
    pub fn add_alike(&mut self, host: &str) {
        let port = match self.nodes.first() {
            Some(node) => node.url.rsplit(':').next().expect("a port").to_owned(),
            None => "0".to_owned(),
        };
        self.add(&format!("{host}:{port}"));
    }

    fn add(&mut self, listen: &str) {
        let (url, process) = self.spawn(listen);
        self.nodes.push(FleetNode {
            url,
            process: Some(process),
        });
    }

    fn empty(database_url: &str, settings: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        Self {
            nodes: Vec::new(),
            database_url: database_url.to_owned(),
            directory,
            starts: 0,
            settings: settings
                .iter()
                .map(|(name, value)| (format!("COUNTERSIGN_{name}"), (*value).to_owned()))
                .collect(),
        }
    }

    /// Every node's address.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.url.clone()).collect()
    }

    fn spawn(&mut self, listen: &str) -> (String, Process) {
        self.starts += 1;
        let ready: PathBuf = self.directory.path().join(format!("ready-{}", self.starts));
        let mut process = Process::start(
            countersign()
                .args([
                    "--database-url",
                    &self.database_url,
                    "serve",
                    "--listen",
                    listen,
                    "--ready-file",
                ])
                .arg(&ready)
                .env("COUNTERSIGN_LOG__FILTER", "error")
                .env("COUNTERSIGN_RATES__ENABLED", "false")
                .env("COUNTERSIGN_SECURITY__CLUSTER_SECRET", CLUSTER_SECRET)
                .env("COUNTERSIGN_PUSH__DRAIN_SPREAD_MS", "200")
                .env("COUNTERSIGN_SERVER__LAME_DUCK_MS", "500")
                .env("COUNTERSIGN_PUSH__REOFFER_SECONDS", "1")
                .envs(self.settings.iter().cloned()),
        );
        let url = process.await_file(&ready);
        (url, process)
    }

    /// The process id of a node.
    pub fn pid(&self, node: usize) -> u32 {
        self.nodes[node].process.as_ref().expect("it runs").pid()
    }

    /// Kills a node without a word.
    pub fn kill(&mut self, node: usize) {
        if let Some(mut process) = self.nodes[node].process.take() {
            process.kill();
        }
    }

    /// Kills a node without a word and starts it again.
    pub fn kill_and_restart(&mut self, node: usize) {
        self.kill(node);
        self.restart(node);
    }

    /// Drains a node, waits for its end, and starts it again.
    pub fn drain_and_restart(&mut self, node: usize) {
        let process = self.nodes[node].process.take().expect("it runs");
        signal(process.pid(), Signal::SIGTERM);
        assert!(process.end().0, "it ends well");
        self.restart(node);
    }

    /// Starts a node again that was killed.
    pub fn restart(&mut self, node: usize) {
        let listen = self.nodes[node].url.replace("http://", "");
        let (url, process) = self.spawn(&listen);
        assert_eq!(url, self.nodes[node].url);
        self.nodes[node].process = Some(process);
    }
}

/// Set when dropped: a test that fails also stops the tasks that kill or restart its nodes.
pub struct Finally(pub Arc<AtomicBool>);

impl Drop for Finally {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Resident memory of a process, in KiB.
pub fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .expect("VmRSS");
    line.split_whitespace()
        .nth(1)
        .expect("a number")
        .parse()
        .expect("a number")
}

/// How long whole runs may take on a slow machine.
pub const LONG: Duration = Duration::from_secs(180);
