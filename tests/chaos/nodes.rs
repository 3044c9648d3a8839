//! The nodes, as processes of the real binary, and the balancer in front of them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use super::database::NAME;
use super::link::Link;
use super::programs::{dying_with_us, free_port, haproxy, send};

pub const COUNT: usize = 3;
/// The node whose clock can be moved.
pub const WITH_CLOCK: usize = 2;
const PATIENCE: Duration = Duration::from_secs(40);
const LIBRARIES: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/faketime/libfaketime.so.1",
];

/// The library that moves a process's clock, where it is installed.
pub fn faketime() -> Option<&'static str> {
    let mut known = LIBRARIES.into_iter();
    known.find(|path| Path::new(path).exists())
}

pub struct Node {
    pub port: u16,
    /// Between it and the database, for statements and for notifications.
    pub link: Link,
    pub listen_link: Link,
    number: usize,
    directory: PathBuf,
    starts: usize,
    process: Option<Child>,
    /// How often it ended though nobody told it to.
    pub exits: usize,
}

impl Node {
    pub async fn new(number: usize, database: u16, directory: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            port: free_port()?,
            link: Link::open(database).await?,
            listen_link: Link::open(database).await?,
            number,
            directory: directory.to_owned(),
            starts: 0,
            process: None,
            exits: 0,
        })
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(format!("node-{}.{name}", self.number))
    }

    /// Starts it, without waiting.
    pub fn spawn(&mut self) -> anyhow::Result<()> {
        self.starts += 1;
        let file = self.file("log");
        let log = File::options().create(true).append(true).open(file)?;
        let url = |link: &Link| {
            format!(
                "postgres://{NAME}@127.0.0.1:{}/{NAME}?sslmode=disable",
                link.port
            )
        };
        let mut command = dying_with_us("KILL");
        clean(&mut command)
            .arg(env!("CARGO_BIN_EXE_countersign"))
            .args(["--database-url", &url(&self.link), "serve", "--listen"])
            .arg(format!("127.0.0.1:{}", self.port))
            .arg("--ready-file")
            .arg(self.file(&format!("ready-{}", self.starts)))
            .env("COUNTERSIGN_DATABASE__LISTEN_URL", url(&self.listen_link))
            .env(
                "COUNTERSIGN_NODE__ID",
                format!("node-{}-{}", self.number, self.starts),
            )
            .env("COUNTERSIGN_LOG__FILTER", "warn")
            .env("COUNTERSIGN_LOG__FORMAT", "json")
            .env("COUNTERSIGN_RATES__ENABLED", "false")
            .env(
                "COUNTERSIGN_SECURITY__CLUSTER_SECRET",
                "chaos-chaos-chaos-chaos-chaos-chaos",
            )
            // The receiver of notifications is here.
            .env("COUNTERSIGN_NOTIFICATIONS__ALLOW", "[\"127.0.0.0/8\"]")
            .env("COUNTERSIGN_NOTIFICATIONS__PAUSE_SECONDS", "1")
            // Clients take silence for a dead connection, and must not have to wait long for it.
            .env("COUNTERSIGN_PUSH__PING_SECONDS", "3")
            .env("COUNTERSIGN_PUSH__SSE_PING_SECONDS", "3")
            .stdout(Stdio::null())
            .stderr(log);
        if let (WITH_CLOCK, Some(library)) = (self.number, faketime()) {
            self.move_clock("+0")?;
            command
                .env("LD_PRELOAD", library)
                .env("FAKETIME_TIMESTAMP_FILE", self.file("clock"))
                .env("FAKETIME_CACHE_DURATION", "1")
                .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
                .env("FAKETIME_DISABLE_SHM", "1");
        }
        self.process = Some(command.spawn()?);
        Ok(())
    }

    /// Starts it and waits until it is ready.
    pub async fn start(&mut self) -> anyhow::Result<()> {
        self.spawn()?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.revive()?;
            if self.file(&format!("ready-{}", self.starts)).exists() {
                return Ok(());
            }
            anyhow::ensure!(
                Instant::now() < deadline,
                "node {} is not ready",
                self.number
            );
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Starts it again if it has ended by itself, as a service manager would. True if so.
    pub fn revive(&mut self) -> anyhow::Result<bool> {
        let ended = match &mut self.process {
            Some(process) => process.try_wait()?.is_some(),
            None => false,
        };
        if ended {
            self.exits += 1;
            self.spawn()?;
        }
        Ok(ended)
    }

    pub fn id(&self) -> Option<u32> {
        self.process.as_ref().and_then(Child::id)
    }

    pub fn signal(&self, signal: Signal) {
        send(self.id(), signal);
    }

    /// Sends it a signal that ends it, and waits for that.
    pub async fn end(&mut self, signal: Signal) -> anyhow::Result<()> {
        if let Some(mut process) = self.process.take() {
            send(process.id(), signal);
            process.wait().await?;
        }
        Ok(())
    }

    /// Moves its clock, if it is the one that has the library: `+3600`, `-45`.
    pub fn move_clock(&self, by: &str) -> anyhow::Result<()> {
        let (file, new) = (self.file("clock"), self.file("clock-new"));
        std::fs::write(&new, format!("{by}\n"))?;
        Ok(std::fs::rename(new, file)?)
    }
}

/// Takes our variables out of a command's environment.
pub fn clean(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("COUNTERSIGN_")) {
        command.env_remove(name);
    }
    command.env("COUNTERSIGN_TELEMETRY__METRICS_LISTEN", "")
}

/// Runs a command of the binary and returns what it printed.
pub async fn countersign(database_url: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    let done = clean(&mut command)
        .args(["--database-url", database_url])
        .args(arguments)
        .output()
        .await?;
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    anyhow::ensure!(done.status.success(), "{arguments:?} failed: {said}");
    Ok(String::from_utf8(done.stdout)?.trim().to_owned())
}

/// `HAProxy` with the configuration we ship, except that clients speak plain HTTP and the nodes are
/// listed.
pub struct Balancer {
    pub port: u16,
    _process: Child,
}

impl Balancer {
    pub fn start(nodes: &[Node], directory: &Path) -> anyhow::Result<Self> {
        let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/haproxy/haproxy.cfg");
        let mut configuration = std::fs::read_to_string(shipped)?;
        let servers: Vec<String> = nodes
            .iter()
            .map(|node| format!("    server node-{} 127.0.0.1:{}", node.number, node.port))
            .collect();
        for (part, replacement) in [
            (
                " ssl crt \"${CERTIFICATE}\" alpn h2,http/1.1\n.endif",
                "\n.endif",
            ),
            (" resolvers dns resolve-prefer ipv4 init-addr none", ""),
            (
                "    server-template node- 1-32 \"${NODES}\"",
                &servers.join("\n"),
            ),
        ] {
            anyhow::ensure!(
                configuration.contains(part),
                "{shipped} has no {part:?} any more"
            );
            configuration = configuration.replace(part, replacement);
        }
        let (port, own) = (free_port()?, free_port()?);
        let environment = [
            ("BIND", format!("127.0.0.1:{port}")),
            ("OWN", format!("127.0.0.1:{own}")),
            ("MAXCONN", "2000".to_owned()),
        ];
        let process = haproxy(directory, "haproxy", &configuration, &environment)?;
        Ok(Self {
            port,
            _process: process,
        })
    }
}
