//! Checks a gateway's log against what this client remembers of it.

use time::Duration;

use super::memory::{LogMemory, MemoryFile, OwnEntry};
use super::proofs::{LogCheck, ProofAnswer};
use super::report::{Contradiction, LogReport, LogScope, LogState};
use crate::error::{ClientError, Result};
use crate::gateway::encode;
use crate::visible::visible;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_e2e::{LogCheckpoint, LogProof, verifier_key};
use countersign_protocol::signature::PublicKey;

/// How soon the log must have an entry.
const LOG_GRACE: Duration = Duration::minutes(10);
/// Entries that one check asks for, unless it is of all.
const MAX_PROOFS: usize = 20;

impl LogCheck<'_> {
    /// Compares the log with what is remembered, and remembers what continues it. An error is one of the
    /// network or of the file; what the log itself lacks is in the report.
    pub async fn run(&self, scope: LogScope) -> Result<LogReport> {
        let file = MemoryFile::beside(self.file);
        let known = file.read(self.tenant)?;
        let mut memory = known.clone().unwrap_or_default();
        let mut report = LogReport::new(file.path());
        let mut found = Vec::new();
        match self
            .read_checkpoint(&mut memory, &mut report, &mut found)
            .await?
        {
            Ok(()) => {
                self.check_entries(scope, &mut memory, &mut report, &mut found)
                    .await?;
            }
            Err(contradiction) => {
                report.state = LogState::Failed;
                found.push(contradiction);
            }
        }
        if known.is_none() && report.state == LogState::Missing {
            return Ok(report);
        }
        report
            .problems
            .extend(found.iter().map(|it| it.problem.clone()));
        file.update(self.tenant, |stored| {
            stored.key = stored.key.take().or(memory.key);
            for (epoch, note) in memory.checkpoints {
                stored.checkpoints.insert(epoch, note);
            }
            for entry in &mut stored.entries {
                entry.proven |= (memory.entries.iter()).any(|it| {
                    it.proven && (&it.request_id, &it.kind) == (&entry.request_id, &entry.kind)
                });
            }
            for it in found {
                stored.keep_evidence(self.now, &it.problem, it.notes);
            }
        })?;
        Ok(report)
    }

    /// Takes the log for good as it is now, also with another key. Evidence is kept.
    pub async fn accept(&self) -> Result<()> {
        let file = MemoryFile::beside(self.file);
        let mut fresh = LogMemory::default();
        let mut report = LogReport::new(file.path());
        let read = self
            .read_checkpoint(&mut fresh, &mut report, &mut Vec::new())
            .await?;
        if let Err(it) = read {
            return Err(ClientError::answer(it.problem));
        }
        file.update(self.tenant, |stored| {
            let notes = stored.checkpoints.values().cloned().collect();
            stored.keep_evidence(self.now, "this state was given up for a newer one", notes);
            // The proofs of earlier entries have the signatures of the earlier key.
            if stored.key != fresh.key {
                stored.entries.clear();
            }
            stored.key = fresh.key;
            stored.checkpoints = fresh.checkpoints;
        })
    }

    /// Reads the newest checkpoint, and demands that it continues the one that is remembered.
    async fn read_checkpoint(
        &self,
        memory: &mut LogMemory,
        report: &mut LogReport,
        found: &mut Vec<Contradiction>,
    ) -> Result<Result<(), Contradiction>> {
        let newest = memory.checkpoints.last_key_value();
        let newest = newest.map(|(epoch, note)| (*epoch, note.clone()));
        let lies = |problem: &str, note: &str| {
            let notes = newest.iter().map(|(_, old)| old.clone());
            let notes = notes.chain((!note.is_empty()).then(|| note.to_owned()));
            Ok(Err(Contradiction {
                problem: problem.to_owned(),
                notes: notes.collect(),
            }))
        };
        let Some(answer) = self.get("/v1/log/checkpoint".to_owned()).await? else {
            return match &newest {
                Some(_) => lies("the gateway shows no log any more", ""),
                None => Ok(Ok(())),
            };
        };
        let note = answer.text()?;
        let offered = answer
            .headers
            .get("countersign-log-key")
            .and_then(|key| read_key(key.to_str().ok()?));
        let key = memory.key().or(offered);
        let Some(key) = key else {
            return Err(ClientError::answer("the key of the log"));
        };
        let Ok(checkpoint) = LogCheckpoint::open(note, &key) else {
            return lies(
                "the log is not signed with the key that was seen first",
                note,
            );
        };
        if !checkpoint.origin.is_of(self.tenant) {
            return lies("the gateway shows the log of another tenant", note);
        }
        let epoch = checkpoint.origin.epoch;
        if let Some((old_epoch, old)) = &newest {
            let Ok(old) = LogCheckpoint::open(old, &key) else {
                return Err(ClientError::answer(
                    "a remembered checkpoint that this key has signed",
                ));
            };
            if !checkpoint.origin.is_same_log(&old.origin) || epoch < *old_epoch {
                return lies("the gateway shows another log than before", note);
            }
            if epoch > *old_epoch {
                let problem = format!(
                    "the log was restarted: its epoch {epoch} does not have the {} entries that were seen in epoch {old_epoch}; \
                     ask the gateway's operator why",
                    old.size
                );
                let notes = newest.iter().map(|(_, old)| old.clone());
                let notes = notes.chain([note.to_owned()]).collect();
                found.push(Contradiction { problem, notes });
            } else if checkpoint.size < old.size {
                let problem = format!(
                    "the log became shorter: from {} to {} entries",
                    old.size, checkpoint.size
                );
                return lies(&problem, note);
            } else if !self.continues(&old, &checkpoint).await? {
                return lies(
                    "the log was rewritten: it does not continue what was seen before",
                    note,
                );
            }
        }
        report.state = LogState::Read {
            size: checkpoint.size,
            epoch,
        };
        report.key = Some((verifier_key(&checkpoint.origin, &key), memory.key.is_none()));
        memory.key = Some(key.to_text());
        memory.checkpoints.insert(epoch, note.to_owned());
        Ok(Ok(()))
    }

    async fn check_entries(
        &self,
        scope: LogScope,
        memory: &mut LogMemory,
        report: &mut LogReport,
        found: &mut Vec<Contradiction>,
    ) -> Result<()> {
        let Some(key) = memory.key() else {
            return Ok(());
        };
        let mut entries = std::mem::take(&mut memory.entries);
        let mut asked = 0;
        for own in &mut entries {
            if own.proven && scope == LogScope::New {
                report.proven += 1;
                continue;
            }
            if scope == LogScope::New && asked == MAX_PROOFS {
                report.open += 1;
                continue;
            }
            asked += 1;
            match self.check_entry(own, &key, memory).await? {
                Ok(true) => {
                    own.proven = true;
                    report.proven += 1;
                }
                Ok(false) => report.open += 1,
                Err(contradiction) => found.push(contradiction),
            }
        }
        memory.entries = entries;
        Ok(())
    }

    /// Whether the log has an entry. False if it may still come.
    async fn check_entry(
        &self,
        own: &OwnEntry,
        key: &PublicKey,
        memory: &mut LogMemory,
    ) -> Result<Result<bool, Contradiction>> {
        let about = format!(
            "the {} about request {}",
            visible(&own.kind),
            visible(&own.request_id)
        );
        let lies = |problem: String, notes: Vec<String>| Ok(Err(Contradiction { problem, notes }));
        let Some(entry) = own.entry() else {
            return lies(format!("{about} is not remembered well"), Vec::new());
        };
        let path = format!("/v1/log/proof?requestId={}", encode(&own.request_id));
        let shown = match self.get(path).await? {
            None => Vec::new(),
            Some(answer) => {
                let answer: ProofAnswer =
                    serde_json::from_slice(&answer.body).map_err(ClientError::answer)?;
                answer.entries
            }
        };
        let Some(shown) = shown.into_iter().find(|it| it.kind == own.kind) else {
            let is_new = own
                .at()
                .is_some_and(|at| self.now.inner() - at.inner() < LOG_GRACE);
            return match (own.proven, is_new) {
                (true, _) => lies(
                    format!(
                        "{about} was in the log, and the gateway has no record of it any more: it was deleted, or its retention is over"
                    ),
                    Vec::new(),
                ),
                (false, true) => Ok(Ok(false)),
                (false, false) => lies(format!("{about} is not in the log"), Vec::new()),
            };
        };
        let proof = LogProof::parse(&shown.proof);
        let verified = proof
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|proof| proof.verify(&entry, key));
        let (Ok(proof), Ok(checkpoint)) = (&proof, verified) else {
            return lies(
                format!("the log does not have {about} as it was signed"),
                vec![shown.proof],
            );
        };
        if let Some(problem) = self
            .check_seen(&checkpoint, &proof.checkpoint, key, memory)
            .await?
        {
            return lies(format!("{about}: {problem}"), vec![shown.proof]);
        }
        match shown.digest {
            Some(digest) if digest == own.digest => Ok(Ok(true)),
            Some(_) => lies(
                format!("the gateway's record of {about} was changed after it was logged"),
                vec![shown.proof],
            ),
            None => lies(
                format!("the gateway's record of {about} was deleted after it was logged"),
                vec![shown.proof],
            ),
        }
    }
}

/// The key in the form of C2SP: a name, a hash, and the key with its type.
fn read_key(text: &str) -> Option<PublicKey> {
    let typed = STANDARD.decode(text.splitn(3, '+').nth(2)?).ok()?;
    PublicKey::from_bytes(typed.strip_prefix(&[1])?)
}
