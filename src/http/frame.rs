//! Frames from a WebSocket's peer: which call each one is, and the answer as an envelope that names the frame.

use std::time::Instant;

use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::error::{Description, Refusal};
use super::exchange::{acknowledged, decided, submitted};
use super::reply::Node;
use crate::gateway::caller::{Approver, Enforcer, EnforcerOrApprover};
use crate::gateway::error::Error;
use crate::gateway::limit::Kind;
use crate::protocol::envelope::Outgoing;
use crate::protocol::id::{ApproverId, EnforcerId, RequestId, TextId as _};
use crate::protocol::json;
use crate::protocol::presence::{Transport, parse_hello};
use crate::protocol::trace::TraceContext;
use crate::telemetry::metrics::frame_label;
use crate::telemetry::trace::{self, Attribute};
use crate::wake::Key;

pub enum Peer {
    Enforcer(Enforcer),
    Approver(Approver),
}

struct Head {
    msg_type: Option<String>,
    msg_id: Option<String>,
    request_id: Option<String>,
    context: Option<TraceContext>,
}

/// The answer to a frame on the channel of `key`, if there is one: what REST would have answered, with `trace.inReplyTo`.
pub async fn answer(node: &Node, peer: &Peer, key: &Key, bytes: &[u8]) -> Option<String> {
    let begun = Instant::now();
    let counted = admit_any(node, peer, key);
    let (head, outcome) = match counted.and_then(|()| head(bytes)) {
        Ok(head) => {
            let tracer = &node.gateway.tracer;
            let span = tracer.begin(head.context.clone());
            let taking = take(node, peer, key, &head, bytes);
            let outcome = trace::within(span.clone(), taking).await;
            if let Some(span) = span {
                let name = || frame_label(head.msg_type.as_deref()).to_owned();
                let transport = Attribute::Text(Transport::WebSocket.as_str().to_owned());
                let attributes = || vec![("countersign.transport", transport)];
                let failed = outcome
                    .as_ref()
                    .is_err_and(|refusal| Description::of(&refusal.error).status.is_server_error());
                tracer.end(&span, name, attributes, failed);
            }
            (head, outcome)
        }
        Err(error) => (
            Head {
                msg_type: None,
                msg_id: None,
                request_id: None,
                context: None,
            },
            Err(Refusal::from(error)),
        ),
    };
    let word = if outcome.is_ok() {
        "accepted"
    } else {
        "refused"
    };
    let label = frame_label(head.msg_type.as_deref());
    let frames = node.gateway.metrics.frames.of([label, word]);
    frames.took(begun.elapsed());
    let mut envelope = match outcome {
        Ok(None) => return None,
        Ok(Some(envelope)) => envelope,
        Err(refusal) => {
            let about = refusal.about.or(head.request_id);
            let described = Description::of(&refusal.error);
            node.note_refusal(&refusal.error, &described);
            let body = described.body(&node.gateway.names, about.as_deref());
            let about = about.unwrap_or_else(|| node.gateway.clock.operation_id().to_string());
            node.envelope_about("error", about, None, to_raw_value(&body).ok()?)
        }
    };
    envelope.trace = head.msg_id.and_then(|id| in_reply_to(&id));
    serde_json::to_string(&envelope).ok()
}

fn in_reply_to(id: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(json!({ "inReplyTo": id }).to_string()).ok()
}

fn head(bytes: &[u8]) -> Result<Head, Error> {
    let document = json::parse(bytes)?;
    let object = document
        .as_object()
        .ok_or_else(|| Error::invalid("", "an object"))?;
    let text = |name: &str| {
        object
            .get(name)
            .and_then(|node| node.as_str())
            .map(str::to_owned)
    };
    let request_id = text("requestId").filter(|id| RequestId::parse(id).is_some());
    Ok(Head {
        msg_type: text("msgType"),
        msg_id: text("msgId"),
        request_id,
        context: object
            .get("trace")
            .and_then(|node| TraceContext::of_trace(node.raw)),
    })
}

/// Counts a frame before it is looked at, whatever it turns out to be.
fn admit_any(node: &Node, peer: &Peer, key: &Key) -> Result<(), Error> {
    let origin = match peer {
        Peer::Enforcer(caller) => &caller.origin,
        Peer::Approver(caller) => &caller.origin,
    };
    let id = match key {
        Key::Enforcer(_, id) => id.as_str(),
        Key::Approver(_, id) => id.as_str(),
        Key::Exchange(..) => "",
    };
    node.gateway.admit(Kind::Read, origin, Some(id))
}

