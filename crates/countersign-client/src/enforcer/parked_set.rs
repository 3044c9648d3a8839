//! Sets that outlive their calls: each has a file in a folder beside the profile. It needs
//! confidentiality; its proof shows that this enforcer wrote it. A call that waits for a set holds
//! the lock of its file.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};
use zeroize::Zeroizing;

use crate::error::{ClientError, Result};
use crate::private_file::PrivateFile;
use crate::profile::{ProfileFile, SETS};
use countersign_e2e::{ApprovalRule, ArtifactRule, EnforcerKeys, OutcomeKey, PlainArtifact};
use countersign_protocol::id::{ApproverId, EnforcerId, RequestId, TenantId, TextId as _};
use countersign_protocol::timestamp::Timestamp;

const VERSION: u8 = 1;
/// The sets of further calls end with their calls.
const MAX_SETS: usize = 32;
/// An artifact has at most 4 MiB, and takes more when it is escaped.
const MAX_FILE_BYTES: u64 = 9 << 20;
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);
const LOCK_INTERVAL: Duration = Duration::from_millis(50);

pub(super) struct StoredSet {
    /// That of the first part. The others follow from it.
    pub(super) artifact: PlainArtifact,
    pub(super) outcome_key: OutcomeKey,
    /// The digest of the request, without times and ids.
    pub(super) subject: String,
    pub(super) created_at: Timestamp,
    pub(super) parts: Vec<StoredPart>,
    /// Whether also those are asked whose time had not come.
    pub(super) is_everyone_asked: bool,
}

