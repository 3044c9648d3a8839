//! The status of a prompt, from queued to one final status, judged by what the store found.

use serde::Serialize;
use serde_json::value::RawValue;

use super::{Prompt, PromptStatus, SentAck};
use crate::protocol::canonical::Sha256Hex;
use crate::protocol::error::Error;
use crate::protocol::exchange::KeyFact;
use crate::protocol::id::{ApproverId, EnforcerId, OperationId, RequestId};
use crate::protocol::message::{NotJson, raw};
use crate::protocol::timestamp::Timestamp;

/// The current state of a prompt.
#[derive(Debug, Clone)]
pub struct PromptRecord {
    pub hash: Sha256Hex,
    /// A queued prompt past its expiry is expired.
    pub status: PromptStatus,
    /// Since when it has this status.
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
pub struct ExistingPrompt {
    pub submission_id: OperationId,
    /// Who sent it; none for an administrator.
    pub approver_id: Option<ApproverId>,
    pub standing: PromptRecord,
}

#[derive(Debug, Clone)]
pub enum PromptFact {
    Written {
        enforcer_id: EnforcerId,
        at: Timestamp,
    },
    Unwritten {
        /// The prompt of that id, if there is one.
        existing: Option<ExistingPrompt>,
        key: KeyFact,
        /// Whether it had expired.
        past: bool,
        /// Whether an enforcer to send it to is known.
        addressed: bool,
        /// Whether that enforcer is paired, but not with this approver.
        barred: bool,
    },
}

/// A prompt that was accepted, now or before.
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
    sender: Option<&ApproverId>,
    prompt: &Prompt,
) -> Result<AcceptedPrompt, Error> {
    let (existing, key, past, addressed, barred) = match fact {
        PromptFact::Written { enforcer_id, at } => {
            return Ok(AcceptedPrompt {
                standing: PromptRecord {
                    hash: prompt.hash,
                    status: PromptStatus::Queued,
                    ack_at: at,
                    details: None,
                    expires_at: prompt.expires_at,
                },
                replayed: false,
                queued_for: Some(enforcer_id),
            });
        }
        PromptFact::Unwritten {
            existing,
            key,
            past,
            addressed,
            barred,
        } => (existing, key, past, addressed, barred),
    };
    match (existing, key) {
        (_, KeyFact::Other) => Err(Error::IdempotencyKeyReused),
        (Some(found), _)
            if found.approver_id.as_ref() == sender && found.standing.hash == prompt.hash =>
        {
            let own = found.submission_id == operation;
            Ok(AcceptedPrompt {
                standing: found.standing,
                replayed: !own && key == KeyFact::Same,
                queued_for: None,
            })
        }
        (Some(_), _) => Err(Error::PromptExists),
        (None, _) if !addressed => Err(Error::NoRecipient),
        (None, _) if barred => Err(Error::Forbidden {
            pointer: None,
            expected: "an approver paired with the enforcer, or an administrator",
        }),
        (None, _) if past => Err(Error::PromptExpired {
            pointer: prompt.expiry_pointer.clone(),
        }),
        // The row that stood in the way is gone by now.
        (None, _) => Err(Error::Unavailable),
    }
}

/// What the store found of a prompt to be acknowledged, under the row's lock.
#[derive(Debug, Clone)]
pub struct AckFact {
    /// Whether it was written, now or by an earlier try of this attempt.
    pub written: bool,
    pub standing: PromptRecord,
}

/// Judges an acknowledgement by what the store found. Repeating the current status is no conflict.
pub fn judge_ack(fact: Option<AckFact>, sent: &SentAck) -> Result<PromptRecord, Error> {
    let AckFact { written, standing } = fact.ok_or(Error::NotFound)?;
    if standing.hash != sent.hash {
        return Err(Error::PromptMismatch);
    }
    if written || standing.status == sent.status {
        return Ok(standing);
    }
    Err(Error::PromptSettled(standing.status.as_str()))
}