/// Counts a frame, where the credential says whose it is; where the frame does, it is counted by that.
fn admit(node: &Node, peer: &Peer, kind: Kind) -> Result<(), Error> {
    let (origin, bound) = match peer {
        Peer::Enforcer(caller) => (
            &caller.origin,
            caller.bound.as_ref().map(EnforcerId::as_str),
        ),
        Peer::Approver(caller) => (
            &caller.origin,
            caller.bound.as_ref().map(ApproverId::as_str),
        ),
    };
    match bound {
        Some(id) => node.gateway.admit(kind, origin, Some(id)),
        None => Ok(()),
    }
}

async fn take(
    node: &Node,
    peer: &Peer,
    key: &Key,
    head: &Head,
    bytes: &[u8],
) -> Result<Option<Outgoing<Box<RawValue>>>, Refusal> {
    match (head.msg_type.as_deref(), peer) {
        (Some("artifact.submit"), Peer::Enforcer(caller)) => {
            admit(node, peer, Kind::Submission)?;
            let command = node
                .gateway
                .read_submission(caller, bytes, "/v1/artifacts", None)?;
            let (envelope, _) = submitted(node, caller.clone(), command).await?;
            Ok(Some(value(envelope)?))
        }
        (Some("decision.submit"), Peer::Approver(caller)) => {
            admit(node, peer, Kind::Decision)?;
            let (approver, decision) = node.gateway.read_decision(caller, bytes)?;
            Ok(Some(value(
                decided(node, caller.clone(), approver, decision).await?,
            )?))
        }
        (Some("ack.submit"), peer) => {
            admit(node, peer, Kind::Ack)?;
            let caller = match peer {
                Peer::Enforcer(caller) => EnforcerOrApprover::Enforcer(caller.clone()),
                Peer::Approver(caller) => EnforcerOrApprover::Approver(caller.clone()),
            };
            let command = node.gateway.read_ack(&caller, bytes)?;
            Ok(Some(value(acknowledged(node, command).await?)?))
        }
        (Some("prompt.ack"), Peer::Enforcer(caller)) => {
            admit(node, peer, Kind::Ack)?;
            let command = node.gateway.read_prompt_ack(caller, bytes)?;
            let (gateway, request) = (node.gateway.clone(), command.request_id().clone());
            let standing = node
                .finish(async move { gateway.acknowledge_prompt(command).await })
                .await?;
            let expires_at = standing.expires_at;
            let body = standing.body(request.clone()).map_err(Error::from)?;
            Ok(Some(value(node.envelope(
                "prompt.ack",
                &request,
                expires_at,
                body,
            ))?))
        }
        (Some("hello"), Peer::Enforcer(_)) => {
            let document = json::parse(bytes).map_err(Error::from)?;
            let hello = parse_hello(&document).map_err(Error::from)?;
            node.gateway.hello(key, hello).await?;
            Ok(None)
        }
        (Some("hello"), Peer::Approver(_)) => Ok(None),
        (Some("artifact.submit" | "decision.submit" | "prompt.ack"), _) => {
            let expected = "a message that this role sends";
            Err(Error::Forbidden {
                pointer: Some("/msgType".into()),
                expected,
            }
            .into())
        }
        _ => Err(Error::invalid(
            "/msgType",
            "hello, ack.submit, artifact.submit, decision.submit or prompt.ack",
        )
        .into()),
    }
}

/// The same envelope with its body as text, so that every answer has one type and nothing in it is spelled anew.
fn value<B: serde::Serialize>(envelope: Outgoing<B>) -> Result<Outgoing<Box<RawValue>>, Error> {
    let body = to_raw_value(&envelope.body).map_err(|_| Error::Internal)?;
    Ok(Outgoing {
        msg_id: envelope.msg_id,
        msg_type: envelope.msg_type,
        request_id: envelope.request_id,
        created_at: envelope.created_at,
        expires_at: envelope.expires_at,
        sender: envelope.sender,
        recipient: envelope.recipient,
        trace: envelope.trace,
        body,
    })
}
