//! The grants of an enforcer, in a file beside its profile. Each use reads the permission from the
//! signed artifact and the signed decision again; the other members only help to find a grant.

use serde::{Deserialize, Serialize};
use serde_json::json;
use time::OffsetDateTime;

use crate::error::{ClientError, Result};
use crate::private_file::PrivateFile;
use crate::profile::ProfileFile;
use countersign_e2e::PlainArtifact;
use countersign_protocol::timestamp::Timestamp;

/// More are not kept; the oldest go first.
const MAX_GRANTS: usize = 200;
const MAX_LOG_BYTES: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct StoredGrant {
    pub(super) request_id: String,
    /// Canonical. Its hash is signed.
    pub(super) artifact: String,
    pub(super) accepted_at: String,
    pub(super) until: String,
    pub(super) approver_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) session_id: Option<String>,
    /// Files of older versions have it.
    #[serde(default, skip_serializing)]
    pub(super) prefix: Option<Vec<String>>,
    /// The form of the grant. Most are found not to fit by it, without a look at the signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) form: Option<String>,
    /// The session has ended, and may start again.
    #[serde(default)]
    pub(super) suspended: bool,
    #[serde(default)]
    pub(super) uses: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) used_at: Option<String>,
    /// The signed body, byte for byte.
    pub(super) decision: String,
}

impl StoredGrant {
    pub(super) fn until(&self) -> Option<Timestamp> {
        Timestamp::parse(&self.until)
    }

    pub(super) fn accepted_at(&self) -> Option<Timestamp> {
        Timestamp::parse(&self.accepted_at)
    }

    pub(super) fn artifact(&self) -> Option<PlainArtifact> {
        let artifact = PlainArtifact::parse(self.artifact.as_bytes()).ok()?;
        (artifact.request_id().as_str() == self.request_id).then_some(artifact)
    }
}

/// Files of version 1 hold unsigned copies instead of the artifact.
const VERSION: u8 = 2;

#[derive(Deserialize)]
struct FileVersion {
    v: u8,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GrantContents {
    v: u8,
    grants: Vec<StoredGrant>,
}

pub(super) struct GrantFile {
    grants: PrivateFile,
    log: PrivateFile,
}

impl GrantFile {
    pub(super) fn beside(profile: &ProfileFile) -> Self {
        Self {
            grants: profile.beside("grants.json"),
            log: profile.beside("grants.log"),
        }
    }

    fn problem(&self, problem: impl std::fmt::Display) -> ClientError {
        ClientError::Grants {
            path: self.grants.path().to_owned(),
            problem: problem.to_string(),
        }
    }

    pub(super) fn load(&self) -> Result<Vec<StoredGrant>> {
        let text = self.grants.read().map_err(|error| self.problem(error))?;
        let Some(text) = text else {
            return Ok(Vec::new());
        };
        // Without the text, which holds requests.
        let damaged = || self.problem("it is damaged");
        let version: FileVersion = serde_json::from_str(&text).map_err(|_| damaged())?;
        if version.v == 1 {
            return Ok(Vec::new());
        }
        let contents: GrantContents = serde_json::from_str(&text).map_err(|_| damaged())?;
        if contents.v != VERSION {
            return Err(damaged());
        }
        Ok(contents.grants)
    }

    /// When a grant was last kept or used. If that is in the future, the clock was set back.
    pub(super) fn written_at(&self) -> Option<OffsetDateTime> {
        self.grants.written_at().max(self.log.written_at())
    }

    /// Changes the grants that are in force `now`; the others are dropped.
    pub(super) fn update<T>(
        &self,
        now: Timestamp,
        change: impl FnOnce(&mut Vec<StoredGrant>) -> T,
    ) -> Result<T> {
        let _lock = self.grants.lock().map_err(|error| self.problem(error))?;
        let before = self.load()?;
        let mut grants = before.clone();
        grants.retain(|grant| grant.until().is_some_and(|until| until > now));
        let result = change(&mut grants);
        let excess = grants.len().saturating_sub(MAX_GRANTS);
        grants.drain(..excess);
        if grants != before {
            let text = json!({ "v": VERSION, "grants": grants }).to_string();
            (self.grants.write(&text)).map_err(|error| self.problem(error))?;
        }
        Ok(result)
    }

    /// Removes the file, even if it is damaged.
    pub(super) fn remove(&self) -> Result<()> {
        let _lock = self.grants.lock().map_err(|error| self.problem(error))?;
        self.grants.remove().map_err(|error| self.problem(error))
    }

    pub(super) fn log(&self, line: &serde_json::Value) -> Result<()> {
        let locked = self.grants.lock();
        let written = locked.and_then(|_lock| self.log.append(&line.to_string(), MAX_LOG_BYTES));
        written.map_err(|error| {
            let path = self.log.path().display();
            self.problem(format!("their use cannot be logged in {path}: {error}"))
        })
    }
}
