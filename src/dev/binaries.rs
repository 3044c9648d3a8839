//! Finds and runs PostgreSQL's programs. PostgreSQL refuses to run as root, so for root the
//! programs and their files belong to an unprivileged account; any other user runs them as
//! themselves.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, anyhow};
use nix::unistd::{User, chown, geteuid};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::data_dir::tail;

/// The variable that names the directory of the programs, if it is not found automatically.
const OVERRIDE: &str = "COUNTERSIGN_POSTGRES_BIN";

const OLDEST: u32 = 15;

/// Where distributions install versions: a directory, and the prefix of the version number in it.
const PLACES: [(&str, &str); 4] = [
    ("/usr/lib/postgresql", ""),
    ("/usr", "pgsql-"),
    ("/opt/homebrew/opt", "postgresql@"),
    ("/usr/local/opt", "postgresql@"),
];

const REMEDY: &str = "Debian 12, Ubuntu 24.04 and later have it in the package postgresql; for older ones use \
                      apt.postgresql.org, for other systems https://www.postgresql.org/download/. Or name the directory of \
                      its programs in COUNTERSIGN_POSTGRES_BIN, or use a server of yours with --database-url";

/// The context of an I/O error of `verb` on `path`.
pub fn could_not(verb: &str, path: &Path) -> String {
    format!("could not {verb} {}", path.display())
}

/// A PostgreSQL installation, the account that runs it, and its log file.
#[derive(Debug)]
pub struct PostgresBinaries {
    bin: PathBuf,
    /// The account to switch to, if we are root.
    account: Option<User>,
    log: PathBuf,
}

impl PostgresBinaries {
    /// Finds one that is new enough: the one named in the environment, else the one on `PATH`, else
    /// the newest.
    pub async fn find(log: PathBuf) -> anyhow::Result<Self> {
        let mut refusal =
            anyhow!("PostgreSQL {OLDEST} or later is needed, and none was found. {REMEDY}");
        for bin in candidates() {
            match version(&bin).await {
                Some(version) if version >= OLDEST => {
                    let account = account()?;
                    return Ok(Self { bin, account, log });
                }
                Some(version) => {
                    refusal = anyhow!(
                        "PostgreSQL {OLDEST} or later is needed; {} has version {version}. {REMEDY}",
                        bin.display()
                    );
                }
                None => {}
            }
        }
        Err(refusal)
    }

    /// One of the programs, as the right account, and in its own process group, which Ctrl-C does
    /// not reach.
    pub fn command(&self, program: &str, directory: &Path) -> anyhow::Result<Command> {
        let mut options = File::options();
        let out = options
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&self.log);
        let out = out.with_context(|| could_not("write", &self.log))?;
        let err = out.try_clone();
        let err = err.with_context(|| could_not("write", &self.log))?;
        let mut command = Command::new(self.bin.join(program));
        // PGPORT, PGOPTIONS and the like are meant for another server.
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"PG") {
                command.env_remove(name);
            }
        }
        command
            .env("LC_ALL", "C")
            .current_dir(directory)
            .process_group(0);
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        if let Some(account) = &self.account {
            command.uid(account.uid.as_raw()).gid(account.gid.as_raw());
        }
        Ok(command)
    }

    /// Runs a program to its end with `input`. If it fails, the error shows the log.
    pub async fn run(
        &self,
        mut command: Command,
        what: &'static str,
        input: &str,
    ) -> anyhow::Result<()> {
        let failed = || format!("could not {what}");
        let mut child = command
            .stdin(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that has ended early is reported by its exit code.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        if child.wait().await.with_context(failed)?.success() {
            return Ok(());
        }
        Err(self.failed(what))
    }

    pub fn failed(&self, what: &str) -> anyhow::Error {
        let (log, log_tail) = (self.log.display(), self.log_tail());
        anyhow!("could not {what}; the end of {log}:\n{log_tail}")
    }

    pub fn log_tail(&self) -> String {
        tail(&self.log)
    }

    /// Makes the account that runs the programs the owner of `path`.
    pub fn hand_over(&self, path: &Path) -> io::Result<()> {
        let Some(account) = &self.account else {
            return Ok(());
        };
        Ok(chown(path, Some(account.uid), Some(account.gid))?)
    }

    /// Makes sure that the account can enter `data_dir`, an absolute path. The mode of `data_dir`
    /// is changed if necessary; a directory above it that cannot be entered is an error.
    pub fn open_way_to(&self, data_dir: &Path) -> anyhow::Result<()> {
        let Some(account) = &self.account else {
            return Ok(());
        };
        for directory in data_dir.ancestors() {
            let metadata = fs::metadata(directory);
            let metadata = metadata.with_context(|| could_not("look at", directory))?;
            if may_enter(account, &metadata) {
                continue;
            }
            anyhow::ensure!(
                directory == data_dir,
                "PostgreSQL runs as `{}`, who may not enter {}: choose another --data-dir, or run as an ordinary user",
                account.name,
                directory.display()
            );
            let mut permissions = metadata.permissions();
            permissions.set_mode(metadata.mode() | 0o011);
            fs::set_permissions(directory, permissions)
                .with_context(|| could_not("open", directory))?;
        }
        Ok(())
    }
}

fn may_enter(account: &User, directory: &Metadata) -> bool {
    let bit = if directory.uid() == account.uid.as_raw() {
        0o100
    } else if directory.gid() == account.gid.as_raw() {
        0o010
    } else {
        0o001
    };
    directory.mode() & bit != 0
}

fn candidates() -> Vec<PathBuf> {
    if let Some(named) = std::env::var_os(OVERRIDE) {
        return vec![PathBuf::from(named)];
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    // A link on PATH leads to the directory of all the programs.
    let mut found: Vec<PathBuf> = std::env::split_paths(&path)
        .filter_map(|directory| directory.join("initdb").canonicalize().ok())
        .filter_map(|initdb| initdb.parent().map(Path::to_owned))
        .collect();
    let mut packaged: Vec<(u32, PathBuf)> = Vec::new();
    for (parent, prefix) in PLACES {
        for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let version = name.to_str().and_then(|name| name.strip_prefix(prefix));
            if let Some(version) = version.and_then(|version| version.parse().ok()) {
                packaged.push((version, entry.path().join("bin")));
            }
        }
    }
    packaged.sort_by(|(one, _), (other, _)| other.cmp(one));
    found.extend(packaged.into_iter().map(|(_, bin)| bin));
    found
}

async fn version(bin: &Path) -> Option<u32> {
    let output = Command::new(bin.join("postgres"))
        .arg("--version")
        .output()
        .await
        .ok()?;
    // "postgres (PostgreSQL) 17.5 (Debian 17.5-1)", and "18beta1" before a release.
    let text = String::from_utf8(output.stdout).ok()?;
    let number = text.split_whitespace().nth(2)?;
    number
        .split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

/// The account to switch to: none unless we are root.
fn account() -> anyhow::Result<Option<User>> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    for name in ["postgres", "nobody"] {
        if let Ok(Some(user)) = User::from_name(name) {
            return Ok(Some(user));
        }
    }
    anyhow::bail!(
        "PostgreSQL refuses to run as root, and there is neither a user `postgres` nor `nobody`"
    )
}
