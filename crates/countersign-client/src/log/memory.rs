//! The memory of the logs that a client has seen, in a file beside the profile. The newest
//! checkpoints are what makes a change noticeable, so a damaged file is an error.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use time::Duration;

use crate::error::{ClientError, Result};
use crate::private_file::PrivateFile;
use crate::profile::ProfileFile;
use countersign_e2e::{EntryKind, LogEntry};
use countersign_protocol::canonical::Sha256Hex;
use countersign_protocol::id::{RequestId, TenantId, TextId as _};
use countersign_protocol::json;
use countersign_protocol::signature::PublicKey;
use countersign_protocol::timestamp::Timestamp;

/// For so long a client looks for its own entries.
const ENTRY_LIFETIME: Duration = Duration::days(30);
const MAX_ENTRIES: usize = 500;
const MAX_EVIDENCE: usize = 20;

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MemoryContents {
    v: u8,
    /// By tenant.
    logs: BTreeMap<String, LogMemory>,
}

/// The knowledge of one log.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogMemory {
    /// The key, from when it was first seen.
    pub key: Option<String>,
    /// The newest checkpoint of each epoch.
    #[serde(default)]
    pub checkpoints: BTreeMap<u32, String>,
    /// Decisions and outcomes of this client, the oldest first.
    #[serde(default)]
    pub entries: Vec<OwnEntry>,
    /// The newest failures.
    #[serde(default)]
    pub evidence: Vec<LogEvidence>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OwnEntry {
    pub request_id: String,
    pub kind: String,
    /// In hex.
    pub digest: String,
    pub at: String,
    /// Whether the log has it.
    #[serde(default)]
    pub proven: bool,
}

/// A failure, with the signed notes that contradict each other.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogEvidence {
    pub at: String,
    pub problem: String,
    pub notes: Vec<String>,
}

impl LogMemory {
    pub fn key(&self) -> Option<PublicKey> {
        self.key.as_deref().and_then(PublicKey::parse)
    }

    pub fn keep_evidence(&mut self, at: Timestamp, problem: &str, notes: Vec<String>) {
        // The same failure is found each time.
        if self
            .evidence
            .iter()
            .any(|it| it.problem == problem && it.notes == notes)
        {
            return;
        }
        let at = at.to_string();
        let problem = problem.to_owned();
        self.evidence.push(LogEvidence { at, problem, notes });
        let excess = self.evidence.len().saturating_sub(MAX_EVIDENCE);
        self.evidence.drain(..excess);
    }

    fn add(&mut self, entry: &LogEntry, now: Timestamp) {
        let Some(request) = &entry.request_id else {
            return;
        };
        let entry = OwnEntry {
            request_id: request.to_string(),
            kind: entry.kind.as_str().to_owned(),
            digest: entry.digest.to_string(),
            at: now.to_string(),
            proven: false,
        };
        self.entries.retain(|it| {
            let is_new = it
                .at()
                .is_some_and(|at| now.inner() - at.inner() < ENTRY_LIFETIME);
            is_new && (&it.request_id, &it.kind) != (&entry.request_id, &entry.kind)
        });
        self.entries.push(entry);
        let excess = self.entries.len().saturating_sub(MAX_ENTRIES);
        self.entries.drain(..excess);
    }
}

impl OwnEntry {
    pub fn at(&self) -> Option<Timestamp> {
        Timestamp::parse(&self.at)
    }

    pub fn entry(&self) -> Option<LogEntry> {
        Some(LogEntry {
            kind: EntryKind::parse(&self.kind)?,
            request_id: Some(RequestId::parse(&self.request_id)?),
            digest: Sha256Hex::parse(&self.digest)?,
        })
    }
}

pub(super) struct MemoryFile(PrivateFile);

impl MemoryFile {
    pub fn beside(file: &ProfileFile) -> Self {
        Self(file.beside("log.json"))
    }

    pub fn path(&self) -> PathBuf {
        self.0.path().to_owned()
    }

    fn problem(&self, problem: impl std::fmt::Display) -> ClientError {
        ClientError::LogMemory {
            path: self.path(),
            problem: problem.to_string(),
        }
    }

    fn contents(&self) -> Result<MemoryContents> {
        let Some(text) = self.0.read().map_err(|error| self.problem(error))? else {
            return Ok(MemoryContents {
                v: 1,
                logs: BTreeMap::new(),
            });
        };
        let contents = serde_json::from_str::<MemoryContents>(&text).ok();
        let contents = contents.filter(|contents| contents.v == 1);
        contents.ok_or_else(|| self.problem("it is damaged"))
    }

    /// The knowledge of this tenant's log; `None` if it was never seen.
    pub fn read(&self, tenant: &TenantId) -> Result<Option<LogMemory>> {
        Ok(self.contents()?.logs.remove(tenant.as_str()))
    }

    /// Changes it as it is now. A lock keeps the changes of other programs.
    pub fn update(&self, tenant: &TenantId, change: impl FnOnce(&mut LogMemory)) -> Result<()> {
        let _lock = self.0.lock().map_err(|error| self.problem(error))?;
        let mut contents = self.contents()?;
        change(contents.logs.entry(tenant.to_string()).or_default());
        let text = serde_json::to_string_pretty(&contents).map_err(|error| self.problem(error))?;
        self.0.write(&text).map_err(|error| self.problem(error))
    }

    /// Remembers an entry that must appear in the log, if this client has seen the log before. A failure
    /// is ignored: what was decided does not depend on it.
    fn note(&self, tenant: &TenantId, entry: &LogEntry, now: Timestamp) {
        if matches!(self.read(tenant), Ok(Some(_))) {
            let _ignored = self.update(tenant, |memory| memory.add(entry, now));
        }
    }
}

/// The key that was seen first of the log of each tenant.
pub fn known_keys(file: &ProfileFile) -> Result<Vec<(TenantId, PublicKey)>> {
    let logs = MemoryFile::beside(file).contents()?.logs.into_iter();
    let keys = logs.filter_map(|(tenant, memory)| Some((TenantId::parse(&tenant)?, memory.key()?)));
    Ok(keys.collect())
}

/// The newest checkpoint that was seen.
pub(crate) fn newest_note(file: &ProfileFile, tenant: &TenantId) -> Option<String> {
    let memory = MemoryFile::beside(file).read(tenant).ok()??;
    memory.checkpoints.into_values().next_back()
}

/// Remembers a decision of this client.
pub(crate) fn note_decision(
    file: &ProfileFile,
    tenant: &TenantId,
    request: &RequestId,
    decision: &str,
    now: Timestamp,
) {
    if let Ok(node) = json::parse(decision.as_bytes()) {
        let entry = LogEntry::of_decision(request.clone(), &node);
        MemoryFile::beside(file).note(tenant, &entry, now);
    }
}

/// Remembers an outcome of this client, and the decision that it is about.
pub(crate) fn note_outcome(
    file: &ProfileFile,
    tenant: &TenantId,
    request: &RequestId,
    decision: Option<Sha256Hex>,
    outcome: Option<&str>,
    now: Timestamp,
) {
    let decision = decision.map(|digest| LogEntry {
        kind: EntryKind::Decision,
        request_id: Some(request.clone()),
        digest,
    });
    let outcome = outcome.map(|text| LogEntry::of_outcome(request.clone(), text));
    for entry in decision.iter().chain(&outcome) {
        MemoryFile::beside(file).note(tenant, entry, now);
    }
}
