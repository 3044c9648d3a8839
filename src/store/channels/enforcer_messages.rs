//! Messages for an enforcer's channel, put together from the rows of a claim.

use time::OffsetDateTime;
use uuid::Uuid;

use crate::protocol::decision::Verification;
use crate::protocol::id::{ApproverId, EnforcerId, MessageId, RequestId};
use crate::protocol::message::{DecisionDelivery, PromptDelivery, RefreshRequest};
use crate::protocol::timestamp::Timestamp;
use crate::store::database::rows;

#[derive(Debug)]
pub enum ForEnforcer {
    Decision {
        request_id: RequestId,
        expires_at: Timestamp,
        delivery: DecisionDelivery,
    },
    Refresh(RefreshRequest),
    Prompt(PromptDelivery),
}

#[derive(Debug)]
pub struct ClaimedMessage {
    pub message: ForEnforcer,
    pub created_at: OffsetDateTime,
    /// Whether it was never offered before.
    pub first: bool,
    /// How long after its time it is offered again on the same channel, in seconds.
    pub late: Option<f64>,
}

/// A row of a claim: about the channel, and one of the messages if there are any.
pub(in crate::store) struct ClaimedRow {
    /// The number of the call's row.
    pub n: i64,
    pub live: bool,
    pub channels: Uuid,
    pub walked_at: Option<OffsetDateTime>,
    pub walked_seq: Option<i32>,
    pub walked_id: Option<Uuid>,
    pub message_id: Option<MessageId>,
    pub kind: Option<String>,
    pub request_id: Option<RequestId>,
    pub created_at: Option<OffsetDateTime>,
    pub recipient: Option<EnforcerId>,
    pub sender: Option<ApproverId>,
    pub reason: Option<String>,
    pub first: Option<bool>,
    pub late: Option<f64>,
    pub expires_at: Option<Timestamp>,
    pub decided_at: Option<Timestamp>,
    pub decided_by: Option<ApproverId>,
    pub verification: Option<Verification>,
    pub body: Option<String>,
    pub trace: Option<String>,
    pub traceparent: Option<String>,
    pub tracestate: Option<String>,
}

impl ClaimedRow {
    /// The message; `None` if nothing was claimed.
    pub fn message(self) -> sqlx::Result<Option<ClaimedMessage>> {
        let (Some(message_id), Some(kind), Some(request_id), Some(at), Some(enforcer_id)) = (
            self.message_id,
            self.kind,
            self.request_id,
            self.created_at,
            self.recipient,
        ) else {
            return Ok(None);
        };
        let created_at = Timestamp::from(at);
        let message = match (kind.as_str(), self.body, self.decided_by, self.expires_at) {
            ("decision.deliver", Some(body), Some(decided_by), Some(expires_at)) => {
                let (parent, state) = (self.traceparent.as_deref(), self.tracestate.as_deref());
                ForEnforcer::Decision {
                    request_id,
                    expires_at,
                    delivery: DecisionDelivery {
                        message_id,
                        decided_at: self.decided_at.unwrap_or(created_at),
                        decided_by,
                        verification: self.verification.unwrap_or(Verification::Unregistered),
                        body,
                        trace: rows::carrying(self.trace, parent, state),
                    },
                }
            }
            ("prompt.send", Some(body), _, expires_at) => ForEnforcer::Prompt(PromptDelivery {
                message_id,
                request_id,
                created_at,
                expires_at,
                approver_id: self.sender,
                body,
                trace: self.trace,
            }),
            ("refresh.request", ..) => ForEnforcer::Refresh(RefreshRequest {
                message_id,
                request_id,
                created_at,
                enforcer_id,
                approver_id: self.sender,
                reason: self.reason,
            }),
            _ => {
                return Err(sqlx::Error::Decode(
                    "a message of a kind that enforcers do not get".into(),
                ));
            }
        };
        Ok(Some(ClaimedMessage {
            message,
            created_at: at,
            first: self.first.unwrap_or_default(),
            late: self.late,
        }))
    }
}
