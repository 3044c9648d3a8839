//! Patroni from the distribution's packages: an agent for each server, the etcd in which they elect
//! the primary, and `HAProxy`, which leads to whichever server is the primary.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::process::Child;
use tokio::time::{Instant, sleep};

use super::programs::{Postgres, free_port, haproxy, is_installed, run, send, text};
use super::server::{SETTINGS, Server};

const PATIENCE: Duration = Duration::from_secs(90);
/// Patroni's documentation asks for `loop_wait + 2 * retry_timeout <= ttl`, and its later versions
/// for a `ttl` of at least 20 s.
const TIMES: &str = "ttl: 20, loop_wait: 5, retry_timeout: 5";

pub struct Patroni {
    /// Where connections lead to the primary; those to a server that stops being it are closed.
    pub closing: u16,
    /// The same, but connections stay where they are, as with an address that moves.
    pub keeping: u16,
    agents: [Agent; 2],
    programs: Postgres,
    http: reqwest::Client,
    etcd: Child,
    _proxy: Child,
}

/// The machine of one server: Patroni's agent, and the server that it starts.
struct Agent {
    name: &'static str,
    configuration: PathBuf,
    log: PathBuf,
    /// Where the server's files are.
    data: PathBuf,
    /// Of its REST API.
    port: u16,
    process: Option<Child>,
}

impl Patroni {
    /// Starts everything, and waits until the second server is a synchronous standby of the first.
    pub async fn start(
        programs: &Postgres,
        servers: &[Server; 2],
        directory: &Path,
    ) -> anyhow::Result<Self> {
        for program in ["patroni", "patronictl", "etcd"] {
            anyhow::ensure!(
                is_installed(program),
                "--patroni needs Patroni and etcd, and there is no {program}: run scripts/install patroni etcd"
            );
        }
        let [clients, peers] = [free_port()?, free_port()?];
        let [first, second] = servers;
        let agents = [
            Agent::new("postgres-1", first, clients, programs, directory)?,
            Agent::new("postgres-2", second, clients, programs, directory)?,
        ];
        let (closing, keeping) = (free_port()?, free_port()?);
        let proxy = proxy(servers, &agents, closing, keeping);
        let mut patroni = Self {
            closing,
            keeping,
            agents,
            programs: programs.clone(),
            http: reqwest::Client::builder()
                .timeout(Duration::from_secs(1))
                .build()?,
            etcd: etcd(programs, directory, clients, peers)?,
            _proxy: haproxy(directory, "haproxy-postgres", &proxy, &[])?,
        };
        // The first one initialises the cluster.
        patroni.agent_mut(0).start(programs)?;
        patroni.elects(&[0]).await?;
        patroni.agent_mut(1).start(programs)?;
        patroni.has_standby().await?;
        Ok(patroni)
    }

    fn agent(&self, number: usize) -> &Agent {
        let [first, second] = &self.agents;
        if number == 0 { first } else { second }
    }

    fn agent_mut(&mut self, number: usize) -> &mut Agent {
        let [first, second] = &mut self.agents;
        if number == 0 { first } else { second }
    }

