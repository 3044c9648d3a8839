//! The nodes of `countersign dev`, each a process. Each stops when its standard input, a pipe from
//! us, ends, so that none outlives us.

use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use super::demo::DemoAccounts;
use super::options::DevOptions;
use countersign::config::Config;

const START_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long a node may take beyond its drain before it is killed.
const STOP_GRACE: Duration = Duration::from_secs(6);

const RATES: &str = "COUNTERSIGN_RATES__ENABLED";
const THREADS: &str = "TOKIO_WORKER_THREADS";

struct NodeProcess {
    child: Child,
    pid: u32,
    exited: bool,
}

pub struct DevNodes {
    members: Vec<NodeProcess>,
    pub urls: Vec<String>,
    /// The addresses of their metrics, in the same order.
    pub metrics: Vec<String>,
    time_limit: Duration,
}

impl DevNodes {
    /// Starts all nodes and waits until each is ready.
    pub async fn start(
        options: &DevOptions,
        config: &Config,
        demo: &DemoAccounts,
        data_dir: &Path,
    ) -> anyhow::Result<Self> {
        let run_dir = data_dir.join("run");
        std::fs::create_dir_all(&run_dir)?;
        let time_limit = Duration::from_secs(config.server.drain_seconds) + STOP_GRACE;
        let mut nodes = Self {
            members: Vec::new(),
            urls: Vec::new(),
            metrics: Vec::new(),
            time_limit,
        };
        let mut ready_files = Vec::new();
        for index in 0..options.nodes {
            let name = format!("node-{}", index + 1);
            let ready_file = run_dir.join(format!("{name}.json"));
            drop(std::fs::remove_file(&ready_file));
            nodes.members.push(spawn(
                &name,
                options.address(index)?,
                &metrics_listen(config, index)?,
                &ready_file,
                config,
                demo,
                options,
            )?);
            ready_files.push(ready_file);
        }
        for (index, file) in ready_files.iter().enumerate() {
            match nodes.await_ready(index, file).await {
                Ok(text) => {
                    let mut lines = text.lines().map(str::to_owned);
                    nodes.urls.extend(lines.next());
                    nodes.metrics.extend(lines.next());
                }
                Err(error) => {
                    nodes.stop().await;
                    return Err(error);
                }
            }
        }
        Ok(nodes)
    }

    async fn await_ready(&mut self, index: usize, file: &PathBuf) -> anyhow::Result<String> {
        let deadline = Instant::now() + START_TIMEOUT;
        let member = self.members.get_mut(index).context("no such node")?;
        loop {
            if let Ok(text) = std::fs::read_to_string(file) {
                return Ok(text);
            }
            if let Some(status) = member.child.try_wait()? {
                member.exited = true;
                anyhow::bail!(
                    "node {} ended before it was ready ({status}); its log on standard error, above, says why",
                    index + 1
                );
            }
            anyhow::ensure!(
                Instant::now() < deadline,
                "node {} is not ready after {START_TIMEOUT:?}",
                index + 1
            );
            sleep(POLL_INTERVAL).await;
        }
    }

    pub fn pids(&self) -> Vec<u32> {
        self.members.iter().map(|member| member.pid).collect()
    }

    /// Waits for `stop`, or for the last node to end.
    pub async fn watch(&mut self, stop: &CancellationToken) -> anyhow::Result<()> {
        loop {
            let pause = sleep(Duration::from_millis(200));
            if stop.run_until_cancelled(pause).await.is_none() {
                return Ok(());
            }
            for (index, member) in self
                .members
                .iter_mut()
                .enumerate()
                .filter(|(_, member)| !member.exited)
            {
                if let Some(status) = member.child.try_wait()? {
                    member.exited = true;
                    tracing::warn!(
                        node = index + 1,
                        code = status.code(),
                        signal = status.signal(),
                        "a node ended"
                    );
                }
            }
            anyhow::ensure!(
                self.members.iter().any(|member| !member.exited),
                "every node has ended; their logs on standard error, above, say why"
            );
        }
    }

