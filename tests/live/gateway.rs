//! A gateway of `countersign dev`, an approver who has joined, and the profile of an enforcer that
//! is paired with them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use countersign::client::approver::Approver;
use countersign::client::enforcer::Enforcer;
use countersign::client::profile::ProfileFile;
use countersign::clock::Clock;
use countersign::e2e::{PairingLink, ReceivedAnswer};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(120);
const DEVICE: &str = "laptop";

pub struct Gateway {
    process: Child,
    pub url: String,
    pub approver: Approver,
    /// The enforcer's profile, to be copied.
    pub profile: PathBuf,
}

/// The program, without any of our variables. It is told to stop when this process ends, however it
/// ends; the main thread must start it.
fn countersign() -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", env!("CARGO_BIN_EXE_countersign")]);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("COUNTERSIGN_")) {
        if name != "COUNTERSIGN_POSTGRES_BIN" {
            command.env_remove(name);
        }
    }
    command.env("COUNTERSIGN_TELEMETRY__METRICS_LISTEN", "");
    command
}

impl Gateway {
    pub async fn start(directory: &Path) -> anyhow::Result<Self> {
        let (config, file) = (directory.join("config"), directory.join("ready.json"));
        let log = std::fs::File::create(directory.join("gateway.log"))?;
        let mut process = countersign()
            .env("XDG_CONFIG_HOME", &config)
            .args(["dev", "--ephemeral", "--listen", "127.0.0.1:0"])
            .arg("--ready-file")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let ready = match await_ready(&mut process, &file).await {
            Ok(ready) => ready,
            Err(error) => {
                end(&mut process);
                return Err(error);
            }
        };
        let text = |value: &Value| value.as_str().map(str::to_owned).context("ready.json");
        let joined = countersign()
            .env("XDG_CONFIG_HOME", &config)
            .args(["join", "--profile", DEVICE, "--name", DEVICE])
            .arg(text(&ready["invitation"])?)
            .output()?;
        let said = String::from_utf8_lossy(&joined.stderr).into_owned();
        anyhow::ensure!(joined.status.success(), "join: {said}");
        // The enforcer of a run that keeps nothing is not in the user's configuration.
        let profile = Path::new(&text(&ready["profiles"])?).join("default.toml");
        let clock = Clock::system();
        let mut enforcer = Enforcer::open(&ProfileFile::at(profile.clone()), &clock)?;
        let device = config.join(format!("countersign/{DEVICE}.toml"));
        let device = ProfileFile::at(device);
        let mut approver = Approver::open(&device, &clock)?;
        pair(&mut enforcer, &mut approver).await?;
        Ok(Self {
            process,
            url: text(&ready["nodes"][0])?,
            approver,
            profile,
        })
    }
}

async fn await_ready(process: &mut Child, file: &Path) -> anyhow::Result<Value> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Ok(text) = std::fs::read(file) {
            return Ok(serde_json::from_slice(&text)?);
        }
        let ended = process.try_wait()?;
        anyhow::ensure!(ended.is_none(), "the gateway ended: {ended:?}");
        anyhow::ensure!(Instant::now() < deadline, "the gateway is not ready");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn pair(enforcer: &mut Enforcer, approver: &mut Approver) -> anyhow::Result<()> {
    let attempt = enforcer.begin_pairing(Some("agents"), None).await?;
    let link = PairingLink::parse(&attempt.link("http://127.0.0.1"))?;
    approver.pair_by_link(&link).await?;
    let answer = enforcer.wait_for_answer(attempt).await?;
    let (received, token) = answer.context("nobody answered the pairing")?.split();
    let ReceivedAnswer::Proven(device) = received else {
        anyhow::bail!("a link proves the device");
    };
    enforcer.pin(&device, token)?;
    Ok(())
}

/// Asks it to stop first: it has a PostgreSQL to take with it.
fn end(process: &mut Child) {
    if let Ok(pid) = i32::try_from(process.id()) {
        let _gone = kill(Pid::from_raw(pid), Signal::SIGTERM);
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    while let Ok(None) = process.try_wait()
        && Instant::now() < deadline
    {
        std::thread::sleep(Duration::from_millis(20));
    }
    let _gone = process.kill();
    let _gone = process.wait();
}

impl Drop for Gateway {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}
