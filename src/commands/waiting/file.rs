//! A file for each request that a process of this user waits for, so that every terminal of the
//! machine can show it. Nothing is decided by it. The process holds a lock on the file while it
//! lives: a file without one is left over, and is removed by the next reader.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use countersign::client::profile::ProfileFile;
use countersign::clock::Clock;
use serde::{Deserialize, Serialize};

/// A request that somebody is asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingRequest {
    pub request_id: String,
    /// The agent or the command that waits.
    pub by: String,
    pub approvers: Vec<String>,
    /// `None` if a guard asks.
    pub gateway: Option<String>,
    /// In milliseconds since 1970.
    pub expires_at: u64,
    /// One line that says what it is about.
    pub sentence: String,
}

impl WaitingRequest {
    /// Where the page shows it.
    pub fn link(&self) -> Option<String> {
        let gateway = self.gateway.as_ref()?;
        Some(format!("{gateway}/#/request/{}", self.request_id))
    }

    pub fn time_left(&self) -> Duration {
        Duration::from_millis(self.expires_at.saturating_sub(now()))
    }
}

/// Shows a request to other terminals until it is dropped. A failure is ignored: the request waits
/// either way.
pub struct WaitingFile {
    directory: PathBuf,
    by: String,
    sentence: String,
    gateway: Option<String>,
    shown: Option<(PathBuf, File)>,
}

impl WaitingFile {
    /// For a request through a guard.
    pub fn new(file: &ProfileFile, by: &str, sentence: String) -> Self {
        Self {
            directory: directory(file),
            by: by.to_owned(),
            sentence,
            gateway: None,
            shown: None,
        }
    }

    /// For a request of the enforcer in `file`.
    pub fn of_profile(file: &ProfileFile, by: &str, sentence: String) -> Self {
        let gateway = file
            .load()
            .ok()
            .and_then(|profile| profile.enforcer?.gateway.urls.into_iter().next());
        let mut own = Self::new(file, by, sentence);
        own.gateway = gateway.map(|url| url.trim_end_matches('/').to_owned());
        own
    }

    /// Shows the request, which the gateway has now.
    pub fn show(&mut self, id: &str, approvers: &[String], seconds: u64) -> WaitingRequest {
        let request = WaitingRequest {
            request_id: id.to_owned(),
            by: self.by.clone(),
            approvers: approvers.to_vec(),
            gateway: self.gateway.clone(),
            expires_at: now().saturating_add(seconds.saturating_mul(1_000)),
            sentence: self.sentence.clone(),
        };
        self.shown = write(&self.directory, &request).ok();
        request
    }
}

impl Drop for WaitingFile {
    fn drop(&mut self) {
        if let Some((path, _locked)) = &self.shown {
            // A reader removes what stays.
            let _gone = fs::remove_file(path);
        }
    }
}

fn now() -> u64 {
    let now = Clock::system().now().inner().unix_timestamp_nanos() / 1_000_000;
    u64::try_from(now).unwrap_or_default()
}

/// Beside the profiles, where agents may not read.
pub fn directory(file: &ProfileFile) -> PathBuf {
    file.path().with_file_name("waiting")
}

fn write(directory: &Path, request: &WaitingRequest) -> std::io::Result<(PathBuf, File)> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    let begun = directory.join(format!("{}.new", request.request_id));
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&begun)?;
    file.lock()?;
    file.write_all(&serde_json::to_vec(request)?)?;
    // It is seen only with its lock.
    let path = directory.join(format!("{}.json", request.request_id));
    fs::rename(&begun, &path)?;
    Ok((path, file))
}

/// The requests that processes wait for now, in the order in which they end.
pub fn list(directory: &Path) -> Vec<WaitingRequest> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let paths = paths.filter(|path| path.extension().is_some_and(|it| it == "json"));
    let mut found: Vec<_> = paths.filter_map(|path| read(&path)).collect();
    found.sort_by(|a, b| (a.expires_at, &a.request_id).cmp(&(b.expires_at, &b.request_id)));
    found
}

fn read(path: &Path) -> Option<WaitingRequest> {
    let file = File::open(path).ok()?;
    if file.try_lock_shared().is_ok() {
        let _gone = fs::remove_file(path);
        return None;
    }
    serde_json::from_reader(file).ok()
}
