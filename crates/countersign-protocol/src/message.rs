//! The messages that the gateway emits. Stored texts go into them unchanged.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::artifact::Form;
use super::decision::Verification;
use super::envelope::OutgoingEnvelope;
use super::error::Error;
use super::exchange::ExchangeState;
use super::id::{ApproverId, EnforcerId, MessageId, RequestId};
use super::json;
use super::timestamp::Timestamp;

/// The database holds something that the gateway did not write.
#[derive(Debug, thiserror::Error)]
#[error("a stored text is not JSON")]
pub struct NotJson;

/// The log has the cause, which the caller must not learn.
impl From<NotJson> for Error {
    fn from(error: NotJson) -> Self {
        tracing::error!(%error, "an envelope could not be built");
        Self::Internal
    }
}

/// Wraps a text that is known to be JSON, so that it prints verbatim.
pub fn raw(text: String) -> Result<Box<RawValue>, NotJson> {
    RawValue::from_string(text).map_err(|_| NotJson)
}

fn literal(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// An approval request, as it stands in an inbox and is pushed.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct RequestMessage {
    pub message_id: MessageId,
    pub request_id: RequestId,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub enforcer_id: EnforcerId,
    pub enforcer_label: Option<String>,
    pub approver_id: ApproverId,
    pub form: Form,
    pub artifact_type: String,
    pub artifact_hash: String,
    /// The stored text, unless it has been scrubbed.
    pub stored: Option<String>,
    pub trace: Option<String>,
    pub expired: bool,
}

impl RequestMessage {
    pub fn envelope(self, gateway_id: &str) -> Result<OutgoingEnvelope<Box<RawValue>>, NotJson> {
        let body = self.body()?;
        Ok(OutgoingEnvelope::new(
            "approval.request",
            self.message_id,
            self.request_id.as_str(),
            self.created_at,
            gateway_id,
            body,
        )
        .expiring(Some(self.expires_at))
        .sent_by_enforcer(self.enforcer_id)
        .for_approver(self.approver_id)
        .traced(self.trace.map(raw).transpose()?))
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
            // The stored object was built by the gateway: never empty, first character a brace. Its
            // members follow.
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

/// The members of a `trace` in which the gateway says how far it vouches for a decision.
const VOUCHING: [&str; 2] = ["verified", "verification"];

impl Verification {
    /// A `trace` that says how far the gateway vouches for a decision's signature: nothing but
    /// `trace` is free to carry that. Members that the approver itself wrote under these names are
    /// left out; the rest of its text stays.
    pub fn carried_by(self, trace: Option<&str>) -> String {
        let verified = self == Self::Registered;
        let [first, second] = VOUCHING;
        let own = format!("\"{first}\":{verified},\"{second}\":\"{}\"", self.as_str());
        let document = trace.and_then(|trace| json::parse(trace.as_bytes()).ok());
        let object = document.as_ref().and_then(|node| node.as_object());
        let (Some(object), Some(rest)) = (object, trace.and_then(|text| text.strip_prefix('{')))
        else {
            return format!("{{{own}}}");
        };
        if object.is_empty() {
            return format!("{{{own}}}");
        }
        if VOUCHING.iter().all(|name| object.get(name).is_none()) {
            return format!("{{{own},{rest}");
        }
        let others = object
            .iter()
            .filter(|member| !VOUCHING.contains(&member.name.as_ref()))
            .map(|member| format!(",{}:{}", member.raw_name, member.node.raw));
        format!("{{{own}{}}}", others.collect::<String>())
    }
}

#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct DecisionDelivery {
    pub message_id: MessageId,
    pub decided_at: Timestamp,
    pub decided_by: ApproverId,
    pub verification: Verification,
    pub body: String,
    pub trace: Option<String>,
}

impl DecisionDelivery {
    pub fn envelope(
        self,
        gateway_id: &str,
        request_id: &RequestId,
        enforcer_id: &EnforcerId,
        expires_at: Timestamp,
    ) -> Result<OutgoingEnvelope<Box<RawValue>>, NotJson> {
        Ok(OutgoingEnvelope::new(
            "decision.deliver",
            self.message_id,
            request_id.as_str(),
            self.decided_at,
            gateway_id,
            raw(self.body)?,
        )
        .expiring(Some(expires_at))
        .sent_by_approver(Some(self.decided_by))
        .for_enforcer(enforcer_id.clone())
        .traced(Some(raw(self
            .verification
            .carried_by(self.trace.as_deref()))?)))
    }
}

/// Tells an approver who was asked that the exchange was withdrawn or cancelled.
#[derive(Debug, Clone)]
pub struct WithdrawalNotice {
    pub message_id: MessageId,
    pub request_id: RequestId,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub state: ExchangeState,
    pub withdrawn_at: Timestamp,
    pub reason: Option<String>,
}

/// The body of `exchange.withdrawn`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WithdrawnBody {
    pub request_id: RequestId,
    pub state: ExchangeState,
    pub withdrawn_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl WithdrawalNotice {
    pub fn envelope(
        self,
        gateway_id: &str,
        approver_id: ApproverId,
    ) -> OutgoingEnvelope<WithdrawnBody> {
        let body = WithdrawnBody {
            request_id: self.request_id.clone(),
            state: self.state,
            withdrawn_at: self.withdrawn_at,
            reason: self.reason,
        };
        OutgoingEnvelope::new(
            "exchange.withdrawn",
            self.message_id,
            self.request_id.as_str(),
            self.created_at,
            gateway_id,
            body,
        )
        .expiring(Some(self.expires_at))
        .for_approver(approver_id)
    }
}

#[derive(Debug, Clone)]
pub struct RefreshRequest {
    pub message_id: MessageId,
    pub request_id: RequestId,
    pub created_at: Timestamp,
    pub enforcer_id: EnforcerId,
    /// None for an administrator.
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
    pub fn envelope(self, gateway_id: &str) -> OutgoingEnvelope<RefreshBody> {
        let body = RefreshBody {
            reason: self.reason,
        };
        OutgoingEnvelope::new(
            "refresh.request",
            self.message_id,
            self.request_id.as_str(),
            self.created_at,
            gateway_id,
            body,
        )
        .sent_by_approver(self.approver_id)
        .for_enforcer(self.enforcer_id)
    }
}

#[derive(Debug, Clone)]
pub struct PromptDelivery {
    pub message_id: MessageId,
    pub request_id: RequestId,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    /// None for an administrator.
    pub approver_id: Option<ApproverId>,
    pub body: String,
    pub trace: Option<String>,
}

impl PromptDelivery {
    pub fn envelope(
        self,
        gateway_id: &str,
        enforcer_id: &EnforcerId,
    ) -> Result<OutgoingEnvelope<Box<RawValue>>, NotJson> {
        Ok(OutgoingEnvelope::new(
            "prompt.send",
            self.message_id,
            self.request_id.as_str(),
            self.created_at,
            gateway_id,
            raw(self.body)?,
        )
        .expiring(self.expires_at)
        .sent_by_approver(self.approver_id)
        .for_enforcer(enforcer_id.clone())
        .traced(self.trace.map(raw).transpose()?))
    }
}

/// The body of `exchange.status`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusBody {
    pub request_id: RequestId,
    pub state: ExchangeState,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub artifact_hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Box<RawValue>>,
}
