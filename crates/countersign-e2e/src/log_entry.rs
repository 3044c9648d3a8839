//! The entries of a log, and the proof of one in a file of its own (`c2sp.org/tlog-proof@v1`).

use std::fmt::Write as _;

use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::checkpoint::{LogCheckpoint, MAX_NOTE_BYTES};
use super::encoding::canonical_text;
use super::error::{Error, Result};
use super::merkle::{TreeHash, verify_inclusion};
use super::outcome::decision_digest;
use countersign_protocol::canonical::{Sha256Hex, canonical};
use countersign_protocol::id::RequestId;
use countersign_protocol::json::JsonNode;
use countersign_protocol::signature::PublicKey;
use countersign_protocol::words;

const LEAF: &str = "countersign leaf v1";
const PROOF: &str = "c2sp.org/tlog-proof@v1";
/// A tree of 2^63 entries needs no more.
const MAX_HASHES: usize = 63;

words! {
    /// The subject of an entry.
    EntryKind {
        Decision = "decision",
        Outcome = "outcome",
        /// The last checkpoint of the epoch before.
        Checkpoint = "checkpoint",
    }
}

/// An entry. The signature in the digested text cannot be guessed, so the hash reveals nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    pub kind: EntryKind,
    /// Of a decision or an outcome.
    pub request_id: Option<RequestId>,
    pub digest: Sha256Hex,
}

impl LogEntry {
    /// Of the signed body of a decision.
    pub fn of_decision(request_id: RequestId, decision: &JsonNode<'_>) -> Self {
        // A gateway that verifies no signatures may have taken one that is none.
        let digest = decision_digest(decision);
        let digest = digest.unwrap_or_else(|| Sha256Hex::of(canonical(decision).as_bytes()));
        Self {
            kind: EntryKind::Decision,
            request_id: Some(request_id),
            digest,
        }
    }

    /// Of the envelope with an outcome.
    pub fn of_outcome(request_id: RequestId, envelope: &str) -> Self {
        let digest = Sha256Hex::of(envelope.as_bytes());
        Self {
            kind: EntryKind::Outcome,
            request_id: Some(request_id),
            digest,
        }
    }

    /// Of the note with the last checkpoint of an epoch: the first entry of the next one.
    pub fn of_checkpoint(note: &str) -> Self {
        let digest = Sha256Hex::of(note.as_bytes());
        Self {
            kind: EntryKind::Checkpoint,
            request_id: None,
            digest,
        }
    }

    pub fn leaf(&self) -> Result<TreeHash> {
        let mut members =
            json!({ "v": 1, "kind": self.kind.as_str(), "digest": self.digest.to_string() });
        if let Some(id) = &self.request_id {
            members["requestId"] = json!(id);
        }
        let text = canonical_text("a log's entry", &members)?;
        let entry = Sha256::new()
            .chain_update(LEAF)
            .chain_update(text)
            .finalize();
        Ok(TreeHash::of_leaf(&entry))
    }
}

/// Proves that an entry is in a log. Nothing in it is believed before `verify`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogProof {
    pub index: u64,
    pub hashes: Vec<TreeHash>,
    /// The signed note of the checkpoint.
    pub checkpoint: String,
}

impl LogProof {
    pub fn parse(text: &str) -> Result<Self> {
        Self::read(text).ok_or(Error::Log("the proof is malformed"))
    }

    fn read(text: &str) -> Option<Self> {
        let (head, checkpoint) = text.split_once("\n\n")?;
        let mut lines = head.split('\n');
        if lines.next()? != PROOF || checkpoint.len() > MAX_NOTE_BYTES {
            return None;
        }
        // Nothing vouches for the extra data.
        let mut index = lines.next()?;
        if index.starts_with("extra ") {
            index = lines.next()?;
        }
        let index = index.strip_prefix("index ")?;
        let hashes: Option<Vec<_>> = lines.map(TreeHash::parse).collect();
        let proof = Self {
            index: index
                .parse()
                .ok()
                .filter(|number: &u64| number.to_string() == index)?,
            hashes: hashes.filter(|hashes| hashes.len() <= MAX_HASHES)?,
            checkpoint: checkpoint.to_owned(),
        };
        Some(proof)
    }

    pub fn to_text(&self) -> String {
        let mut text = format!("{PROOF}\nindex {}\n", self.index);
        for hash in &self.hashes {
            // Writing to a text cannot fail.
            let _ = writeln!(text, "{hash}");
        }
        format!("{text}\n{}", self.checkpoint)
    }

    /// Checks that the log of this key has the entry, and returns the checkpoint that shows it.
    pub fn verify(&self, entry: &LogEntry, key: &PublicKey) -> Result<LogCheckpoint> {
        let checkpoint = LogCheckpoint::open(&self.checkpoint, key)?;
        let (size, root) = (checkpoint.size, checkpoint.root);
        verify_inclusion(entry.leaf()?, self.index, size, &self.hashes, root)?;
        Ok(checkpoint)
    }
}
