//! Exchanges over REST: parses requests, calls the use cases and prints answers. It holds no rule about exchanges.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::auth::{self, As};
use super::body::{self, BodyKind, PathParameters};
use super::error::{HttpRefusal, RefusalContext};
use super::limit;
use super::reply::{AppState, plain, replayed, warned};
use crate::gateway::ExchangeService;
use crate::gateway::caller::{
    Approver, ApproverOrAdmin, Enforcer, EnforcerOrAdmin, EnforcerOrApprover, Member,
};
use crate::gateway::error::Error;
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

/// Takes a submission and puts the answer together; also tells whether an idempotency key answered it.
pub(super) async fn submitted(
    node: &AppState,
    exchanges: &ExchangeService,
    caller: Enforcer,
    command: SubmitCommand,
) -> Result<(OutgoingEnvelope<ArtifactAccepted>, bool), HttpRefusal> {
    let request = command.submission.request_id.clone();
    let bound = caller.bound.is_some();
    let id = command.enforcer.as_str();
    limit::admit_named(node, Limit::Submission, &caller.origin, bound, id).about(&request)?;
    let submitted = exchanges.submit(&caller, command).await.about(&request)?;
    let body = ArtifactAccepted {
        request_id: request.clone(),
        state: submitted.state,
        expires_at: submitted.expires_at,
        duplicate: submitted.duplicate,
    };
    let envelope = node.envelope(
        "artifact.accepted",
        &request,
        Some(submitted.expires_at),
        body,
    );
    Ok((envelope, submitted.replayed))
}

