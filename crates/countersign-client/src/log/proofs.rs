//! The calls of a check, and the comparisons that its answers are for.

use serde::Deserialize;
use tokio::time::Instant;

use super::memory::{LogMemory, MemoryFile};
use crate::error::{ClientError, Result};
use crate::gateway::{GatewayAnswer, GatewayCall, GatewayClient, encode};
use crate::profile::ProfileFile;
use countersign_e2e::{
    EntryKind, LOG, LogCheckpoint, LogEntry, LogProof, PlainArtifact, TreeHash, verify_consistency,
};
use countersign_protocol::id::{RequestId, TenantId};
use countersign_protocol::json::JsonNode;
use countersign_protocol::signature::PublicKey;
use countersign_protocol::timestamp::Timestamp;

/// A check of one tenant's log.
pub struct LogCheck<'c> {
    pub client: &'c GatewayClient,
    pub tenant: &'c TenantId,
    pub file: &'c ProfileFile,
    pub now: Timestamp,
    pub deadline: Instant,
}

#[derive(Deserialize)]
pub(super) struct ProofAnswer {
    pub entries: Vec<ProofEntry>,
}

#[derive(Deserialize)]
pub(super) struct ProofEntry {
    pub kind: String,
    pub digest: Option<String>,
    pub proof: String,
}

#[derive(Deserialize)]
struct ConsistencyAnswer {
    hashes: Vec<String>,
}

impl LogCheck<'_> {
    /// `None` if the gateway has no such thing, or cannot make a proof from what is left of its log.
    pub(super) async fn get(&self, path: String) -> Result<Option<GatewayAnswer>> {
        let call = GatewayCall::get(path);
        let expected = [200, 404, 500];
        let answer = self.client.expect(&call, &expected, self.deadline).await?;
        Ok((answer.status == 200).then_some(answer))
    }

    /// Whether the gateway proves that the later tree only adds entries. Both are of one epoch.
    pub(super) async fn continues(&self, old: &LogCheckpoint, new: &LogCheckpoint) -> Result<bool> {
        let (old, new, epoch) = (old.tree(), new.tree(), new.origin.epoch);
        let mut hashes = Vec::new();
        if old.size != new.size {
            let path = format!(
                "/v1/log/consistency?from={}&to={}&epoch={epoch}",
                old.size, new.size
            );
            let Some(answer) = self.get(path).await? else {
                return Ok(false);
            };
            let answer: ConsistencyAnswer =
                serde_json::from_slice(&answer.body).map_err(ClientError::answer)?;
            let parsed: Option<Vec<_>> =
                answer.hashes.iter().map(|it| TreeHash::parse(it)).collect();
            hashes = parsed.ok_or_else(|| ClientError::answer("hashes in base64"))?;
        }
        Ok(verify_consistency(old, new, &hashes).is_ok())
    }

    /// The proof that the log has a decision, once the log was found to continue what was seen before.
    pub async fn prove(&self, request: &RequestId, decision: &JsonNode<'_>) -> Result<String> {
        let file = MemoryFile::beside(self.file);
        let key = file.read(self.tenant)?.and_then(|memory| memory.key());
        let key = key.ok_or(ClientError::NotLogged)?;
        let path = format!("/v1/log/proof?requestId={}", encode(request.as_str()));
        let answer = self.get(path).await?.ok_or(ClientError::NotLogged)?;
        let answer: ProofAnswer =
            serde_json::from_slice(&answer.body).map_err(ClientError::answer)?;
        let mut entries = answer.entries.into_iter();
        let shown = entries.find(|it| it.kind == EntryKind::Decision.as_str());
        let proof = shown.ok_or(ClientError::NotLogged)?.proof;
        let entry = LogEntry::of_decision(request.clone(), decision);
        LogProof::parse(&proof)?.verify(&entry, &key)?;
        Ok(proof)
    }

    /// Compares the checkpoint that an artifact names, which its enforcer has seen, with what this client
    /// has seen. Returns the problem: the gateway shows them different logs.
    pub async fn compare(&self, artifact: &PlainArtifact) -> Result<Option<String>> {
        let file = MemoryFile::beside(self.file);
        let Some((note, mut memory)) = named_note(artifact).zip(file.read(self.tenant)?) else {
            return Ok(None);
        };
        let newest = memory.checkpoints.last_key_value();
        let (Some(key), Some((epoch, own))) = (memory.key(), newest) else {
            return Ok(None);
        };
        let (epoch, own) = (*epoch, own.clone());
        let is_shared = match LogCheckpoint::open(&note, &key) {
            Ok(seen) if seen.origin.epoch <= epoch => self
                .check_seen(&seen, &note, &key, &mut memory)
                .await?
                .is_none(),
            Ok(_) | Err(_) => false,
        };
        let problem = "the agent's machine has seen another log than this device";
        file.update(self.tenant, |stored| {
            if is_shared {
                stored.checkpoints.extend(memory.checkpoints);
            } else {
                stored.keep_evidence(self.now, problem, vec![own, note]);
            }
        })?;
        Ok((!is_shared).then(|| problem.to_owned()))
    }

    /// The problem of the checkpoint of a proof, which must be a state of the same tree.
    pub(super) async fn check_seen(
        &self,
        checkpoint: &LogCheckpoint,
        note: &str,
        key: &PublicKey,
        memory: &mut LogMemory,
    ) -> Result<Option<&'static str>> {
        let epoch = checkpoint.origin.epoch;
        if !checkpoint.origin.is_of(self.tenant) {
            return Ok(Some("the proof is from the log of another tenant"));
        }
        let newest = memory
            .checkpoints
            .get(&epoch)
            .and_then(|note| LogCheckpoint::open(note, key).ok());
        let Some(newest) = newest else {
            // An epoch that ended before this client first saw the log.
            return Ok(None);
        };
        let is_later = checkpoint.size >= newest.size;
        let (old, new) = if is_later {
            (&newest, checkpoint)
        } else {
            (checkpoint, &newest)
        };
        if old.origin != new.origin || !self.continues(old, new).await? {
            return Ok(Some("the proof is from another tree than the checkpoint"));
        }
        if is_later {
            memory.checkpoints.insert(epoch, note.to_owned());
        }
        Ok(None)
    }
}

fn named_note(artifact: &PlainArtifact) -> Option<String> {
    let members: serde_json::Value = serde_json::from_str(artifact.text()).ok()?;
    let named = &members["extensions"][LOG];
    let note = named["note"].as_str().filter(|_| named["v"] == 1);
    note.map(str::to_owned)
}
