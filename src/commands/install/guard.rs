//! `--guard-for`: sets up a guard for one user of this machine. Every step is a command or a file
//! that is shown first.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use countersign::agent::install::file::{FileChange, InstallRefusal, read};
use nix::unistd::User;

use super::warnings::is_passing;
use crate::commands::guard::{GuardAddress, USER_PLACEHOLDER};

/// The system user that guards run as.
const GUARD_USER: &str = "countersign-guard";
const GUARD_HOME: &str = "/var/lib/countersign-guard";
const UNIT_TEXT: &str = include_str!("../../../deploy/countersign-guard@.service");
const UNIT_PATH: &str = "etc/systemd/system/countersign-guard@.service";
/// The program that the unit names.
const UNIT_PROGRAM: &str = "/usr/local/bin/countersign";
/// Where only root can put programs: under sudo, `PATH` may be the user's.
const SYSTEM_PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// A guard that does not exist yet, or not as it should be.
pub struct GuardSetup {
    user: String,
    /// The program of guard and hooks, which only root can replace.
    pub program: PathBuf,
    pub address: GuardAddress,
    pub unit: FileChange,
    /// Commands before and after the unit is written. None of their words has a space.
    before: Vec<String>,
    after: Vec<String>,
    is_real: bool,
}

impl GuardSetup {
    /// Plans a guard for the agents of `user`. `system` is `/`, or another directory in tests.
    pub fn plan(user: &str, program: &Path, system: &Path) -> Result<Self, InstallRefusal> {
        if !system.join("run/systemd/system").exists() {
            let message = "this system does not run systemd; docs/agents/guard.md explains how to run a guard without it";
            return Err(InstallRefusal::Failed(message.to_owned()));
        }
        check_user(user)?;
        let mut before = Vec::new();
        if User::from_name(GUARD_USER).ok().flatten().is_none() {
            let place = format!("--home-dir {GUARD_HOME} --shell /usr/sbin/nologin");
            before.push(format!("useradd --system {place} {GUARD_USER}"));
        }
        // The parent is root's, so that the guard's user cannot put a link where its directory is.
        before.push(format!("install -d -m 755 {GUARD_HOME}"));
        before.push(format!(
            "install -d -o {GUARD_USER} -m 700 {GUARD_HOME}/{user}"
        ));
        let mut target = program.to_owned();
        let is_real = system == Path::new("/");
        if !stays_for_everybody(program) {
            target = PathBuf::from(UNIT_PROGRAM);
            let directory = target.parent().unwrap_or(Path::new("/"));
            if is_real && !only_root_writes(directory) {
                let message = format!(
                    "users other than root can write to {}, so a program there could be replaced; change its owner and mode",
                    directory.display()
                );
                return Err(InstallRefusal::Failed(message));
            }
            // The program of this process, even if its path leads elsewhere by now. Renamed into
            // place, because it may run.
            let source = format!("/proc/{}/exe", std::process::id());
            before.push(format!("install -m 755 {source} {UNIT_PROGRAM}.new"));
            before.push(format!("mv -f {UNIT_PROGRAM}.new {UNIT_PROGRAM}"));
        }
        let path = system.join(UNIT_PATH);
        let unit = FileChange {
            before: read(&path)?,
            after: Some(UNIT_TEXT.replace(UNIT_PROGRAM, &target.to_string_lossy())),
            path,
            public: true,
        };
        let instance = format!("countersign-guard@{user}.service");
        let after = vec![
            "systemctl daemon-reload".to_owned(),
            format!("systemctl enable {instance}"),
            format!("systemctl restart {instance}"),
        ];
        let address = format!("{GUARD_USER}:/run/countersign-guard/{USER_PLACEHOLDER}/socket");
        let address = address.parse();
        let address = address.map_err(|error: &str| InstallRefusal::Usage(error.to_owned()))?;
        Ok(Self {
            user: user.to_owned(),
            program: target,
            address,
            unit,
            before,
            after,
            is_real,
        })
    }

