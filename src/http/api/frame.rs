//! Frames of a WebSocket: the call that each one makes, and the answer that names the frame.

use std::collections::BTreeMap;
use std::time::Instant;

use opentelemetry::KeyValue;
use serde_json::value::{RawValue, to_raw_value};

use super::error::HttpRefusal;
use super::exchange::{acknowledged, decided, submitted};
use super::limit;
use super::reply::AppState;
use crate::gateway::error::Error;
use crate::gateway::identity::caller::{Approver, Enforcer, EnforcerOrApprover};
use crate::gateway::limit::RateClass;
use crate::gateway::{AckCommand, AckPrompt, SubmitCommand};
use crate::protocol::decision::Decision;
use crate::protocol::envelope::OutgoingEnvelope;
use crate::protocol::id::{ApproverId, RequestId, TextId as _};
use crate::protocol::json;
use crate::protocol::presence::{ClientHello, Transport, parse_hello};
use crate::protocol::trace::TraceContext;
use crate::telemetry::metrics::frame_label;
use crate::telemetry::trace;
use crate::wake::WakeKey;

type FrameAnswer = OutgoingEnvelope<Box<RawValue>>;

/// The members of a frame that name it, as far as it could be read.
#[derive(Default)]
struct FrameHead {
    msg_type: Option<String>,
    msg_id: Option<String>,
    request_id: Option<String>,
    context: Option<TraceContext>,
    warning: Option<&'static str>,
}

/// The call that a frame makes. The frame's parsed JSON is dropped before the call is run.
enum FrameCall {
    Submit(Enforcer, Box<SubmitCommand>),
    Decide(Approver, ApproverId, Box<Decision>),
    Ack(AckCommand),
    AckPrompt(AckPrompt),
    Hello(ClientHello),
    Nothing,
}

/// The answer to a frame on the channel of `key`, if any: that of REST, with `trace.inReplyTo`.
pub async fn answer(
    node: &AppState,
    caller: &EnforcerOrApprover,
    key: &WakeKey,
    bytes: &[u8],
) -> Option<String> {
    let begun = Instant::now();
    let mut head = FrameHead::default();
    let outcome = serve(node, caller, key, bytes, &mut head).await;
    let word = if outcome.is_ok() {
        "accepted"
    } else {
        "refused"
    };
    let label = frame_label(head.msg_type.as_deref());
    let frames = node.context.metrics.frames.of([label, word]);
    frames.took(begun.elapsed());
    let envelope = match outcome {
        Ok(answer) => answer?,
        Err(refusal) => {
            node.note_refusal(&refusal.description);
            let about = refusal.about.or(head.request_id);
            let body = refusal
                .description
                .body(&node.context.names, about.as_deref());
            let about = about.unwrap_or_else(|| node.context.clock.operation_id().to_string());
            node.envelope_about("error", about, None, to_raw_value(&body).ok()?)
        }
    };
    let envelope = envelope.traced(answer_trace(head.msg_id.as_deref(), head.warning));
    serde_json::to_string(&envelope).ok()
}

async fn serve(
    node: &AppState,
    caller: &EnforcerOrApprover,
    key: &WakeKey,
    bytes: &[u8],
    head: &mut FrameHead,
) -> Result<Option<FrameAnswer>, HttpRefusal> {
    admit_any(node, caller, key)?;
    let parse = || {
        let document = json::parse(bytes)?;
        *head = read_head(&document)?;
        // The credential may have been revoked since the node was cut off from the database.
        if node.channels.is_cut_off() {
            return Err(Error::Unavailable);
        }
        let span = node.context.tracer.begin(head.context.clone());
        Ok((span, read(node, caller, head, &document)))
    };
    let limiter = &node.limiter;
    let parsed = (node.parsing).parse(limiter, caller.origin(), bytes.len(), parse);
    let (span, call) = parsed.await?;
    let warning = match &call {
        Ok(FrameCall::Submit(_, command)) => command.warning,
        _ => None,
    };
    let outcome = match call {
        Ok(call) => {
            let (own, key) = (node.clone(), key.clone());
            let running = node.finish(async move { Ok(run(&own, &key, call).await) });
            let ended = trace::within(span.clone(), running).await;
            ended.unwrap_or_else(|error| Err(error.into()))
        }
        Err(error) => Err(error.into()),
    };
    head.warning = warning.filter(|_| outcome.is_ok());
    if let Some(span) = span {
        let name = || frame_label(head.msg_type.as_deref()).to_owned();
        let transport = Transport::WebSocket.as_str();
        let attributes = || vec![KeyValue::new("countersign.transport", transport)];
        let failed = (outcome.as_ref()).is_err_and(|refusal| refusal.status().is_server_error());
        node.context.tracer.end(&span, name, attributes, failed);
    }
    outcome
}

/// The `trace` of an answer: the frame it answers, and a warning about it.
fn answer_trace(id: Option<&str>, warning: Option<&str>) -> Option<Box<RawValue>> {
    let members = [("inReplyTo", id), ("warning", warning)];
    let members = members
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    let members: BTreeMap<_, _> = members.collect();
    to_raw_value(&members).ok().filter(|_| !members.is_empty())
}