    async fn says_yes(&self, number: usize, path: &str) -> bool {
        let url = format!("http://127.0.0.1:{}/{path}", self.agent(number).port);
        let answer = self.http.get(url).send().await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    /// The server whose agent calls it the primary, as `HAProxy` asks.
    pub async fn primary(&self) -> Option<usize> {
        let (first, second) =
            tokio::join!(self.says_yes(0, "primary"), self.says_yes(1, "primary"));
        match (first, second) {
            (true, false) => Some(0),
            (false, true) => Some(1),
            _ => None,
        }
    }

    /// Waits until one of these servers is the primary.
    pub async fn elects(&self, wanted: &[usize]) -> anyhow::Result<usize> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(primary) = self.primary().await.filter(|one| wanted.contains(one)) {
                return Ok(primary);
            }
            anyhow::ensure!(Instant::now() < deadline, "Patroni has no primary");
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until there is no primary any more.
    pub async fn demotes(&self) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while self.primary().await.is_some() {
            anyhow::ensure!(Instant::now() < deadline, "Patroni demotes nobody");
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Waits until one server follows, commits wait for it, and Patroni has noted that it may take
    /// over.
    async fn has_standby(&self) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !(self.says_yes(0, "sync").await || self.says_yes(1, "sync").await) {
            anyhow::ensure!(
                Instant::now() < deadline,
                "Patroni has no synchronous standby"
            );
            sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    /// The machine dies: agent and server end at once.
    pub async fn kill(&mut self, number: usize) -> anyhow::Result<()> {
        self.agent_mut(number).kill().await
    }

    /// Stops or continues the agent alone; its server runs on.
    pub fn signal(&self, number: usize, signal: Signal) {
        send(
            self.agent(number).process.as_ref().and_then(Child::id),
            signal,
        );
    }

    pub fn signal_etcd(&self, signal: Signal) {
        send(self.etcd.id(), signal);
    }

    /// Starts what was killed, continues what was stopped, and waits until commits wait for a
    /// standby again.
    pub async fn repair(&mut self) -> anyhow::Result<()> {
        for number in [0, 1] {
            self.signal(number, Signal::SIGCONT);
        }
        for agent in &mut self.agents {
            if agent.process.is_none() {
                agent.start(&self.programs)?;
            }
        }
        self.has_standby().await
    }

    /// Has the standby take over from the primary, as an operator would. The command waits until
    /// that is done.
    pub fn switch_over(&self, from: usize) -> anyhow::Result<Child> {
        let (from, to) = (self.agent(from), self.agent(1 - from));
        let log = File::options().create(true).append(true).open(&from.log)?;
        let command = self
            .programs
            .command_of("TERM", Path::new("patronictl"))
            .arg("-c")
            .arg(&from.configuration)
            .args(["switchover", "--leader", from.name])
            .args(["--candidate", to.name, "--force"])
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        Ok(command)
    }
}

impl Agent {
    fn new(
        name: &'static str,
        server: &Server,
        etcd: u16,
        programs: &Postgres,
        directory: &Path,
    ) -> anyhow::Result<Self> {
        let agent = Self {
            name,
            configuration: directory.join(format!("{name}.yml")),
            log: directory.join(format!("{name}.log")),
            data: server.data(),
            port: free_port()?,
            process: None,
        };
        // pg_rewind needs full_page_writes.
        let left_out = |line: &&str| line.starts_with("include") || line.starts_with("full_page");
        let parameters: Vec<String> = SETTINGS
            .lines()
            .filter(|line| !left_out(line))
            .filter_map(|line| line.split_once(" = "))
            .map(|(name, value)| format!("{name}: '{}'", value.trim_matches('\'')))
            .collect();
        let (rest, port) = (agent.port, server.port);
        let configuration = format!(
            "
scope: chaos
name: {name}
restapi: {{listen: '127.0.0.1:{rest}', connect_address: '127.0.0.1:{rest}'}}
etcd: {{host: '127.0.0.1:{etcd}'}}
bootstrap:
  dcs: {{{TIMES}, synchronous_mode: true, postgresql: {{use_pg_rewind: true, parameters: {{{}}}}}}}
  initdb: [encoding: UTF8, locale: C, data-checksums, no-sync]
postgresql:
  listen: '127.0.0.1:{port}'
  connect_address: '127.0.0.1:{port}'
  data_dir: {}
  bin_dir: {}
  pgpass: {}
  pg_hba: [host all all 127.0.0.1/32 trust, host replication all 127.0.0.1/32 trust]
  authentication: {{superuser: {{username: countersign}}, replication: {{username: countersign}}}}
",
            parameters.join(", "),
            text(&agent.data)?,
            text(programs.directory())?,
            text(&agent.data.with_file_name("pgpass"))?,
        );
        std::fs::write(&agent.configuration, configuration)?;
        Ok(agent)
    }

    /// Starts it, without waiting.
    fn start(&mut self, programs: &Postgres) -> anyhow::Result<()> {
        let log = File::options().create(true).append(true).open(&self.log)?;
        // Told to end, it stops its server.
        let process = programs
            .command_of("TERM", Path::new("patroni"))
            .arg(&self.configuration)
            .env("HOME", self.data.parent().unwrap_or(&self.data))
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        self.process = Some(process);
        Ok(())
    }

    async fn kill(&mut self) -> anyhow::Result<()> {
        self.kill_server();
        if let Some(mut process) = self.process.take() {
            process.kill().await?;
        }
        // It may have started another before it died.
        self.kill_server();
        Ok(())
    }

    /// The server is not our child; it has left its number in a file.
    fn kill_server(&self) {
        let file = std::fs::read_to_string(self.data.join("postmaster.pid")).unwrap_or_default();
        let pid = file.lines().next().and_then(|pid| pid.parse().ok());
        let mine = pid.is_some_and(|pid: u32| {
            let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline"));
            command.is_ok_and(|command| {
                self.data
                    .to_str()
                    .is_some_and(|data| command.contains(data))
            })
        });
        if mine {
            send(pid, Signal::SIGKILL);
        }
    }
}

impl Drop for Agent {
    /// A killed agent leaves its server running.
    fn drop(&mut self) {
        send(self.process.as_ref().and_then(Child::id), Signal::SIGKILL);
        self.kill_server();
    }
}

/// With etcd's older protocol: over the newer one, Patroni up to 3.0.2 lets an agent that was
/// stopped take the lead back from its successor, and what that one has acknowledged is lost.
fn etcd(programs: &Postgres, directory: &Path, clients: u16, peers: u16) -> anyhow::Result<Child> {
    let data = directory.join("etcd");
    programs.make_directory(&data)?;
    run("chmod", &["700", text(&data)?])?;
    let log = File::create(directory.join("etcd.log"))?;
    let url = |port: u16| format!("http://127.0.0.1:{port}");
    let process = programs
        .command_of("KILL", Path::new("etcd"))
        .arg("--data-dir")
        .arg(data)
        .args(["--listen-client-urls", &url(clients)])
        .args(["--advertise-client-urls", &url(clients)])
        .args(["--listen-peer-urls", &url(peers)])
        .args(["--initial-advertise-peer-urls", &url(peers)])
        .args(["--initial-cluster", &format!("default={}", url(peers))])
        .args(["--enable-v2", "--unsafe-no-fsync"])
        // Its release 3.4 runs on other processors than amd64 only if told so.
        .env(
            "ETCD_UNSUPPORTED_ARCH",
            std::env::consts::ARCH.replace("aarch64", "arm64"),
        )
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()?;
    Ok(process)
}

/// The configuration that comes with Patroni, which checks every 3 s.
fn proxy(servers: &[Server; 2], agents: &[Agent; 2], closing: u16, keeping: u16) -> String {
    let servers: Vec<String> = servers
        .iter()
        .zip(agents)
        .map(|(server, agent)| {
            let (name, port, rest) = (agent.name, server.port, agent.port);
            format!("    server {name} 127.0.0.1:{port} check port {rest}")
        })
        .collect();
    let servers = servers.join("\n");
    let listen = |name, port, option| {
        format!(
            "
listen {name}
    bind 127.0.0.1:{port}
    option httpchk GET /primary
    http-check expect status 200
    default-server inter 3s fall 3 rise 2 {option}
{servers}
"
        )
    };
    let defaults = "
global
    maxconn 2000
defaults
    mode tcp
    retries 2
    timeout client 30m
    timeout connect 4s
    timeout server 30m
    timeout check 5s
";
    [
        defaults.to_owned(),
        listen("closing", closing, "on-marked-down shutdown-sessions"),
        listen("keeping", keeping, ""),
    ]
    .concat()
}
