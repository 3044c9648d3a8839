//! The status of a prompt, from queued to one final status, judged by the facts of the store.

use serde::Serialize;
use serde_json::value::RawValue;

use super::body::{Prompt, PromptStatus, SentAck};
use crate::canonical::Sha256Hex;
use crate::error::{Error, Result};
use crate::id::{EnforcerId, OperationId, RequestId};
use crate::idempotent::{InsertFact, InsertOutcome, InsertRefusal};
use crate::message::{NotJson, raw};
use crate::timestamp::Timestamp;

#[derive(Debug, Clone)]
pub struct PromptRecord {
    pub hash: Sha256Hex,
    /// A queued prompt past its expiry is expired.
    pub status: PromptStatus,
    pub ack_at: Timestamp,
    pub details: Option<String>,
    pub expires_at: Option<Timestamp>,
}

/// The body of `prompt.ack` as the gateway shows it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AckBody {
    request_id: RequestId,
    prompt_hash: String,
    status: PromptStatus,
    ack_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Box<RawValue>>,
}

impl PromptRecord {
    /// The record as of an instant: past its expiry a queued prompt is expired, whether or not that
    /// is stored yet.
    #[must_use]
    pub fn at(self, past: bool) -> Self {
        match (self.status, self.expires_at) {
            (PromptStatus::Queued, Some(ack_at)) if past => Self {
                status: PromptStatus::Expired,
                ack_at,
                ..self
            },
            _ => self,
        }
    }

    pub fn body(self, request_id: RequestId) -> Result<AckBody, NotJson> {
        Ok(AckBody {
            request_id,
            prompt_hash: self.hash.to_string(),
            status: self.status,
            ack_at: self.ack_at,
            details: self.details.map(raw).transpose()?,
        })
    }
}

#[derive(Debug, Clone)]
pub struct QueuedPrompt {
    pub enforcer_id: EnforcerId,
    pub at: Timestamp,
}

/// Why a prompt was not written, if no other has its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptNotWritten {
    NoRecipient,
    /// The enforcer is paired, but not with this approver.
    NotPaired,
    Expired,
    /// The prompt that had its id was gone when it was read.
    Other,
}

pub type PromptFact = InsertFact<QueuedPrompt, PromptRecord, PromptNotWritten>;

#[derive(Debug, Clone)]
pub struct AcceptedPrompt {
    pub standing: PromptRecord,
    /// Whether an idempotency key gave the answer.
    pub replayed: bool,
    /// The enforcer to wake, if it was queued just now.
    pub queued_for: Option<EnforcerId>,
}

pub fn judge_prompt(
    fact: PromptFact,
    operation: OperationId,
    prompt: &Prompt,
) -> Result<AcceptedPrompt> {
    match fact.judge(operation) {
        Ok(InsertOutcome::New(QueuedPrompt { enforcer_id, at })) => Ok(AcceptedPrompt {
            standing: PromptRecord {
                hash: prompt.hash,
                status: PromptStatus::Queued,
                ack_at: at,
                details: None,
                expires_at: prompt.expires_at,
            },
            replayed: false,
            queued_for: Some(enforcer_id),
        }),
        Ok(InsertOutcome::Repeated {
            value: standing,
            replayed,
            ..
        }) => Ok(AcceptedPrompt {
            standing,
            replayed,
            queued_for: None,
        }),
        Err(InsertRefusal::KeyReused) => Err(Error::IdempotencyKeyReused),
        Err(InsertRefusal::AlreadyExists) => Err(Error::PromptExists),
        Err(InsertRefusal::NotWritten(reason)) => Err(match reason {
            PromptNotWritten::NoRecipient => Error::NoRecipient,
            PromptNotWritten::NotPaired => Error::Forbidden {
                pointer: None,
                expected: "an approver paired with the enforcer, or an administrator",
            },
            PromptNotWritten::Expired => Error::PromptExpired {
                pointer: prompt.expiry_pointer.clone(),
            },
            PromptNotWritten::Other => Error::Unavailable,
        }),
    }
}

/// A prompt to be acknowledged, as the store found it under the row's lock.
#[derive(Debug, Clone)]
pub struct AckFact {
    /// Whether it was written, now or by an earlier try of this attempt.
    pub written: bool,
    pub standing: PromptRecord,
}

/// Judges an acknowledgement by the facts of the store. Repeating the current status is no conflict.
pub fn judge_ack(fact: Option<AckFact>, sent: &SentAck) -> Result<PromptRecord> {
    let AckFact { written, standing } = fact.ok_or(Error::NotFound)?;
    if standing.hash != sent.hash {
        return Err(Error::PromptMismatch);
    }
    if written || standing.status == sent.status {
        return Ok(standing);
    }
    Err(Error::PromptSettled(standing.status.as_str()))
}
