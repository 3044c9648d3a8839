//! `--guard-for`: sets up a guard for one user of this machine. Every step is a command or a file that is shown first.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::unistd::User;

use super::Refused;
use super::file::{Change, read};
use super::warnings::is_passing;
use crate::commands::ending::{FAILURE, USAGE};
use crate::commands::guard::GuardAddress;

/// The system user that guards run as.
const GUARD_USER: &str = "countersign-guard";
const HOME: &str = "/var/lib/countersign-guard";
/// The program that the unit names.
const PROGRAM: &str = "/usr/local/bin/countersign";
const UNIT: &str = include_str!("../../../deploy/countersign-guard@.service");
const UNIT_PATH: &str = "etc/systemd/system/countersign-guard@.service";

/// A guard that does not exist yet, or not as it should be.
pub struct GuardSetup {
    user: String,
    /// The program of guard and hooks, which the agent's user cannot replace.
    pub program: PathBuf,
    pub address: GuardAddress,
    pub unit: Change,
    /// Before and after the unit is written.
    before: Vec<Vec<String>>,
    after: Vec<Vec<String>>,
}

impl GuardSetup {
    /// Plans a guard for the agents of `user`. `system` is `/`, or another directory in tests.
    pub fn plan(user: &str, program: &Path, system: &Path) -> Result<Self, Refused> {
        let refuse = |code, message: String| Err(Refused { code, message });
        if system == Path::new("/") && !nix::unistd::geteuid().is_root() {
            let message = "a guard runs as another user, so setting it up needs root: use sudo";
            return refuse(FAILURE, message.to_owned());
        }
        if !system.join("run/systemd/system").exists() {
            let message = "this system does not run systemd; docs/agents/guard.md says how to run a guard without it";
            return refuse(FAILURE, message.to_owned());
        }
        let found = User::from_name(user).ok().flatten();
        match found {
            None => return refuse(USAGE, format!("there is no user {user}")),
            Some(found) if found.uid.is_root() => {
                let message =
                    "agents of root can change everything, so a guard is of no use to them";
                return refuse(USAGE, message.to_owned());
            }
            Some(_) if !is_plain(user) => {
                let message = format!(
                    "a unit cannot be named after the user {user}; docs/agents/guard.md says how to run a guard without one"
                );
                return refuse(USAGE, message);
            }
            Some(_) => {}
        }
        let mut before = Vec::new();
        if User::from_name(GUARD_USER).ok().flatten().is_none() {
            let shell = "/usr/sbin/nologin";
            before.push(words(&[
                "useradd",
                "--system",
                "--home-dir",
                HOME,
                "--shell",
                shell,
                GUARD_USER,
            ]));
        }
        let own = format!("{HOME}/{user}");
        before.push(words(&[
            "install", "-d", "-o", GUARD_USER, "-m", "700", HOME, &own,
        ]));
        let mut target = program.to_owned();
        if is_passing(program) || !is_roots(program) {
            let source = program.to_string_lossy();
            before.push(words(&["install", "-m", "755", &source, PROGRAM]));
            target = PathBuf::from(PROGRAM);
        }
        let path = system.join(UNIT_PATH);
        let unit = Change {
            before: read(&path)?,
            after: Some(UNIT.replace(PROGRAM, &target.to_string_lossy())),
            path,
            public: true,
        };
        let instance = format!("countersign-guard@{user}");
        let after = vec![
            words(&["systemctl", "daemon-reload"]),
            words(&["systemctl", "enable", &instance]),
            words(&["systemctl", "restart", &instance]),
        ];
        let socket = format!("{GUARD_USER}:/run/countersign-guard/{user}/socket");
        let address = socket.parse().map_err(|error: &str| Refused {
            code: USAGE,
            message: error.to_owned(),
        })?;
        Ok(Self {
            user: user.to_owned(),
            program: target,
            address,
            unit,
            before,
            after,
        })
    }

    /// Everything that is run, as a shell would be told.
    pub fn commands(&self) -> impl Iterator<Item = String> {
        self.before
            .iter()
            .chain(&self.after)
            .map(|words| words.join(" "))
    }

    /// Makes the user and its places, before any file is written.
    pub fn prepare(&self) -> Result<(), Refused> {
        self.before.iter().try_for_each(|words| run(words))
    }

    /// Starts the guard. It starts again every second until it has a profile.
    pub fn start(&self) -> Result<(), Refused> {
        self.after.iter().try_for_each(|words| run(words))
    }

    /// What remains to be done by a person, who has the invitation.
    pub fn remains(&self) -> String {
        let Self {
            user,
            program,
            address,
            ..
        } = self;
        let program = program.display();
        let guard =
            format!("sudo runuser -u {GUARD_USER} -- env XDG_CONFIG_HOME={HOME}/{user} {program}");
        format!(
            "The guard needs a profile and a pairing of its own, if it has none yet:\n  {guard} join 'LINK'\n  {guard} pair\n\
             Then check it as {user}: countersign doctor --guard {address}"
        )
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// Whether a name means the same in a unit's name, in a path and for a shell.
fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    !name.starts_with(['-', '.']) && name.bytes().all(plain)
}

/// Whether only root can replace a program.
fn is_roots(program: &Path) -> bool {
    program.ancestors().all(|path| {
        path.symlink_metadata()
            .is_ok_and(|metadata| metadata.uid() == 0 && metadata.mode() & 0o022 == 0)
    })
}

fn run(words: &[String]) -> Result<(), Refused> {
    let failed = |problem: String| Refused {
        code: FAILURE,
        message: format!(
            "{}: {problem}; what was done before it stays",
            words.join(" ")
        ),
    };
    let (name, arguments) = words
        .split_first()
        .ok_or_else(|| failed("no command".to_owned()))?;
    let done = Command::new(name).args(arguments).output();
    let done = done.map_err(|error| failed(error.to_string()))?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(failed(said.trim().to_owned()))
}
