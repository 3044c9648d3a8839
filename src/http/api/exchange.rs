//! Exchanges over REST. It holds no rule about exchanges.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::auth::{self, As};
use super::body::{self, BodyKind};
use super::compat::reading::{self, GivenExpiry};
use super::error::{HttpRefusal, HttpResult, RefusalContext, refused};
use super::limit;
use super::path::{self, PathId};
use super::reply::{AppState, plain, replayed, warned};
use crate::gateway::error::Error;
use crate::gateway::identity::caller::{
    Approver, ApproverOrAdmin, Enforcer, EnforcerOrAdmin, EnforcerOrApprover, Member,
};
use crate::gateway::limit::RateClass as Limit;
use crate::gateway::{AckCommand, SubmitCommand, WaitOutcome, bind_key};
use crate::protocol::decision::Decision;
use crate::protocol::envelope::OutgoingEnvelope;
use crate::protocol::exchange::ExchangeState;
use crate::protocol::id::{ApproverId, MessageId, RequestId};
use crate::protocol::json;
use crate::protocol::message::{StatusBody, WithdrawnBody, raw};
use crate::protocol::refresh::AckStatus;
use crate::protocol::timestamp::Timestamp;
use crate::protocol::waited::{EndedExchanges, parse_waited_for};

/// The body of `artifact.accepted`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactAccepted {
    pub(super) request_id: RequestId,
    pub(super) state: ExchangeState,
    expires_at: Timestamp,
    pub(super) duplicate: bool,
}

/// Takes a submission; also tells whether an idempotency key answered it.
pub(super) async fn submitted(
    node: &AppState,
    caller: Enforcer,
    command: SubmitCommand,
) -> Result<(OutgoingEnvelope<ArtifactAccepted>, bool), HttpRefusal> {
    let request = command.submission.request_id.clone();
    let bound = caller.bound.is_some();
    let id = command.enforcer.as_str();
    limit::admit_named(node, Limit::Submission, &caller.origin, bound, id).about(&request)?;
    let submitted = node.exchanges.submit(&caller, command).await;
    let submitted = submitted.about(&request)?;
    let expires_at = submitted.expires_at;
    let body = ArtifactAccepted {
        request_id: request.clone(),
        state: submitted.state,
        expires_at,
        duplicate: submitted.duplicate,
    };
    let envelope = node.envelope("artifact.accepted", &request, Some(expires_at), body);
    Ok((envelope, submitted.replayed))
}

/// Serves a route that takes submissions, as Envelopes or in any framing.
pub(super) async fn submit_as(
    node: &AppState,
    caller: Enforcer,
    request: Request,
    in_any_framing: bool,
    print: impl FnOnce(&OutgoingEnvelope<ArtifactAccepted>) -> Response,
) -> HttpResult {
    let bytes = body::read(node, request, BodyKind::Artifact).await?;
    let key = body::idempotency_key(node, &bytes.parts.headers)?;
    let key = bind_key(&caller.origin, key, bytes.parts.uri.path(), &bytes);
    let exchanges = &node.exchanges;
    let skew = node.context.config.limits.clock_skew_seconds;
    let expiry = GivenExpiry::of(&caller.origin, node.context.clock.now(), skew);
    let read = |document: &json::JsonNode<'_>| {
        if in_any_framing {
            exchanges.read_any_submission(&caller, document, key)
        } else {
            let document = reading::submission(document, expiry.as_ref());
            exchanges.read_submission(&caller, &document, key)
        }
    };
    let (command, framing) = body::parsed_large(node, &caller.origin, &bytes, read).await?;
    let warning = command.warning;
    let submitted = submitted(node, caller, command).await;
    let (envelope, was_replayed) = submitted.map_err(refused(framing))?;
    let response = warned(print(&envelope), warning);
    Ok(replayed(response, was_replayed))
}

/// `POST /v1/artifacts`.
pub async fn submit(As(node, caller): As<Enforcer>, request: Request) -> HttpResult {
    let print = |envelope: &_| node.respond(StatusCode::ACCEPTED, envelope);
    submit_as(&node, caller, request, false, print).await
}

