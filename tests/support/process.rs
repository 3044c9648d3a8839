//! The binary as a user runs it: processes that can be killed.

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub use nix::sys::signal::Signal;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use serde_json::Value;

/// The binary with a clean environment of our variables.
pub fn countersign() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("COUNTERSIGN_")) {
        if name != "COUNTERSIGN_POSTGRES_BIN" {
            command.env_remove(name);
        }
    }
    // The usual port is for one node a machine, and tests run many.
    command.env("COUNTERSIGN_TELEMETRY__METRICS_LISTEN", "");
    // Never the user's own profile; tests that look at one have their own.
    let config = concat!(env!("CARGO_TARGET_TMPDIR"), "/config");
    command.env("XDG_CONFIG_HOME", config);
    // Never the user's own demo.
    let data = concat!(env!("CARGO_TARGET_TMPDIR"), "/data");
    command.env("XDG_DATA_HOME", data);
    command
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> (bool, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("it runs");
    let text = String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr);
    (status.success(), text)
}

pub fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.try_into().expect("a process id"));
    kill(pid, signal).expect("the process exists");
}

/// A process that is killed with the test.
pub struct Process {
    child: Child,
}

impl Process {
    /// Starts it.
    pub fn start(command: &mut Command) -> Self {
        Self {
            child: command.stdout(Stdio::piped()).spawn().expect("it starts"),
        }
    }

    /// Its id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a file it writes.
    pub fn await_file(&mut self, file: &Path) -> String {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Ok(text) = std::fs::read_to_string(file) {
                return text;
            }
            let ended = self.child.try_wait().expect("a child");
            assert!(ended.is_none(), "it ended: {ended:?}");
            assert!(Instant::now() < deadline, "not ready in time");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for a JSON file it writes.
    pub fn await_json(&mut self, file: &Path) -> Value {
        serde_json::from_str(&self.await_file(file)).expect("JSON")
    }

    /// Waits for its end and returns what it printed.
    pub fn end(mut self) -> (bool, String) {
        let mut text = String::new();
        self.child
            .stdout
            .take()
            .expect("a pipe")
            .read_to_string(&mut text)
            .expect("text");
        (self.child.wait().expect("a child").success(), text)
    }

    /// Kills it without a word.
    pub fn kill(&mut self) {
        self.child.kill().expect("it is there");
        self.child.wait().expect("a child");
    }
}

impl Drop for Process {
    /// Asked to stop first: `dev` has a PostgreSQL to take with it.
    fn drop(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        if let Ok(None) = self.child.try_wait() {
            signal(self.child.id(), Signal::SIGTERM);
        }
        while let Ok(None) = self.child.try_wait()
            && Instant::now() < deadline
        {
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
