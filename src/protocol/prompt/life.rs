//! What becomes of a prompt: from queued to one final status, judged by what the store found.

use serde::Serialize;
use serde_json::value::RawValue;

use super::{Prompt, SentAck, Status};
use crate::protocol::canonical::Sha256Hex;
use crate::protocol::id::{EnforcerId, OperationId, RequestId};
use crate::protocol::idempotent::{InsertFact, InsertRefusal, Inserted};
use crate::protocol::message::{NotJson, raw};
use crate::protocol::timestamp::Timestamp;

/// What became of a prompt, at this instant.
#[derive(Debug, Clone)]
pub struct Standing {
    pub hash: Sha256Hex,
    /// How far it got; past its time a queued one is expired.
    pub status: Status,
    /// Since when.
    pub ack_at: Timestamp,
    pub details: Option<String>,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
}

/// The body of `prompt.ack` as the gateway shows it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AckBody {
    request_id: RequestId,
    prompt_hash: String,
    status: Status,
    ack_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Box<RawValue>>,
}

impl Standing {
    /// The standing as of an instant: past its expiry a queued prompt is expired, whether or not that is stored yet.
    #[must_use]
    pub fn at(self, past: bool) -> Self {
        match (self.status, self.expires_at) {
            (Status::Queued, Some(ack_at)) if past => Self {
                status: Status::Expired,
                ack_at,
                ..self
            },
            _ => self,
        }
    }

    /// The body of `prompt.ack` that says so.
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
pub struct Queued {
    pub enforcer_id: EnforcerId,
    pub at: Timestamp,
}

/// Why a prompt was not written, if no other has its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptNotWritten {
    /// There is no enforcer to send it to.
    NoRecipient,
    /// The enforcer is paired, but not with this approver.
    NotPaired,
    /// It arrived past its expiry.
    Expired,
    /// The prompt that had its id was gone when it was read.
    Other,
}

pub type PromptFact = InsertFact<Queued, Standing, PromptNotWritten>;

/// A prompt that was taken, now or before.
#[derive(Debug, Clone)]
pub struct Taken {
    pub standing: Standing,
    pub replayed: bool,
    /// The enforcer to wake, if it was queued just now.
    pub queued_for: Option<EnforcerId>,
}

/// Why a prompt is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptRefusal {
    KeyReused,
    AlreadyExists,
    /// It arrived past its time.
    Expired,
    /// There is no enforcer to send it to.
    NoRecipient,
    /// The enforcer is paired, and not with this approver.
    Barred,
    /// What stood in the way was gone when looked at.
    Unsettled,
}

pub fn judge_prompt(
    fact: PromptFact,
    operation: OperationId,
    prompt: &Prompt,
) -> Result<Taken, PromptRefusal> {
    match fact.judge(operation) {
        Ok(Inserted::New(Queued { enforcer_id, at })) => Ok(Taken {
            standing: Standing {
                hash: prompt.hash,
                status: Status::Queued,
                ack_at: at,
                details: None,
                expires_at: prompt.expires_at,
            },
            replayed: false,
            queued_for: Some(enforcer_id),
        }),
        Ok(Inserted::Repeated {
            value: standing,
            replayed,
            ..
        }) => Ok(Taken {
            standing,
            replayed,
            queued_for: None,
        }),
        Err(InsertRefusal::KeyReused) => Err(PromptRefusal::KeyReused),
        Err(InsertRefusal::AlreadyExists) => Err(PromptRefusal::AlreadyExists),
        Err(InsertRefusal::NotWritten(reason)) => Err(match reason {
            PromptNotWritten::NoRecipient => PromptRefusal::NoRecipient,
            PromptNotWritten::NotPaired => PromptRefusal::Barred,
            PromptNotWritten::Expired => PromptRefusal::Expired,
            PromptNotWritten::Other => PromptRefusal::Unsettled,
        }),
    }
}

/// What the store found where an acknowledgement was to go, looked at under the row's lock.
#[derive(Debug, Clone)]
pub struct AckFact {
    /// Whether it was written, now or by an earlier try of this very attempt.
    pub written: bool,
    pub standing: Standing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AckRefusal {
    /// There is no such prompt for this enforcer.
    NotFound,
    HashMismatch,
    Settled(Status),
}

/// Judges an acknowledgement by what the store found. A repeat of what stands is no conflict.
pub fn judge_ack(fact: Option<AckFact>, sent: &SentAck) -> Result<Standing, AckRefusal> {
    let AckFact { written, standing } = fact.ok_or(AckRefusal::NotFound)?;
    if standing.hash != sent.hash {
        return Err(AckRefusal::HashMismatch);
    }
    if written || standing.status == sent.status {
        return Ok(standing);
    }
    Err(AckRefusal::Settled(standing.status))
}