/// `POST /v1/artifacts`.
pub async fn submit(
    State(node): State<AppState>,
    State(exchanges): State<Arc<ExchangeService>>,
    As(caller): As<Enforcer>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let bytes = body::read(&node, request, BodyKind::Artifact).await?;
    let key = body::idempotency_key(&node, &bytes.parts.headers)?;
    let key = bind_key(&caller.origin, key, bytes.parts.uri.path(), &bytes);
    let read = |document: &json::JsonNode<'_>| exchanges.read_submission(&caller, document, key);
    let (command, _) = body::parsed_large(&node, &caller.origin, &bytes, read).await?;
    let warning = command.warning;
    let (envelope, was_replayed) = submitted(&node, &exchanges, caller, command).await?;
    let response = warned(node.respond(StatusCode::ACCEPTED, &envelope), warning);
    Ok(replayed(response, was_replayed))
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
    exchanges: &ExchangeService,
    caller: Approver,
    approver: ApproverId,
    decision: Decision,
) -> Result<OutgoingEnvelope<DecisionAccepted>, HttpRefusal> {
    let (request, verdict) = (decision.request_id.clone(), decision.verdict);
    let bound = caller.bound.is_some();
    let id = approver.as_str();
    limit::admit_named(node, Limit::Decision, &caller.origin, bound, id).about(&request)?;
    let (decided, expires_at) = exchanges
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
pub async fn decide(
    State(node): State<AppState>,
    State(exchanges): State<Arc<ExchangeService>>,
    As(caller): As<Approver>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let bytes = body::read(&node, request, BodyKind::Other).await?;
    let (approver, decision) = body::parsed(&bytes, |document| {
        exchanges.read_decision(&caller, document)
    })?;
    let envelope = decided(&node, &exchanges, caller, approver, decision).await?;
    Ok(node.respond(StatusCode::OK, &envelope))
}

/// The exchange in a path. Text that cannot be an id is not found.
fn path_request(text: &str) -> Result<RequestId, Error> {
    use crate::protocol::id::TextId as _;
    RequestId::parse(text).ok_or(Error::NotFound)
}

/// `GET /v1/exchanges/{requestId}`.
pub async fn status(
    State(node): State<AppState>,
    State(exchanges): State<Arc<ExchangeService>>,
    As(caller): As<Member>,
    PathParameters(request): PathParameters<String>,
) -> Result<Response, HttpRefusal> {
    let request = path_request(&request)?;
    let exchange = exchanges
        .exchange(&caller, &request)
        .await
        .about(&request)?;
    let verification = exchange.decision.as_ref().map(|found| found.verification);
    let trace = verification.map(|verification| raw(verification.carried_by(None)));
    let trace = trace.transpose().map_err(Error::from)?;
    let body = StatusBody {
        request_id: exchange.request_id,
        state: exchange.state,
        created_at: exchange.accepted_at,
        expires_at: exchange.expires_at,
        artifact_hash: exchange.artifact_hash,
        decision: exchange
            .decision
            .map(|decision| raw(decision.body))
            .transpose()
            .map_err(Error::from)?,
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
    State(node): State<AppState>,
    State(exchanges): State<Arc<ExchangeService>>,
    As(caller): As<Member>,
    PathParameters(request): PathParameters<String>,
) -> Result<Response, HttpRefusal> {
    let request = path_request(&request)?;
    let outcome = exchanges.outcome(&caller, &request).await.about(&request)?;
    let request_id = &request;
    let body = OutcomeBody {
        request_id,
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
    State(node): State<AppState>,
    State(exchanges): State<Arc<ExchangeService>>,
    As(caller): As<EnforcerOrAdmin>,
    PathParameters(request): PathParameters<String>,
    parts: Parts,
) -> Result<Response, HttpRefusal> {
    let request = path_request(&request)?;
    let timeout = body::query::<WaitQuery>(&parts.uri)?.timeout;
    let time_limit = node.context.time_limit(timeout.as_deref())?;
    let wait = exchanges.wait(caller, &request, time_limit);
    let waited = auth::while_authenticated(&node, &parts, wait).await?;
    match waited.about(&request)? {
        WaitOutcome::Decided(exchange) => {
            let (enforcer, expires_at) = (exchange.enforcer_id, exchange.expires_at);
            let delivery = exchange.decision.ok_or(Error::Internal)?;
            let envelope = delivery
                .envelope(
                    &node.context.config.server.gateway_id,
                    &request,
                    &enforcer,
                    expires_at,
                )
                .map_err(Error::from)?;
            Ok(node.respond(StatusCode::OK, &envelope))
        }
        WaitOutcome::Over(state) => {
            let mut response = StatusCode::NO_CONTENT.into_response();
            response
                .headers_mut()
                .insert("exchange-state", HeaderValue::from_static(state.as_str()));
            Ok(response)
        }
        WaitOutcome::Pending => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

/// `POST /v1/waits`, in plain JSON.
pub async fn wait_for_any(
    State(node): State<AppState>,
    State(exchanges): State<Arc<ExchangeService>>,
    As(caller): As<Member>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let bytes = body::read(&node, request, BodyKind::Other).await?;
    let timeout = body::query::<WaitQuery>(&bytes.parts.uri)?.timeout;
    let time_limit = node.context.time_limit(timeout.as_deref())?;
    let requests = body::parsed(&bytes, |document| Ok(parse_waited_for(document)?))?;
    // The memory of the body is not held for as long as the wait takes.
    let parts = bytes.into_parts();
    let wait = exchanges.wait_for_any(&caller, requests, time_limit);
    let request_ids = auth::while_authenticated(&node, &parts, wait).await??;
    Ok(match request_ids.as_slice() {
        [] => StatusCode::NO_CONTENT.into_response(),
        _ => plain(StatusCode::OK, &EndedExchanges { request_ids }),
    })
}

/// `POST /v1/exchanges/{requestId}/withdraw`.
pub async fn withdraw(
    State(node): State<AppState>,
    State(exchanges): State<Arc<ExchangeService>>,
    As(caller): As<Enforcer>,
    PathParameters(request): PathParameters<String>,
    http: Request,
) -> Result<Response, HttpRefusal> {
    let request = path_request(&request)?;
    let bytes = body::read(&node, http, BodyKind::Optional).await?;
    let (enforcer, reason) = exchanges
        .read_withdrawal(&caller, &request, &bytes)
        .about(&request)?;
    let ended = exchanges
        .withdraw(&caller, &request, enforcer, reason.as_deref())
        .await
        .about(&request)?;
    let body = WithdrawnBody {
        request_id: request.clone(),
        state: ExchangeState::Withdrawn,
        withdrawn_at: ended.at,
        reason,
    };
    Ok(node.respond(
        StatusCode::OK,
        &node.envelope("exchange.withdrawn", &request, ended.expires_at, body),
    ))
}

/// `POST /v1/exchanges/{requestId}/refresh`.
pub async fn refresh(
    State(node): State<AppState>,
    State(exchanges): State<Arc<ExchangeService>>,
    As(caller): As<ApproverOrAdmin>,
    PathParameters(request): PathParameters<String>,
    http: Request,
) -> Result<Response, HttpRefusal> {
    let request = path_request(&request)?;
    let bytes = body::read(&node, http, BodyKind::Other).await?;
    let command = exchanges
        .read_refresh(&caller, &request, &bytes)
        .about(&request)?;
    let queued = exchanges.refresh(&request, command).await.about(&request)?;
    Ok(node.respond(
        StatusCode::ACCEPTED,
        &queued.envelope(&node.context.config.server.gateway_id),
    ))
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
    exchanges: &ExchangeService,
    command: AckCommand,
) -> Result<OutgoingEnvelope<AckAccepted>, Error> {
    let (bound, id) = (command.bound, command.recipient.parts().1);
    limit::admit_named(node, Limit::Ack, &command.origin, bound, id)?;
    let acked = exchanges.acknowledge(command).await?;
    let body = AckAccepted {
        msg_id: acked.message_id,
        status: acked.status,
    };
    Ok(node.envelope("ack.accepted", &acked.request_id, acked.expires_at, body))
}

/// `POST /v1/acks`.
pub async fn acknowledge(
    State(node): State<AppState>,
    State(exchanges): State<Arc<ExchangeService>>,
    As(caller): As<EnforcerOrApprover>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let bytes = body::read(&node, request, BodyKind::Other).await?;
    let command = body::parsed(&bytes, |document| exchanges.read_ack(&caller, document))?;
    let envelope = acknowledged(&node, &exchanges, command)
        .await
        .map_err(body::about(&bytes))?;
    Ok(node.respond(StatusCode::OK, &envelope))
}
