//! Messages as they are sent over a channel: the envelope of each, printed.

use super::Gateway;
use super::error::Error;
use crate::protocol::id::{ApproverId, EnforcerId, MessageId};
use crate::protocol::timestamp::Timestamp;
use crate::store::claim::ForEnforcer;
use crate::store::feed::ForApprover;

/// A message, ready to send.
#[derive(Debug)]
pub struct Push {
    /// Its id.
    pub message_id: MessageId,
    /// Its type.
    pub msg_type: &'static str,
    /// The envelope's text.
    pub text: String,
}

/// An envelope's text.
fn printed<T: serde::Serialize>(envelope: &T) -> Result<String, Error> {
    serde_json::to_string(envelope).map_err(|error| {
        tracing::error!(%error, "an envelope could not be printed");
        Error::Internal
    })
}

/// What an approver is sent.
pub(super) fn for_approver(
    gateway: &Gateway,
    approver: &ApproverId,
    message: ForApprover,
) -> Result<Push, Error> {
    let gateway_id = &gateway.config.server.gateway_id;
    let message_id = message.message();
    let (msg_type, text) = match message {
        ForApprover::Request(request) => {
            ("approval.request", printed(&request.envelope(gateway_id)?)?)
        }
        ForApprover::Withdrawn(withdrawal) => (
            "exchange.withdrawn",
            printed(&withdrawal.envelope(gateway_id, approver.clone()))?,
        ),
    };
    Ok(Push {
        message_id,
        msg_type,
        text,
    })
}

/// What an enforcer is sent.
pub(super) fn for_enforcer(
    gateway: &Gateway,
    enforcer: &EnforcerId,
    message: ForEnforcer,
) -> Result<Push, Error> {
    let gateway_id = &gateway.config.server.gateway_id;
    match message {
        ForEnforcer::Decision {
            request_id,
            expires_at,
            delivery,
        } => {
            let expires_at: Timestamp = expires_at;
            let message_id = delivery.message_id;
            let text =
                printed(&delivery.envelope(gateway_id, &request_id, enforcer, expires_at)?)?;
            Ok(Push {
                message_id,
                msg_type: "decision.deliver",
                text,
            })
        }
        ForEnforcer::Refresh(refresh) => {
            let message_id = refresh.message_id;
            Ok(Push {
                message_id,
                msg_type: "refresh.request",
                text: printed(&refresh.envelope(gateway_id))?,
            })
        }
        ForEnforcer::Prompt(prompt) => Ok(Push {
            message_id: prompt.message_id,
            msg_type: "prompt.send",
            text: printed(&prompt.envelope(gateway_id, enforcer)?)?,
        }),
    }
}