    /// Drains all nodes at once and waits for their end.
    pub async fn stop(&mut self) {
        for member in self.members.iter().filter(|member| !member.exited) {
            if let Ok(pid) = i32::try_from(member.pid) {
                let _already_gone = kill(Pid::from_raw(pid), Signal::SIGTERM);
            }
        }
        let deadline = Instant::now() + self.time_limit;
        for member in self.members.iter_mut().filter(|member| !member.exited) {
            let exit = timeout_at(deadline, member.child.wait()).await;
            if exit.is_err() {
                tracing::warn!(
                    pid = member.pid,
                    "a node did not stop in time and is killed"
                );
                drop(member.child.kill().await);
            }
            member.exited = true;
        }
    }
}

/// The address of a node's metrics: the port after its predecessor's, or a free one if that is
/// taken, for instance by another node on this machine.
fn metrics_listen(config: &Config, index: u16) -> anyhow::Result<String> {
    let Some(mut address) = config.telemetry.metrics_address()? else {
        return Ok(String::new());
    };
    if address.port() != 0 {
        address.set_port(address.port().checked_add(index).unwrap_or_default());
        if std::net::TcpListener::bind(address).is_err() {
            address.set_port(0);
        }
    }
    Ok(address.to_string())
}

/// Starts one node. Its settings are passed in the environment, so that no key appears in the list
/// of processes.
fn spawn(
    name: &str,
    listen: SocketAddr,
    metrics: &str,
    ready_file: &Path,
    config: &Config,
    demo: &DemoAccounts,
    options: &DevOptions,
) -> anyhow::Result<NodeProcess> {
    // No rate limits for experiments, unless they are asked for.
    let rates = std::env::var(RATES).unwrap_or_else(|_| "false".to_owned());
    // The nodes share one machine: more threads than cores would cost context switches.
    let threads = std::env::var(THREADS).unwrap_or_else(|_| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        (cores / usize::from(options.nodes)).max(1).to_string()
    });
    let config_file = options.config_file.as_ref();
    let config_flag = config_file.map(|file| format!("--config={}", file.display()));
    let child = Command::new(std::env::current_exe()?)
        .args(["serve", "--stop-with-stdin", "--ready-file"])
        .arg(ready_file)
        .args(config_flag)
        .env("COUNTERSIGN_SERVER__LISTEN", listen.to_string())
        .env("COUNTERSIGN_NODE__ID", name)
        .env("COUNTERSIGN_TELEMETRY__METRICS_LISTEN", metrics)
        // Files from the environment must not replace the values below.
        .env("COUNTERSIGN_DATABASE__URL_FILE", "")
        .env("COUNTERSIGN_DATABASE__LISTEN_URL_FILE", "")
        .env("COUNTERSIGN_PLATFORM__OPERATOR_KEY_FILE", "")
        .env("COUNTERSIGN_SECURITY__CLUSTER_SECRET_FILE", "")
        // The addresses that are printed are plain HTTP, on loopback.
        .env("COUNTERSIGN_TLS__MODE", "off")
        // There is no load balancer that would have to notice.
        .env("COUNTERSIGN_SERVER__LAME_DUCK_MS", "0")
        .env(RATES, rates)
        .env(THREADS, threads)
        // Empty: the same as the URL.
        .env("COUNTERSIGN_DATABASE__LISTEN_URL", "")
        .env("COUNTERSIGN_DATABASE__URL", config.database.url.expose())
        .env("COUNTERSIGN_PLATFORM__OPERATOR_KEY", &demo.operator)
        .env(
            "COUNTERSIGN_SECURITY__CLUSTER_SECRET",
            config.security.cluster_secret.expose(),
        )
        .stdin(Stdio::piped())
        // Ctrl-C must reach this process only, which then drains the nodes.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .context("cannot start a node")?;
    let pid = child.id().context("a node ended at once")?;
    Ok(NodeProcess {
        child,
        pid,
        exited: false,
    })
}