fn read_head(document: &json::JsonNode<'_>) -> Result<FrameHead, Error> {
    let object = document
        .as_object()
        .ok_or_else(|| Error::invalid("", "an object"))?;
    let text = |name: &str| {
        object
            .get(name)
            .and_then(|node| node.as_str())
            .map(str::to_owned)
    };
    Ok(FrameHead {
        msg_type: text("msgType"),
        msg_id: text("msgId"),
        request_id: text("requestId").filter(|id| RequestId::parse(id).is_some()),
        context: object
            .get("trace")
            .and_then(|node| TraceContext::of_trace(node.raw)),
        warning: None,
    })
}

/// Counts a frame before it is read, whatever it contains.
fn admit_any(node: &AppState, caller: &EnforcerOrApprover, key: &WakeKey) -> Result<(), Error> {
    let id = match key {
        WakeKey::Enforcer(_, id) => id.as_str(),
        WakeKey::Approver(_, id) => id.as_str(),
        WakeKey::Exchange(..) => "",
    };
    let bound = caller.bound().is_some();
    limit::admit_identity(node, RateClass::Read, caller.origin(), bound, id)
}

/// Counts a frame by the bound id; without one as a whole, and later by the id in the frame.
fn admit(node: &AppState, caller: &EnforcerOrApprover, kind: RateClass) -> Result<(), Error> {
    match caller.bound() {
        Some(id) => node.limiter.admit(kind, caller.origin(), Some(id)),
        None => node.limiter.admit_any_id(kind, caller.origin()),
    }
}

fn read(
    node: &AppState,
    caller: &EnforcerOrApprover,
    head: &FrameHead,
    document: &json::JsonNode<'_>,
) -> Result<FrameCall, Error> {
    use EnforcerOrApprover::{Approver, Enforcer};
    let gateway = &node.gateway;
    match (head.msg_type.as_deref(), caller) {
        (Some("artifact.submit"), Enforcer(enforcer)) => {
            admit(node, caller, RateClass::Submission)?;
            let command = gateway
                .exchanges
                .read_submission(enforcer, document, None)?;
            Ok(FrameCall::Submit(enforcer.clone(), Box::new(command)))
        }
        (Some("decision.submit"), Approver(approver)) => {
            admit(node, caller, RateClass::Decision)?;
            let (id, decision) = gateway.exchanges.read_decision(approver, document)?;
            Ok(FrameCall::Decide(approver.clone(), id, Box::new(decision)))
        }
        (Some("ack.submit"), caller) => {
            admit(node, caller, RateClass::Ack)?;
            Ok(FrameCall::Ack(
                gateway.exchanges.read_ack(caller, document)?,
            ))
        }
        (Some("prompt.ack"), Enforcer(enforcer)) => {
            admit(node, caller, RateClass::Ack)?;
            let command = gateway.prompts.read_prompt_ack(enforcer, document)?;
            Ok(FrameCall::AckPrompt(command))
        }
        (Some("hello"), Enforcer(_)) => Ok(FrameCall::Hello(parse_hello(document)?)),
        (Some("hello"), Approver(_)) => Ok(FrameCall::Nothing),
        (Some("artifact.submit" | "decision.submit" | "prompt.ack"), _) => Err(Error::Forbidden {
            pointer: Some("/msgType".into()),
            expected: "a message that this role sends",
        }),
        _ => Err(Error::invalid(
            "/msgType",
            "hello, ack.submit, artifact.submit, decision.submit or prompt.ack",
        )),
    }
}

async fn run(
    node: &AppState,
    key: &WakeKey,
    call: FrameCall,
) -> Result<Option<FrameAnswer>, HttpRefusal> {
    let answer = match call {
        FrameCall::Submit(caller, command) => raw(submitted(node, caller, *command).await?.0)?,
        FrameCall::Decide(caller, approver, decision) => {
            raw(decided(node, caller, approver, *decision).await?)?
        }
        FrameCall::Ack(command) => raw(acknowledged(node, command).await?)?,
        FrameCall::AckPrompt(command) => {
            let request = command.request_id().clone();
            let standing = node.prompts.acknowledge_prompt(command).await?;
            let expires_at = standing.expires_at;
            let body = standing.body(request.clone()).map_err(Error::from)?;
            raw(node.envelope("prompt.ack", &request, expires_at, body))?
        }
        FrameCall::Hello(hello) => {
            node.presence.hello(key, hello).await?;
            return Ok(None);
        }
        FrameCall::Nothing => return Ok(None),
    };
    Ok(Some(answer))
}

/// The same envelope with its body as text, so that all answers have one type.
fn raw<B: serde::Serialize>(envelope: OutgoingEnvelope<B>) -> Result<FrameAnswer, Error> {
    let body = to_raw_value(&envelope.body).map_err(|_| Error::Internal)?;
    Ok(envelope.with_body(body))
}