    /// Everything that is run, in order.
    pub fn commands(&self) -> impl Iterator<Item = String> {
        self.before.iter().chain(&self.after).cloned()
    }

    /// Makes the user and its places, writes the unit and starts the guard. The guard starts again
    /// every second until it has a profile.
    pub fn carry_out(&self) -> Result<(), InstallRefusal> {
        if self.is_real && !nix::unistd::geteuid().is_root() {
            let message = "setting up a guard needs root: use sudo";
            return Err(InstallRefusal::Failed(message.to_owned()));
        }
        self.before.iter().try_for_each(|it| self.run(it))?;
        if self.unit.is_any() {
            self.unit.write()?;
        }
        self.after.iter().try_for_each(|it| self.run(it))
    }

    /// The steps that are left to a person, who has the invitation.
    pub fn next_steps(&self) -> String {
        let Self {
            user,
            program,
            address,
            ..
        } = self;
        let guard = format!(
            "sudo runuser -u {GUARD_USER} -- env XDG_CONFIG_HOME={GUARD_HOME}/{user} {}",
            program.display()
        );
        format!(
            "Every call is denied until the guard has a profile and a pairing of its own:\n  {guard} join 'LINK'\n  {guard} pair\n\
             Other users of this machine need their own guard, or their calls are denied: --guard-for NAME.\n\
             Then check it as {user}: countersign doctor --guard '{address}'"
        )
    }

    fn run(&self, command: &str) -> Result<(), InstallRefusal> {
        let failed = |problem: &str| {
            InstallRefusal::Failed(format!(
                "{command}: {problem}; earlier steps are not undone"
            ))
        };
        let mut words = command.split(' ');
        let mut process = Command::new(words.next().unwrap_or_default());
        if self.is_real {
            process.env("PATH", SYSTEM_PATH);
        }
        let done = process.args(words).output();
        let done = done.map_err(|error| failed(&error.to_string()))?;
        if done.status.success() {
            return Ok(());
        }
        Err(failed(String::from_utf8_lossy(&done.stderr).trim()))
    }
}

fn check_user(user: &str) -> Result<(), InstallRefusal> {
    let problem = match User::from_name(user).ok().flatten() {
        None => format!("there is no user {user}"),
        Some(found) if found.uid.is_root() => {
            "root's agents can change everything, so a guard cannot protect them".to_owned()
        }
        // The name is part of a unit's name and of paths.
        Some(_) if user.starts_with(['-', '.']) || !is_plain(user, b"_-.") => {
            format!("the name of the user {user} cannot be part of a unit's name")
        }
        Some(_) => return Ok(()),
    };
    Err(InstallRefusal::Usage(problem))
}

/// Whether a text has only letters, digits and these, so that it means the same in a unit and for a
/// shell.
fn is_plain(text: &str, more: &[u8]) -> bool {
    let mut bytes = text.bytes();
    bytes.all(|byte| byte.is_ascii_alphanumeric() || more.contains(&byte))
}

/// Whether every user can run a program, and only root can replace it, now and later.
fn stays_for_everybody(program: &Path) -> bool {
    let private = ["/home", "/root", "/run"];
    let is_private = private.iter().any(|place| program.starts_with(place));
    let path = program.to_string_lossy();
    let is_open = program.ancestors().all(|path| {
        let metadata = path.metadata();
        metadata.is_ok_and(|metadata| metadata.mode() & 0o001 != 0)
    });
    let is_safe = only_root_writes(program) && is_plain(&path, b"/._+-");
    is_safe && is_open && !is_private && !is_passing(program)
}

fn only_root_writes(path: &Path) -> bool {
    path.ancestors().all(|path| {
        let metadata = path.symlink_metadata();
        metadata.is_ok_and(|metadata| metadata.uid() == 0 && metadata.mode() & 0o022 == 0)
    })
}
