//! The nodes of `countersign dev`, each a process. Each stops when its standard input, a pipe from
//! us, ends, so that none outlives us.

use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use super::data_dir::{DataDir, tail};
use super::demo::DemoAccounts;
use super::lan::LanService;
use super::options::DevOptions;
use countersign::config::Config;

const START_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long a node may take beyond its drain before it is killed.
const STOP_GRACE: Duration = Duration::from_secs(6);

/// As docker-compose.yml and the other deployments set them.
const STRICT: [(&str, &str); 3] = [
    ("COUNTERSIGN_DECISIONS__VERIFY", "required"),
    ("COUNTERSIGN_ARTIFACTS__OPEN", "false"),
    ("COUNTERSIGN_PAIRING__REQUIRED", "true"),
];
const RATES: &str = "COUNTERSIGN_RATES__ENABLED";
const THREADS: &str = "TOKIO_WORKER_THREADS";

struct NodeProcess {
    child: Child,
    pid: u32,
    exited: bool,
}

/// What all nodes have in common.
pub struct NodeSettings<'a> {
    pub options: &'a DevOptions,
    pub config: &'a Config,
    pub demo: &'a DemoAccounts,
    pub data_dir: &'a DataDir,
    /// The database as a role under row-level security.
    pub restricted_url: Option<String>,
    pub lan: Option<&'a LanService>,
}

pub struct DevNodes {
    members: Vec<NodeProcess>,
    /// Those on loopback. The node of the local network is not among them.
    pub urls: Vec<String>,
    /// The addresses of all nodes' metrics, in the same order, the local network's last.
    pub metrics: Vec<String>,
    log: PathBuf,
    time_limit: Duration,
}

impl DevNodes {
    /// Starts all nodes and waits until each is ready.
    pub async fn start(settings: &NodeSettings<'_>) -> anyhow::Result<Self> {
        let (options, config) = (settings.options, settings.config);
        let run_dir = settings.data_dir.run_dir();
        let time_limit = Duration::from_secs(config.server.drain_seconds) + STOP_GRACE;
        let mut nodes = Self {
            members: Vec::new(),
            urls: Vec::new(),
            metrics: Vec::new(),
            log: settings.data_dir.log_file(),
            time_limit,
        };
        let mut listens = Vec::new();
        for index in 0..options.nodes {
            listens.push((options.address(index)?, None));
        }
        listens.extend(settings.lan.map(|lan| (lan.address, Some(lan))));
        let mut ready_files = Vec::new();
        for (index, (listen, lan)) in (0..).zip(listens) {
            let name = match lan {
                None => format!("node-{}", index + 1),
                Some(_) => "lan".to_owned(),
            };
            let ready_file = run_dir.join(format!("{name}.json"));
            drop(std::fs::remove_file(&ready_file));
            let mut command = settings.command(&name, listen, lan)?;
            command.env(
                "COUNTERSIGN_TELEMETRY__METRICS_LISTEN",
                metrics_listen(config, index)?,
            );
            nodes
                .members
                .push(spawn(command.arg("--ready-file").arg(&ready_file))?);
            ready_files.push((ready_file, lan.is_some()));
        }
        for (index, (file, is_lan)) in ready_files.iter().enumerate() {
            match nodes.await_ready(index, file).await {
                Ok(text) => {
                    let mut lines = text.lines().map(str::to_owned);
                    nodes.urls.extend(lines.next().filter(|_| !is_lan));
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
                    "node {} ended before it was ready ({status}); the end of {}:\n{}",
                    index + 1,
                    self.log.display(),
                    tail(&self.log)
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
                "every node has ended; the end of {}:\n{}",
                self.log.display(),
                tail(&self.log)
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

/// The address of a node's metrics: the port after its predecessor's. The node uses a free one if
/// that is taken, for instance by another node on this machine.
fn metrics_listen(config: &Config, index: u16) -> anyhow::Result<String> {
    let Some(mut address) = config.telemetry.metrics_address()? else {
        return Ok(String::new());
    };
    if address.port() != 0 {
        address.set_port(address.port().checked_add(index).unwrap_or_default());
    }
    Ok(address.to_string())
}

impl NodeSettings<'_> {
    /// The command that runs one node. Its settings are passed in the environment, so that no key
    /// appears in the list of processes.
    fn command(
        &self,
        name: &str,
        listen: SocketAddr,
        lan: Option<&LanService>,
    ) -> anyhow::Result<Command> {
        let options = self.options;
        // No rate limits for experiments, unless they are asked for. Others can reach the local
        // network's node.
        let limited = options.strict || lan.is_some();
        let rates = std::env::var(RATES).unwrap_or_else(|_| limited.to_string());
        // The nodes share one machine: more threads than cores would cost context switches.
        let threads = std::env::var(THREADS).unwrap_or_else(|_| {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            (cores / usize::from(options.nodes)).max(1).to_string()
        });
        let config_file = options.config_file.as_ref();
        let config_flag = config_file.map(|file| format!("--config={}", file.display()));
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["serve", "--stop-with-stdin", "--any-metrics-port"])
            .args(config_flag)
            .env("COUNTERSIGN_SERVER__LISTEN", listen.to_string())
            .env("COUNTERSIGN_NODE__ID", name)
            // Files from the environment must not replace the values below.
            .env("COUNTERSIGN_DATABASE__URL_FILE", "")
            .env("COUNTERSIGN_DATABASE__LISTEN_URL_FILE", "")
            .env("COUNTERSIGN_PLATFORM__OPERATOR_KEY_FILE", "")
            .env("COUNTERSIGN_SECURITY__CLUSTER_SECRET_FILE", "")
            // There is no load balancer that would have to notice.
            .env("COUNTERSIGN_SERVER__LAME_DUCK_MS", "0")
            .env(RATES, rates)
            .env(THREADS, threads)
            // Empty: the same as the URL.
            .env("COUNTERSIGN_DATABASE__LISTEN_URL", "")
            .env("COUNTERSIGN_PLATFORM__OPERATOR_KEY", &self.demo.operator)
            .env(
                "COUNTERSIGN_SECURITY__CLUSTER_SECRET",
                self.config.security.cluster_secret.expose(),
            )
            .stdin(Stdio::piped())
            .stderr(self.data_dir.open_log()?);
        if options.strict {
            command.envs(STRICT);
        }
        let usual_url = self.config.database.url.expose();
        let url = self.restricted_url.as_deref().unwrap_or(usual_url);
        command.env("COUNTERSIGN_DATABASE__URL", url);
        if self.restricted_url.is_some() {
            command.env("COUNTERSIGN_DATABASE__ROW_SECURITY", "true");
        }
        match lan {
            // The addresses that are printed are plain HTTP, on loopback.
            None => command.env("COUNTERSIGN_TLS__MODE", "off"),
            Some(lan) => command
                .env("COUNTERSIGN_TLS__MODE", "on")
                .env("COUNTERSIGN_TLS__CERT_FILE", &lan.certificate)
                .env("COUNTERSIGN_TLS__KEY_FILE", &lan.key),
        };
        if let Some(lan) = self.lan {
            // Links of every node lead to an address that a phone can reach.
            command.env("COUNTERSIGN_PAGE__URL", lan.url());
        }
        Ok(command)
    }
}

fn spawn(command: &mut Command) -> anyhow::Result<NodeProcess> {
    let child = command
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