/// `PUT /v1/exchanges/{requestId}/ciphertext`.
pub async fn reseal(
    As(node, caller): As<Enforcer>,
    PathId(request): PathId<RequestId>,
    http: Request,
) -> HttpResult {
    let bytes = body::read(&node, http, BodyKind::Artifact).await?;
    let exchanges = &node.exchanges;
    let read = |document: &json::JsonNode<'_>| exchanges.read_reseal(&caller, &request, document);
    let (command, _) = body::parsed_large(&node, &caller.origin, &bytes, read).await?;
    let (bound, id) = (caller.bound.is_some(), command.enforcer.as_str());
    limit::admit_named(&node, Limit::Submission, &caller.origin, bound, id).about(&request)?;
    let replaced = exchanges.reseal(&caller, &command).await;
    replaced.about(&request)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The body of `decision.accepted`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DecisionAccepted {
    pub(super) request_id: RequestId,
    pub(super) state: ExchangeState,
    decision: &'static str,
    verified: bool,
    pub(super) duplicate: bool,
}

pub(super) async fn decided(
    node: &AppState,
    caller: Approver,
    approver: ApproverId,
    decision: Decision,
) -> Result<OutgoingEnvelope<DecisionAccepted>, HttpRefusal> {
    let (request, verdict) = (decision.request_id.clone(), decision.verdict);
    let bound = caller.bound.is_some();
    let id = approver.as_str();
    limit::admit_named(node, Limit::Decision, &caller.origin, bound, id).about(&request)?;
    let (decided, expires_at) = node
        .exchanges
        .decide(&caller, approver, decision)
        .await
        .about(&request)?;
    let body = DecisionAccepted {
        request_id: request.clone(),
        state: decided.state,
        decision: verdict.as_str(),
        verified: decided.verified,
        duplicate: decided.duplicate,
    };
    Ok(node.envelope("decision.accepted", &request, expires_at, body))
}

/// `POST /v1/decisions`.
pub async fn decide(As(node, caller): As<Approver>, request: Request) -> HttpResult {
    let bytes = body::read(&node, request, BodyKind::Other).await?;
    let (approver, decision) = body::parsed(&bytes, |document| {
        node.exchanges.read_decision(&caller, document)
    })?;
    let envelope = decided(&node, caller, approver, decision).await?;
    Ok(node.respond(StatusCode::OK, &envelope))
}

/// `GET /v1/exchanges/{requestId}`.
pub async fn status(
    As(node, caller): As<Member>,
    PathId(request): PathId<RequestId>,
) -> HttpResult {
    let exchange = node
        .exchanges
        .exchange(&caller, &request)
        .await
        .about(&request)?;
    let verification = exchange.decision.as_ref().map(|found| found.verification);
    let trace = verification.map(|verification| raw(verification.carried_by(None)));
    let trace = trace.transpose().map_err(Error::from)?;
    let decision = exchange.decision.map(|decision| raw(decision.body));
    let decision = decision.transpose().map_err(Error::from)?;
    let body = StatusBody {
        request_id: exchange.request_id,
        state: exchange.state,
        created_at: exchange.accepted_at,
        expires_at: exchange.expires_at,
        artifact_hash: exchange.artifact_hash,
        decision,
    };
    let envelope = node.envelope("exchange.status", &request, Some(exchange.expires_at), body);
    Ok(node.respond(StatusCode::OK, &envelope.traced(trace)))
}

/// The body of `exchange.outcome`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OutcomeBody<'r> {
    request_id: &'r RequestId,
    outcome: String,
}

/// `GET /v1/exchanges/{requestId}/outcome`.
pub async fn outcome(
    As(node, caller): As<Member>,
    PathId(request): PathId<RequestId>,
) -> HttpResult {
    let outcome = node
        .exchanges
        .outcome(&caller, &request)
        .await
        .about(&request)?;
    let body = OutcomeBody {
        request_id: &request,
        outcome,
    };
    let envelope = node.envelope("exchange.outcome", &request, None, body);
    Ok(node.respond(StatusCode::OK, &envelope))
}

#[derive(Deserialize)]
struct WaitQuery {
    timeout: Option<String>,
}