/// The request to one person.
pub(super) struct StoredPart {
    pub(super) seat: ApproverId,
    pub(super) request_id: RequestId,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct SetText {
    v: u8,
    tenant_id: String,
    enforcer_id: String,
    subject: String,
    created_at: String,
    artifact: Zeroizing<String>,
    outcome_key: Zeroizing<String>,
    parts: Vec<PartText>,
    is_everyone_asked: bool,
    proof: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PartText {
    seat: String,
    request_id: String,
}

impl SetText {
    fn spelled(&self) -> Result<Zeroizing<String>> {
        let text = serde_json::to_string(self).map_err(ClientError::answer)?;
        Ok(Zeroizing::new(text))
    }

    /// No other record of this enforcer begins with these words.
    fn proven(&self) -> Result<Zeroizing<String>> {
        let text = self.spelled()?;
        Ok(Zeroizing::new(["a parked set\n", &text].concat()))
    }
}

impl StoredSet {
    /// Also that of the whole set.
    pub(super) fn id(&self) -> &RequestId {
        self.artifact.request_id()
    }

    pub(super) fn rule(&self) -> Option<&ApprovalRule> {
        match self.artifact.rule()? {
            ArtifactRule::Known(rule) => Some(rule),
            ArtifactRule::Unknown => None,
        }
    }

    pub(super) fn age(&self, now: Timestamp) -> time::Duration {
        now.inner() - self.created_at.inner()
    }

    fn to_text(
        &self,
        keys: &EnforcerKeys,
        enforcer: &EnforcerId,
        tenant: &TenantId,
    ) -> Result<Zeroizing<String>> {
        let parts = self.parts.iter().map(|part| PartText {
            seat: part.seat.to_string(),
            request_id: part.request_id.to_string(),
        });
        let mut text = SetText {
            v: VERSION,
            tenant_id: tenant.to_string(),
            enforcer_id: enforcer.to_string(),
            subject: self.subject.clone(),
            created_at: self.created_at.to_string(),
            artifact: Zeroizing::new(self.artifact.text().to_owned()),
            outcome_key: self.outcome_key.to_text(),
            parts: parts.collect(),
            is_everyone_asked: self.is_everyone_asked,
            proof: String::new(),
        };
        text.proof = keys.prove_record(&text.proven()?);
        text.spelled()
    }

    /// `None` if it is damaged, or not as this enforcer has written it.
    fn parse(
        text: &str,
        keys: &EnforcerKeys,
        enforcer: &EnforcerId,
        tenant: &TenantId,
    ) -> Option<Self> {
        let mut text: SetText = serde_json::from_str(text).ok()?;
        let proof = std::mem::take(&mut text.proof);
        let is_own = text.v == VERSION
            && text.enforcer_id == enforcer.as_str()
            && text.tenant_id == tenant.as_str()
            && keys.proves_record(&text.proven().ok()?, &proof);
        let parts = text.parts.iter().map(|part| {
            Some(StoredPart {
                seat: ApproverId::parse(&part.seat)?,
                request_id: RequestId::parse(&part.request_id)?,
            })
        });
        is_own.then_some(())?;
        Some(Self {
            artifact: PlainArtifact::parse(text.artifact.as_bytes()).ok()?,
            outcome_key: OutcomeKey::parse(&text.outcome_key).ok()?,
            created_at: Timestamp::parse(&text.created_at)?,
            parts: parts.collect::<Option<_>>()?,
            subject: text.subject,
            is_everyone_asked: text.is_everyone_asked,
        })
    }
}

/// The sets of one enforcer.
pub(super) struct SetFolder {
    path: PathBuf,
    keys: EnforcerKeys,
    enforcer: EnforcerId,
    tenant: TenantId,
}

/// A set in use, and its file.
pub(super) struct KeptSet {
    pub(super) folder: SetFolder,
    pub(super) place: SetPlace,
    pub(super) stored: StoredSet,
}

impl KeptSet {
    pub(super) fn write(&self) -> Result<()> {
        self.folder.write(&self.place, &self.stored)
    }
}

/// The file of a set, locked.
pub(super) struct SetPlace {
    file: PrivateFile,
    _lock: File,
}

impl SetFolder {
    pub(super) fn beside(
        profile: &ProfileFile,
        keys: &EnforcerKeys,
        enforcer: &EnforcerId,
        tenant: &TenantId,
    ) -> Self {
        Self {
            path: profile.beside(SETS).path().to_owned(),
            keys: EnforcerKeys::from_secret(&keys.secret()),
            enforcer: enforcer.clone(),
            tenant: tenant.clone(),
        }
    }

    fn file(&self, id: &RequestId) -> PrivateFile {
        PrivateFile::at(self.path.join(format!("{id}.json")))
    }

    /// The ids of all sets, the oldest first.
    pub(super) fn ids(&self) -> Vec<RequestId> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let ids = entries.filter_map(|entry| {
            let name = entry.file_name();
            RequestId::parse(name.to_str()?.strip_suffix(".json")?)
        });
        let mut ids: Vec<_> = ids.collect();
        ids.sort_unstable();
        ids
    }

    pub(super) fn has_room(&self) -> bool {
        self.ids().len() < MAX_SETS
    }

    /// `None` while a call waits for it, or if it cannot be locked.
    pub(super) fn lock(&self, id: &RequestId) -> Option<SetPlace> {
        let file = self.file(id);
        let lock = file.try_lock().ok()??;
        Some(SetPlace { file, _lock: lock })
    }

    /// The same, but waits for a program that only looks at it.
    pub(super) async fn lock_soon(&self, id: &RequestId) -> Option<SetPlace> {
        let end = Instant::now() + LOCK_TIMEOUT;
        loop {
            match self.lock(id) {
                None if Instant::now() < end => sleep(LOCK_INTERVAL).await,
                place => return place,
            }
        }
    }

    /// `None` if there is no such set, or if its file is not as this enforcer has written it.
    pub(super) fn read(&self, id: &RequestId) -> Option<StoredSet> {
        let file = self.file(id);
        let size = fs::metadata(file.path()).ok()?.len();
        let text = file.read().ok().filter(|_| size <= MAX_FILE_BYTES)??;
        let stored = StoredSet::parse(&text, &self.keys, &self.enforcer, &self.tenant)?;
        // Its lock is that of its name.
        (stored.id() == id).then_some(stored)
    }

    fn write(&self, place: &SetPlace, stored: &StoredSet) -> Result<()> {
        let text = stored.to_text(&self.keys, &self.enforcer, &self.tenant)?;
        place
            .file
            .write(&text)
            .map_err(|error| place.problem(error))
    }

    /// Also a file that no call can lock or read.
    pub(super) fn remove(&self, id: &RequestId) -> Result<()> {
        let file = self.file(id);
        file.remove().map_err(|error| problem(&file, error))
    }
}

impl SetPlace {
    fn problem(&self, error: std::io::Error) -> ClientError {
        problem(&self.file, error)
    }

    /// The file of the lock goes as well: no other set gets this name.
    pub(super) fn remove(self) -> Result<()> {
        let removed = self.file.remove();
        let lock = PrivateFile::at(self.file.path().with_extension("lock"));
        let removed = removed.and_then(|()| lock.remove());
        removed.map_err(|error| self.problem(error))
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is the end of the error")]
fn problem(file: &PrivateFile, error: std::io::Error) -> ClientError {
    ClientError::Kept {
        path: file.path().to_owned(),
        problem: error.to_string(),
    }
}
