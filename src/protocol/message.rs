//! What the gateway emits: envelopes put together around texts that are never rewritten.

use serde::Serialize;
use serde_json::value::RawValue;

use super::artifact::Form;
use super::envelope::{Outgoing, Recipient, Sender};
use super::exchange::State;
use super::id::{ApproverId, EnforcerId, MessageId, RequestId};
use super::timestamp::Timestamp;

/// A stored text that is not JSON: the database holds something we did not write.
#[derive(Debug, thiserror::Error)]
#[error("a stored text is not JSON")]
pub struct NotJson;

/// Wraps a text that is known to be JSON, so that it prints verbatim.
pub fn raw(text: String) -> Result<Box<RawValue>, NotJson> {
    RawValue::from_string(text).map_err(|_| NotJson)
}

fn literal(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// An approval request, as it stands in an inbox and is pushed.
#[derive(Debug, Clone)]
pub struct ApprovalRequest {
    pub message_id: MessageId,
    pub request_id: RequestId,
    /// When it was put into the inbox.
    pub created_at: Timestamp,
    /// When the exchange ends.
    pub expires_at: Timestamp,
    pub enforcer_id: EnforcerId,
    pub enforcer_label: Option<String>,
    pub approver_id: ApproverId,
    /// Sealed or open.
    pub form: Form,
    pub artifact_type: String,
    pub artifact_hash: String,
    /// The stored text, unless it has been scrubbed.
    pub stored: Option<String>,
    pub trace: Option<String>,
    pub expired: bool,
}

impl ApprovalRequest {
    /// The envelope `approval.request`.
    pub fn envelope(self, gateway_id: &str) -> Result<Outgoing<Box<RawValue>>, NotJson> {
        let body = self.body()?;
        Ok(Outgoing {
            msg_id: self.message_id,
            msg_type: "approval.request",
            request_id: self.request_id.as_str().to_owned(),
            created_at: self.created_at,
            expires_at: Some(self.expires_at),
            sender: Sender {
                enforcer_id: Some(self.enforcer_id),
                gateway_id: Some(gateway_id.to_owned()),
                ..Sender::default()
            },
            recipient: Some(Recipient {
                approver_id: Some(self.approver_id),
                ..Recipient::default()
            }),
            trace: self.trace.map(raw).transpose()?,
            body,
        })
    }

    fn body(&self) -> Result<Box<RawValue>, NotJson> {
        let mut text = format!("{{\"enforcerId\":{}", literal(self.enforcer_id.as_str()));
        if let Some(label) = &self.enforcer_label {
            text.extend([",\"enforcerLabel\":", &literal(label)]);
        }
        if self.expired {
            text.push_str(",\"state\":\"expired\"");
        }
        match (&self.stored, self.form) {
            (Some(stored), Form::Open) => {
                text.push_str(",\"artifact\":");
                text.push_str(stored);
                text.push('}');
            }
            // The stored object is ours, never empty, and starts with its brace: its members follow ours.
            (Some(stored), Form::Sealed) => {
                text.push(',');
                text.push_str(stored.strip_prefix('{').ok_or(NotJson)?);
            }
            (None, _) => {
                for (name, value) in [
                    ("artifactType", &self.artifact_type),
                    ("artifactHash", &self.artifact_hash),
                ] {
                    text.extend([",\"", name, "\":", &literal(value)]);
                }
                text.push('}');
            }
        }
        raw(text)
    }
}

#[derive(Debug, Clone)]
pub struct DecisionDelivery {
    pub message_id: MessageId,
    /// When the decision was accepted.
    pub decided_at: Timestamp,
    pub decided_by: ApproverId,
    pub body: String,
    pub trace: Option<String>,
}

impl DecisionDelivery {
    /// The envelope `decision.deliver`.
    pub fn envelope(
        self,
        gateway_id: &str,
        request_id: &RequestId,
        enforcer_id: &EnforcerId,
        expires_at: Timestamp,
    ) -> Result<Outgoing<Box<RawValue>>, NotJson> {
        Ok(Outgoing {
            msg_id: self.message_id,
            msg_type: "decision.deliver",
            request_id: request_id.as_str().to_owned(),
            created_at: self.decided_at,
            expires_at: Some(expires_at),
            sender: Sender {
                approver_id: Some(self.decided_by),
                gateway_id: Some(gateway_id.to_owned()),
                ..Sender::default()
            },
            recipient: Some(Recipient {
                enforcer_id: Some(enforcer_id.clone()),
                ..Recipient::default()
            }),
            trace: self.trace.map(raw).transpose()?,
            body: raw(self.body)?,
        })
    }
}

/// The news that an exchange was withdrawn or cancelled, for those who were asked.
#[derive(Debug, Clone)]
pub struct Withdrawal {
    pub message_id: MessageId,
    pub request_id: RequestId,
    /// When the message was queued.
    pub created_at: Timestamp,
    /// When the exchange would have ended.
    pub expires_at: Timestamp,
    /// Withdrawn or cancelled.
    pub state: State,
    /// When that was.
    pub withdrawn_at: Timestamp,
    pub reason: Option<String>,
}

/// The body of `exchange.withdrawn`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WithdrawnBody {
    pub request_id: RequestId,
    /// Withdrawn or cancelled.
    pub state: State,
    /// When that was.
    pub withdrawn_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Withdrawal {
    /// The envelope `exchange.withdrawn`.
    #[must_use]
    pub fn envelope(self, gateway_id: &str, approver_id: ApproverId) -> Outgoing<WithdrawnBody> {
        Outgoing {
            msg_id: self.message_id,
            msg_type: "exchange.withdrawn",
            request_id: self.request_id.as_str().to_owned(),
            created_at: self.created_at,
            expires_at: Some(self.expires_at),
            sender: Sender {
                gateway_id: Some(gateway_id.to_owned()),
                ..Sender::default()
            },
            recipient: Some(Recipient {
                approver_id: Some(approver_id),
                ..Recipient::default()
            }),
            trace: None,
            body: WithdrawnBody {
                request_id: self.request_id,
                state: self.state,
                withdrawn_at: self.withdrawn_at,
                reason: self.reason,
            },
        }
    }
}

#[derive(Debug, Clone)]
pub struct RefreshRequest {
    pub message_id: MessageId,
    pub request_id: RequestId,
    /// When it was queued.
    pub created_at: Timestamp,
    pub enforcer_id: EnforcerId,
    /// The approver who asks; none for an administrator.
    pub approver_id: Option<ApproverId>,
    pub reason: Option<String>,
}

/// The body of `refresh.request`.
#[derive(Debug, Serialize)]
pub struct RefreshBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl RefreshRequest {
    /// The envelope `refresh.request`, which also serves as the bare control object.
    #[must_use]
    pub fn envelope(self, gateway_id: &str) -> Outgoing<RefreshBody> {
        Outgoing {
            msg_id: self.message_id,
            msg_type: "refresh.request",
            request_id: self.request_id.as_str().to_owned(),
            created_at: self.created_at,
            expires_at: None,
            sender: Sender {
                approver_id: self.approver_id,
                gateway_id: Some(gateway_id.to_owned()),
                ..Sender::default()
            },
            recipient: Some(Recipient {
                enforcer_id: Some(self.enforcer_id),
                ..Recipient::default()
            }),
            trace: None,
            body: RefreshBody {
                reason: self.reason,
            },
        }
    }
}

#[derive(Debug, Clone)]
pub struct PromptDelivery {
    pub message_id: MessageId,
    pub request_id: RequestId,
    /// When it was queued.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
    /// Who sent it; none for an administrator.
    pub approver_id: Option<ApproverId>,
    pub body: String,
    pub trace: Option<String>,
}

impl PromptDelivery {
    /// The envelope `prompt.send`.
    pub fn envelope(
        self,
        gateway_id: &str,
        enforcer_id: &EnforcerId,
    ) -> Result<Outgoing<Box<RawValue>>, NotJson> {
        Ok(Outgoing {
            msg_id: self.message_id,
            msg_type: "prompt.send",
            request_id: self.request_id.as_str().to_owned(),
            created_at: self.created_at,
            expires_at: self.expires_at,
            sender: Sender {
                approver_id: self.approver_id,
                gateway_id: Some(gateway_id.to_owned()),
                ..Sender::default()
            },
            recipient: Some(Recipient {
                enforcer_id: Some(enforcer_id.clone()),
                ..Recipient::default()
            }),
            trace: self.trace.map(raw).transpose()?,
            body: raw(self.body)?,
        })
    }
}

/// The body of `exchange.status`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusBody {
    pub request_id: RequestId,
    pub state: State,
    /// When the gateway accepted it.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
    pub artifact_hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Box<RawValue>>,
}