/// `GET /v1/exchanges/{requestId}/wait`.
pub async fn wait(
    As(node, caller): As<EnforcerOrAdmin>,
    PathId(request): PathId<RequestId>,
    parts: Parts,
) -> HttpResult {
    let timeout = path::query::<WaitQuery>(&parts.uri)?.timeout;
    let time_limit = node.context.time_limit(timeout.as_deref())?;
    let wait = node.exchanges.wait(caller, &request, time_limit);
    let waited = auth::while_authenticated(&node, &parts, wait).await?;
    match waited.about(&request)? {
        WaitOutcome::Decided(exchange) => {
            let (enforcer, expires_at) = (exchange.enforcer_id, exchange.expires_at);
            let delivery = exchange.decision.ok_or(Error::Internal)?;
            let gateway_id = &node.context.config.server.gateway_id;
            let envelope = delivery.envelope(gateway_id, &request, &enforcer, expires_at);
            Ok(node.respond(StatusCode::OK, &envelope.map_err(Error::from)?))
        }
        WaitOutcome::Over(state) => {
            let state = [("exchange-state", state.as_str())];
            Ok((StatusCode::NO_CONTENT, state).into_response())
        }
        WaitOutcome::Pending => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

/// `POST /v1/waits`, in plain JSON.
pub async fn wait_for_any(As(node, caller): As<Member>, request: Request) -> HttpResult {
    let bytes = body::read(&node, request, BodyKind::Other).await?;
    let timeout = path::query::<WaitQuery>(&bytes.parts.uri)?.timeout;
    let time_limit = node.context.time_limit(timeout.as_deref())?;
    let requests = body::parsed(&bytes, |document| Ok(parse_waited_for(document)?))?;
    // The memory of the body is not held for as long as the wait takes.
    let parts = bytes.into_parts();
    let wait = node.exchanges.wait_for_any(&caller, requests, time_limit);
    let request_ids = auth::while_authenticated(&node, &parts, wait).await??;
    Ok(match request_ids.as_slice() {
        [] => StatusCode::NO_CONTENT.into_response(),
        _ => plain(StatusCode::OK, &EndedExchanges { request_ids }),
    })
}

/// `POST /v1/exchanges/{requestId}/withdraw`.
pub async fn withdraw(
    As(node, caller): As<Enforcer>,
    PathId(request): PathId<RequestId>,
    http: Request,
) -> HttpResult {
    let bytes = body::read(&node, http, BodyKind::Optional).await?;
    let (enforcer, reason) = node
        .exchanges
        .read_withdrawal(
            &caller,
            &request,
            reading::withdrawal(&caller.origin, &bytes),
        )
        .about(&request)?;
    let ended = node
        .exchanges
        .withdraw(&caller, &request, enforcer, reason.as_deref())
        .await
        .about(&request)?;
    let body = WithdrawnBody {
        request_id: request.clone(),
        state: ExchangeState::Withdrawn,
        withdrawn_at: ended.at,
        reason,
    };
    let envelope = node.envelope("exchange.withdrawn", &request, ended.expires_at, body);
    Ok(node.respond(StatusCode::OK, &envelope))
}

/// `POST /v1/exchanges/{requestId}/refresh`.
pub async fn refresh(
    As(node, caller): As<ApproverOrAdmin>,
    PathId(request): PathId<RequestId>,
    http: Request,
) -> HttpResult {
    let bytes = body::read(&node, http, BodyKind::Other).await?;
    let command = node
        .exchanges
        .read_refresh(&caller, &request, &bytes)
        .about(&request)?;
    let queued = node
        .exchanges
        .refresh(&request, command)
        .await
        .about(&request)?;
    let envelope = queued.envelope(&node.context.config.server.gateway_id);
    Ok(node.respond(StatusCode::ACCEPTED, &envelope))
}

/// The body of `ack.accepted`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AckAccepted {
    msg_id: MessageId,
    status: AckStatus,
}

pub(super) async fn acknowledged(
    node: &AppState,
    command: AckCommand,
) -> Result<OutgoingEnvelope<AckAccepted>, Error> {
    let (bound, id) = (command.bound, command.recipient.parts().1);
    limit::admit_named(node, Limit::Ack, &command.origin, bound, id)?;
    let acked = node.exchanges.acknowledge(command).await?;
    let body = AckAccepted {
        msg_id: acked.message_id,
        status: acked.status,
    };
    Ok(node.envelope("ack.accepted", &acked.request_id, acked.expires_at, body))
}

/// `POST /v1/acks`.
pub async fn acknowledge(As(node, caller): As<EnforcerOrApprover>, request: Request) -> HttpResult {
    let bytes = body::read(&node, request, BodyKind::Other).await?;
    let command = body::parsed(&bytes, |document| {
        let document = reading::acknowledgement(caller.origin(), document);
        node.exchanges.read_ack(&caller, &document)
    })?;
    let envelope = acknowledged(&node, command)
        .await
        .map_err(body::about(&bytes))?;
    Ok(node.respond(StatusCode::OK, &envelope))
}
