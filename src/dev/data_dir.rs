//! The directory in which `countersign dev` keeps its data. It may hold runs on several databases;
//! each has its own demo, profiles, log and lock.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::options::DevOptions;
use super::private_file::write_private;
use countersign::clock::Clock;
use countersign::protocol::canonical::Sha256Hex;

/// A larger log is moved aside at the next start.
const MAX_LOG_BYTES: u64 = 16 << 20;
/// How many bytes of a log an error shows: about twenty lines.
const TAIL_BYTES: i64 = 2048;
/// How many digits tell the databases of one directory apart.
const SUFFIX_DIGITS: usize = 12;
const RUNNING_FILE: &str = "dev.json";

/// The data directory, removed on drop if it is ephemeral.
pub struct DataDir {
    pub path: PathBuf,
    /// Whether it is the demo that a user keeps: its enforcer goes into the user's own profile.
    pub is_usual: bool,
    /// Distinguishes databases that are not our own; empty for our own.
    suffix: String,
    ephemeral: bool,
    /// Released by the system however this process ends.
    _lock: File,
}

/// A running `dev`, for commands that look for it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunningDev {
    pub database_url: String,
    pub tenant_id: String,
    /// The address of the page that its links lead to.
    pub page: String,
}

impl DataDir {
    pub fn open(options: &DevOptions) -> anyhow::Result<Self> {
        let path = match (&options.data_dir, options.ephemeral) {
            (Some(path), _) => path.clone(),
            (None, true) => {
                std::env::temp_dir().join(format!("countersign-{}", Clock::system().operation_id()))
            }
            (None, false) => default_data_dir(),
        };
        let path = std::path::absolute(path)?;
        let suffix = options.database_url.as_ref().map(|url| {
            let hash = Sha256Hex::of(url.as_bytes()).to_string();
            format!("-{}", hash.get(..SUFFIX_DIGITS).unwrap_or(&hash))
        });
        let suffix = suffix.unwrap_or_default();
        let run = path.join(format!("run{suffix}"));
        std::fs::create_dir_all(&run)
            .map_err(|error| anyhow::anyhow!("cannot create {}: {error}", run.display()))?;
        let lock = lock(&run)?.with_context(|| in_use(&path))?;
        Ok(Self {
            is_usual: !options.ephemeral && suffix.is_empty() && path == default_data_dir(),
            path,
            suffix,
            ephemeral: options.ephemeral,
            _lock: lock,
        })
    }

    pub fn run_dir(&self) -> PathBuf {
        self.path.join(format!("run{}", self.suffix))
    }

    pub fn demo_file(&self) -> PathBuf {
        self.path.join(format!("demo{}.json", self.suffix))
    }

    /// Where the profiles of a run are that must not touch the user's own.
    pub fn profiles(&self) -> PathBuf {
        self.path.join(format!("profiles{}", self.suffix))
    }

    pub fn log_file(&self) -> PathBuf {
        self.path.join(format!("countersign{}.log", self.suffix))
    }

    /// The log, for lines at its end.
    pub fn open_log(&self) -> anyhow::Result<File> {
        let path = self.log_file();
        if std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() > MAX_LOG_BYTES) {
            std::fs::rename(&path, path.with_extension("log.old"))?;
        }
        let mut options = File::options();
        let log = options.append(true).create(true).mode(0o600).open(&path);
        log.with_context(|| format!("cannot write {}", path.display()))
    }

    pub fn announce(&self, running: &RunningDev) -> anyhow::Result<()> {
        let text = serde_json::to_vec_pretty(running)?;
        Ok(write_private(&self.run_dir().join(RUNNING_FILE), &text)?)
    }
}

impl Drop for DataDir {
    fn drop(&mut self) {
        let _absent = std::fs::remove_file(self.run_dir().join(RUNNING_FILE));
        if self.ephemeral
            && let Err(error) = std::fs::remove_dir_all(&self.path)
        {
            tracing::warn!(%error, path = %self.path.display(), "the data directory could not be removed");
        }
    }
}

impl RunningDev {
    /// The only `dev` that runs on this directory.
    pub fn find(data_dir: Option<&Path>) -> anyhow::Result<Self> {
        let path = data_dir.map_or_else(default_data_dir, Path::to_owned);
        let mut found = Vec::new();
        for run in run_dirs(&path) {
            if lock(&run).is_ok_and(|lock| lock.is_none())
                && let Ok(text) = std::fs::read(run.join(RUNNING_FILE))
            {
                found.push(serde_json::from_slice(&text).context(RUNNING_FILE)?);
            }
        }
        let place = path.display();
        let one = found.pop().with_context(|| {
            format!(
                "no `countersign dev` runs on {place}: start it, or name its directory with --data-dir; for another gateway name the \
                 tenant with --tenant ID"
            )
        })?;
        anyhow::ensure!(
            found.is_empty(),
            "more than one `countersign dev` runs on {place}; name the tenant with --tenant ID, and the database with --database-url"
        );
        Ok(one)
    }
}

/// Every run of a data directory, on whichever database.
pub fn run_dirs(data_dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(data_dir).into_iter().flatten().flatten();
    let run = |name: &str| name == "run" || name.starts_with("run-");
    (entries.filter(|entry| entry.file_name().to_str().is_some_and(run)))
        .map(|entry| entry.path())
        .collect()
}

/// Locks a run; `None` if another process has it.
pub fn lock(run: &Path) -> io::Result<Option<File>> {
    let mut options = File::options();
    let options = options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(run.join("lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

pub fn in_use(data_dir: &Path) -> String {
    let place = data_dir.display();
    format!(
        "{place} is in use by another `countersign dev`: stop that one, or choose another --data-dir"
    )
}

/// The last lines of a log.
pub fn tail(log: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(mut file) = File::open(log) {
        // A shorter log cannot be sought in and is read from its start.
        let cut = file.seek(SeekFrom::End(-TAIL_BYTES)).is_ok();
        let _ = file.read_to_end(&mut bytes);
        if cut {
            let line = bytes.iter().position(|byte| *byte == b'\n');
            bytes.drain(..line.map_or(0, |end| end + 1));
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A directory in the user's home; for root one of the system, since PostgreSQL's account cannot
/// enter root's home.
pub fn default_data_dir() -> PathBuf {
    let named = std::env::var_os("XDG_DATA_HOME").filter(|path| !path.is_empty());
    let base = match (named, nix::unistd::geteuid().is_root()) {
        (Some(path), _) => PathBuf::from(path),
        (None, true) => PathBuf::from("/var/lib"),
        (None, false) => match std::env::var_os("HOME") {
            Some(home) => PathBuf::from(home).join(".local/share"),
            None => std::env::temp_dir(),
        },
    };
    base.join("countersign-dev")
}
