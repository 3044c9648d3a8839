//! The generic endpoints: the bare object or either Envelope in, plain JSON out. The use cases are those of `exchange`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use super::auth::As;
use super::body::{self, BodyKind};
use super::error::HttpRefusal;
use super::exchange::{decided, submitted};
use super::reply::{AppState, plain, replayed, warned};
use crate::gateway::ExchangeService;
use crate::gateway::bind_key;
use crate::gateway::caller::{Approver, Enforcer};
use crate::protocol::framing::Framing;
use crate::protocol::json;

/// Makes a refusal point into the caller's own framing.
pub(super) fn refused<E: Into<HttpRefusal>>(framing: Framing) -> impl Fn(E) -> HttpRefusal {
    move |error| HttpRefusal {
        framing,
        ..error.into()
    }
}

/// `POST /v1/artifact`.
pub async fn submit(
    State(node): State<AppState>,
    State(exchanges): State<Arc<ExchangeService>>,
    As(caller): As<Enforcer>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let bytes = body::read(&node, request, BodyKind::Artifact).await?;
    let key = body::idempotency_key(&node, &bytes.parts.headers)?;
    let key = bind_key(&caller.origin, key, bytes.parts.uri.path(), &bytes);
    let read =
        |document: &json::JsonNode<'_>| exchanges.read_any_submission(&caller, document, key);
    let (command, framing) = body::parsed_large(&node, &caller.origin, &bytes, read).await?;
    let warning = command.warning;
    let (envelope, was_replayed) = submitted(&node, &exchanges, caller, command)
        .await
        .map_err(refused(framing))?;
    let accepted = envelope.body;
    let answer = json!({
        "requestId": accepted.request_id,
        "state": accepted.state,
        "duplicate": accepted.duplicate,
    });
    let response = warned(plain(StatusCode::ACCEPTED, &answer), warning);
    Ok(replayed(response, was_replayed))
}

/// `POST /v1/decision`.
pub async fn decide(
    State(node): State<AppState>,
    State(exchanges): State<Arc<ExchangeService>>,
    As(caller): As<Approver>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let bytes = body::read(&node, request, BodyKind::Other).await?;
    let ((approver, decision), framing) = body::parsed_any(&bytes, |document| {
        exchanges.read_any_decision(&caller, document)
    })?;
    let approver = if let Some(approver) = approver {
        approver
    } else {
        let request = decision.request_id.clone();
        exchanges
            .decider(&caller, &request)
            .await
            .map_err(refused(framing))?
    };
    let envelope = decided(&node, &exchanges, caller, approver, decision)
        .await
        .map_err(refused(framing))?;
    let accepted = envelope.body;
    let answer = json!({
        "requestId": accepted.request_id,
        "state": accepted.state,
        "duplicate": accepted.duplicate,
    });
    Ok(plain(StatusCode::OK, &answer))
}
