//! Serialises messages for channels.

use crate::gateway::context::GatewayContext;
use crate::gateway::error::{Error, Result};
use crate::protocol::id::{ApproverId, EnforcerId, MessageId};
use crate::protocol::timestamp::Timestamp;
use crate::protocol::trace::TraceContext;
use crate::store::channels::approver_messages::ForApprover;
use crate::store::channels::enforcer_messages::{ClaimedMessage, ForEnforcer};

#[derive(Debug)]
pub struct PushService {
    pub message_id: MessageId,
    pub msg_type: &'static str,
    pub text: String,
    pub(in crate::gateway) created_at: Timestamp,
    /// Whether this is its first delivery, to a channel that was open when it was created.
    pub(in crate::gateway) first: bool,
    /// Its trace context, if tracing is on.
    pub(in crate::gateway) context: Option<TraceContext>,
}

fn context_of(context: &GatewayContext, trace: Option<&str>) -> Option<TraceContext> {
    let trace = trace.filter(|_| context.tracer.records())?;
    TraceContext::of_trace(trace)
}

fn serialised<T: serde::Serialize>(envelope: &T) -> Result<String> {
    serde_json::to_string(envelope).map_err(|error| {
        tracing::error!(%error, "an envelope could not be serialised");
        Error::Internal
    })
}

pub(in crate::gateway) fn for_approver(
    context: &GatewayContext,
    approver: &ApproverId,
    message: ForApprover,
    first: bool,
) -> Result<PushService> {
    let gateway_id = &context.config.server.gateway_id;
    let message_id = message.message();
    let (msg_type, created_at, context, text) = match message {
        ForApprover::Request(request) => (
            "approval.request",
            request.created_at,
            context_of(context, request.trace.as_deref()),
            serialised(&request.envelope(gateway_id)?)?,
        ),
        ForApprover::Withdrawn(withdrawal) => (
            "exchange.withdrawn",
            withdrawal.created_at,
            None,
            serialised(&withdrawal.envelope(gateway_id, approver.clone()))?,
        ),
    };
    Ok(PushService {
        message_id,
        msg_type,
        text,
        created_at,
        first,
        context,
    })
}

pub(in crate::gateway) fn for_enforcer(
    context: &GatewayContext,
    enforcer: &EnforcerId,
    claimed: ClaimedMessage,
) -> Result<PushService> {
    let gateway_id = &context.config.server.gateway_id;
    let (msg_type, message_id, context, text) = match claimed.message {
        ForEnforcer::Decision {
            request_id,
            expires_at,
            delivery,
        } => (
            "decision.deliver",
            delivery.message_id,
            context_of(context, delivery.trace.as_deref()),
            serialised(&delivery.envelope(gateway_id, &request_id, enforcer, expires_at)?)?,
        ),
        ForEnforcer::Refresh(refresh) => (
            "refresh.request",
            refresh.message_id,
            None,
            serialised(&refresh.envelope(gateway_id))?,
        ),
        ForEnforcer::Prompt(prompt) => (
            "prompt.send",
            prompt.message_id,
            context_of(context, prompt.trace.as_deref()),
            serialised(&prompt.envelope(gateway_id, enforcer)?)?,
        ),
    };
    Ok(PushService {
        message_id,
        msg_type,
        text,
        created_at: claimed.created_at.into(),
        first: claimed.first,
        context,
    })
}
