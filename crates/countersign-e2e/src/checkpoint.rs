//! Checkpoints of a log: its size and root, signed as C2SP's tlog-checkpoint and signed-note have it.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ed25519_dalek::{Signer as _, SigningKey};
use sha2::{Digest as _, Sha256};

use super::error::{Error, Result};
use super::merkle::{TreeHash, TreeState};
use countersign_protocol::id::TenantId;
use countersign_protocol::redacted;
use countersign_protocol::signature::{PublicKey, Signature};

const ED25519: u8 = 1;
/// Longer notes are refused unread. Room for a hundred witnesses.
pub const MAX_NOTE_BYTES: usize = 16 << 10;

/// The name of a log: of the deployment, the tenant and the epoch. A log that was restarted has the
/// next epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogOrigin {
    deployment: String,
    tenant: String,
    pub epoch: u32,
}

impl LogOrigin {
    /// `None` if a note could not have the name.
    pub fn new(deployment: &str, tenant: &TenantId, epoch: u32) -> Option<Self> {
        let origin = Self {
            deployment: deployment.to_owned(),
            tenant: tenant_name(tenant),
            epoch,
        };
        (Self::parse(&origin.to_string())? == origin).then_some(origin)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.rsplitn(3, '/');
        let (epoch, tenant, deployment) = (parts.next()?, parts.next()?, parts.next()?);
        let number: u32 = epoch.parse().ok()?;
        let is_name = |it: &str| {
            !it.is_empty()
                && it
                    .bytes()
                    .all(|byte| byte.is_ascii_graphic() && byte != b'+')
        };
        (is_name(deployment) && is_name(tenant) && number.to_string() == epoch).then(|| Self {
            deployment: deployment.to_owned(),
            tenant: tenant.to_owned(),
            epoch: number,
        })
    }

    pub fn is_of(&self, tenant: &TenantId) -> bool {
        self.tenant == tenant_name(tenant)
    }

    /// Whether both are epochs of one log.
    pub fn is_same_log(&self, other: &Self) -> bool {
        (&self.deployment, &self.tenant) == (&other.deployment, &other.tenant)
    }
}

impl fmt::Display for LogOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.deployment, self.tenant, self.epoch)
    }
}

fn tenant_name(tenant: &TenantId) -> String {
    let hash = Sha256::digest(tenant.as_str());
    URL_SAFE_NO_PAD.encode(&hash[..16])
}

/// The key that signs the checkpoints of a deployment, and nothing else.
pub struct LogSigner(SigningKey);

redacted! { LogSigner = "LogSigner(redacted)" }

impl LogSigner {
    pub fn from_secret(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    pub fn key(&self) -> Result<PublicKey> {
        let what = "the log's key";
        let bytes = self.0.verifying_key().to_bytes();
        PublicKey::from_bytes(&bytes).ok_or(Error::WeakKey { what })
    }

    /// The signed note of a checkpoint.
    pub fn sign(&self, checkpoint: &LogCheckpoint) -> String {
        let text = checkpoint.to_text();
        let name = checkpoint.origin.to_string();
        let key = self.0.verifying_key().to_bytes();
        let signature = self.0.sign(text.as_bytes()).to_bytes();
        let line = [&key_id(&name, &key)[..], &signature].concat();
        format!("{text}\n— {name} {}\n", STANDARD.encode(line))
    }
}

/// How C2SP identifies a key in a line of signatures.
fn key_id(name: &str, key: &[u8; 32]) -> [u8; 4] {
    let hash = Sha256::new()
        .chain_update(name)
        .chain_update([b'\n', ED25519]);
    let hash: [u8; 32] = hash.chain_update(key).finalize().into();
    [hash[0], hash[1], hash[2], hash[3]]
}

/// The key under the name of a log, as other programs for C2SP logs take it.
pub fn verifier_key(origin: &LogOrigin, key: &PublicKey) -> String {
    let name = origin.to_string();
    let [a, b, c, d] = key_id(&name, key.as_bytes());
    let typed = [&[ED25519][..], key.as_bytes()].concat();
    format!(
        "{name}+{a:02x}{b:02x}{c:02x}{d:02x}+{}",
        STANDARD.encode(typed)
    )
}

/// The state of a log at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogCheckpoint {
    pub origin: LogOrigin,
    pub size: u64,
    pub root: TreeHash,
}

impl LogCheckpoint {
    pub fn tree(&self) -> TreeState {
        TreeState {
            size: self.size,
            root: self.root,
        }
    }

    /// Checks the signature of a note, and returns what it says. Lines of other keys, such as those of
    /// witnesses, are not looked at.
    pub fn open(note: &str, key: &PublicKey) -> Result<Self> {
        const MALFORMED: Error = Error::Log("the checkpoint is malformed");
        if note.len() > MAX_NOTE_BYTES {
            return Err(MALFORMED);
        }
        let (text, lines) = note.rsplit_once("\n\n").ok_or(MALFORMED)?;
        let text = format!("{text}\n");
        let checkpoint = Self::parse(&text).ok_or(MALFORMED)?;
        let name = checkpoint.origin.to_string();
        let own = key_id(&name, key.as_bytes());
        let mut signatures = Vec::new();
        for line in lines.strip_suffix('\n').ok_or(MALFORMED)?.split('\n') {
            let (signer, signature) = line
                .strip_prefix("— ")
                .and_then(|it| it.split_once(' '))
                .ok_or(MALFORMED)?;
            let bytes = STANDARD.decode(signature).map_err(|_| MALFORMED)?;
            let (id, signature) = bytes.split_first_chunk::<4>().ok_or(MALFORMED)?;
            if signer == name && *id == own {
                signatures.push(Signature::from_bytes(signature).ok_or(MALFORMED)?);
            }
        }
        match signatures.as_slice() {
            [signature] if key.verifies(text.as_bytes(), signature) => Ok(checkpoint),
            _ => Err(Error::Log(
                "the checkpoint is not signed with the log's key",
            )),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.split('\n');
        let (origin, size, root) = (lines.next()?, lines.next()?, lines.next()?);
        let checkpoint = Self {
            origin: LogOrigin::parse(origin)?,
            size: size.parse().ok()?,
            root: TreeHash::parse(root)?,
        };
        // One spelling, and no further line.
        (checkpoint.to_text() == text).then_some(checkpoint)
    }

    fn to_text(&self) -> String {
        format!("{}\n{}\n{}\n", self.origin, self.size, self.root)
    }
}
