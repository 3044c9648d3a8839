//! Other programs: where they are, whom they run as, and that they end with us.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context as _;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

/// PostgreSQL's programs. The server refuses to run as root, so root runs it as another user.
#[derive(Clone)]
pub struct Postgres {
    directory: PathBuf,
    user: Option<&'static str>,
}

impl Postgres {
    pub fn find() -> anyhow::Result<Self> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/with-postgres");
        let found = std::process::Command::new(script).arg("--where").output()?;
        anyhow::ensure!(
            found.status.success(),
            "{}",
            String::from_utf8_lossy(&found.stderr)
        );
        let directory = PathBuf::from(String::from_utf8(found.stdout)?.trim());
        let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let user = if users.contains("\npostgres:") {
            "postgres"
        } else {
            "nobody"
        };
        Ok(Self {
            directory,
            user: is_root().then_some(user),
        })
    }

    /// One of them, which is told to stop when we die.
    pub fn command(&self, program: &str) -> Command {
        self.command_of("QUIT", &self.directory.join(program))
    }

    /// Any program, as their user; it is sent a signal when we die.
    pub fn command_of(&self, signal: &str, program: &Path) -> Command {
        let mut command = dying_with_us(signal);
        if let Some(user) = self.user {
            command.args(["--reuid", user, "--regid", user, "--clear-groups"]);
        }
        command.arg(program).current_dir("/");
        command
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Runs one of them to its end.
    pub async fn run(&self, program: &str, arguments: &[&str]) -> anyhow::Result<()> {
        let done = self.command(program).args(arguments).output().await?;
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        anyhow::ensure!(done.status.success(), "{program} failed: {said}");
        Ok(())
    }

    /// Makes a directory that the server owns.
    pub fn make_directory(&self, path: &Path) -> anyhow::Result<()> {
        std::fs::create_dir_all(path)?;
        if let Some(user) = self.user {
            run("chown", &[&format!("{user}:"), text(path)?])?;
        }
        Ok(())
    }
}

/// A command that is sent a signal when this process ends, however it ends. The thread that spawns
/// it must be the main one.
pub fn dying_with_us(signal: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", signal]);
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

pub fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("a path that is no text")
}

/// Runs a program of the system to its end.
pub fn run(program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let done = std::process::Command::new(program)
        .args(arguments)
        .output()?;
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    anyhow::ensure!(done.status.success(), "{program} failed: {said}");
    Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
}

/// Sends a signal to one of our processes; one that has ended needs none.
pub fn send(pid: Option<u32>, signal: Signal) {
    if let Some(pid) = pid.and_then(|pid| i32::try_from(pid).ok()) {
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

/// Whether a program is found by its name.
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).exists())
}

/// `HAProxy` with this configuration and environment.
pub fn haproxy(
    directory: &Path,
    name: &str,
    configuration: &str,
    environment: &[(&str, String)],
) -> anyhow::Result<Child> {
    let file = directory.join(format!("{name}.cfg"));
    std::fs::write(&file, configuration)?;
    let log = File::create(directory.join(format!("{name}.log")))?;
    let program = ["/usr/sbin/haproxy", "/usr/local/sbin/haproxy"];
    let mut program = program.into_iter().filter(|path| Path::new(path).exists());
    dying_with_us("KILL")
        .args([program.next().unwrap_or("haproxy"), "-db", "-f"])
        .arg(file)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .context("haproxy does not start")
}

/// A port that is free now.
pub fn free_port() -> anyhow::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?
        .local_addr()?
        .port())
}
