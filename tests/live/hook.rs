//! The program that the agents' hooks run: the real one, started by a script that can change what
//! it finds. It is put where `install` found the real one, so that the agents' configuration is
//! what users get.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The deadline that `install` configures; the script makes it shorter.
const CONFIGURED: &str = "9m";
/// Programs that run a hook on behalf of an agent.
const GUARDS: [&str; 4] = ["bash", "dash", "sh", "timeout"];

pub struct Hook {
    directory: PathBuf,
}

/// The script's actions before it becomes the hook.
#[derive(Clone, Copy)]
pub struct Conditions {
    /// The hook's own deadline, in seconds.
    pub seconds: u64,
    /// No file can be written.
    pub disk_full: bool,
}

impl Hook {
    /// The real program, under a name that is replaced later.
    pub fn place(directory: &Path) -> anyhow::Result<Self> {
        let hook = Self {
            directory: directory.to_owned(),
        };
        std::fs::create_dir_all(hook.pids())?;
        let real = env!("CARGO_BIN_EXE_countersign");
        if std::fs::hard_link(real, hook.program()).is_err() {
            std::fs::copy(real, hook.program())?;
        }
        Ok(hook)
    }

    pub fn program(&self) -> PathBuf {
        self.directory.join("countersign")
    }

    fn pids(&self) -> PathBuf {
        self.directory.join("pids")
    }

    /// Puts the script in its place.
    pub fn arrange(&self, conditions: Conditions) -> anyhow::Result<()> {
        let Conditions { seconds, disk_full } = conditions;
        // With the signal ignored a write fails, as on a full disk; a pipe is no file.
        let limit = if disk_full {
            "trap '' XFSZ; ulimit -f 0"
        } else {
            ":"
        };
        let script = format!(
            "#!/bin/sh\n: >'{pids}'/$$\n\
             count=$#\nwhile [ $count -gt 0 ]; do word=$1; shift; [ \"$word\" = {CONFIGURED} ] && word={seconds}s; \
             set -- \"$@\" \"$word\"; count=$((count - 1)); done\n\
             {limit}\nexec '{real}' \"$@\"\n",
            pids = self.pids().display(),
            real = env!("CARGO_BIN_EXE_countersign"),
        );
        let new = self.directory.join("new");
        std::fs::write(&new, script)?;
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755))?;
        std::fs::rename(new, self.program())?;
        Ok(())
    }

    /// Kills every hook that runs, with the shells around it if these are to die too. Returns how
    /// many processes that were.
    pub fn kill(&self, with_guards: bool) -> anyhow::Result<usize> {
        let mut killed = 0;
        for entry in std::fs::read_dir(self.pids())? {
            let name = entry?.file_name();
            let pid = name.to_str().and_then(|name| name.parse::<i32>().ok());
            let pid = pid.context("a process id")?;
            if program_of(pid).as_deref() != Some("countersign") {
                continue;
            }
            let mut family = vec![pid];
            let mut parent = parent_of(pid);
            while let Some(next) = parent.filter(|_| with_guards)
                && program_of(next).is_some_and(|name| GUARDS.contains(&name.as_str()))
            {
                family.push(next);
                parent = parent_of(next);
            }
            // From the top, so that no guard sees its child die.
            for pid in family.iter().rev() {
                kill(Pid::from_raw(*pid), Signal::SIGKILL)?;
                killed += 1;
            }
        }
        Ok(killed)
    }
}

fn program_of(pid: i32) -> Option<String> {
    let path = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    Some(path.file_name()?.to_str()?.to_owned())
}

fn parent_of(pid: i32) -> Option<i32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok()
}
