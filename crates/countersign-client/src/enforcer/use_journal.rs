//! Approvals that were used, each once: an empty file per request beside the profile. Libraries in
//! other languages use the same files.

use std::fs;
use std::path::Path;

use time::{Duration, OffsetDateTime};

use super::role::Enforcer;
use crate::error::{ClientError, Result};
use crate::private_file::PrivateFile;
use crate::profile::{REQUESTS, USED};
use countersign_protocol::id::RequestId;

/// No request lasts longer than 30 days.
const USE_LIFETIME: Duration = Duration::days(31);

impl Enforcer {
    /// Takes the approval of a request. True for the first caller, false for all others, lastingly.
    pub(super) fn take_once(&self, request: &RequestId) -> Result<bool> {
        let used = self.file.beside(USED);
        let is_first = keep_text(&used.path().join(request.as_str()), "")?;
        let oldest = self.access.now().inner() - USE_LIFETIME;
        for directory in [used, self.file.beside(REQUESTS)] {
            remove_older(directory.path(), oldest);
        }
        Ok(is_first)
    }

    pub(super) fn is_taken(&self, request: &RequestId) -> bool {
        let used = self.file.beside(USED);
        used.path().join(request.as_str()).exists()
    }
}

/// Keeps a text unless its place is taken.
pub(super) fn keep_text(path: &Path, text: &str) -> Result<bool> {
    let kept = PrivateFile::at(path.to_owned()).create(text);
    kept.map_err(|error| ClientError::Kept {
        path: path.to_owned(),
        problem: error.to_string(),
    })
}

/// Removes old files. One that cannot be removed does no harm.
fn remove_older(directory: &Path, than: OffsetDateTime) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let file = PrivateFile::at(entry.path());
        if file.written_at().is_some_and(|at| at < than) {
            let _ignored = file.remove();
        }
    }
}
