//! The generic endpoints: the bare object or either Envelope in, plain JSON out.

use axum::extract::Request;
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::auth::As;
use super::body::{self, BodyKind};
use super::error::{HttpResult, refused};
use super::exchange::{ArtifactAccepted, decided, submit_as};
use super::reply::plain;
use crate::gateway::identity::caller::{Approver, Enforcer};
use crate::protocol::envelope::OutgoingEnvelope;
use crate::protocol::exchange::ExchangeState;
use crate::protocol::id::RequestId;

fn summary(request: &RequestId, state: ExchangeState, is_duplicate: bool) -> Value {
    json!({ "requestId": request, "state": state, "duplicate": is_duplicate })
}

/// `POST /v1/artifact`.
pub async fn submit(As(node, caller): As<Enforcer>, request: Request) -> HttpResult {
    let print = |envelope: &OutgoingEnvelope<ArtifactAccepted>| {
        let accepted = &envelope.body;
        let answer = summary(&accepted.request_id, accepted.state, accepted.duplicate);
        plain(StatusCode::ACCEPTED, &answer)
    };
    submit_as(&node, caller, request, true, print).await
}

/// `POST /v1/decision`.
pub async fn decide(As(node, caller): As<Approver>, request: Request) -> HttpResult {
    let bytes = body::read(&node, request, BodyKind::Other).await?;
    let ((approver, decision), framing) = body::parsed_any(&bytes, |document| {
        node.exchanges.read_any_decision(&caller, document)
    })?;
    let approver = if let Some(approver) = approver {
        approver
    } else {
        let request = decision.request_id.clone();
        node.exchanges
            .decider(&caller, &request)
            .await
            .map_err(refused(framing))?
    };
    let envelope = decided(&node, caller, approver, decision)
        .await
        .map_err(refused(framing))?;
    let accepted = envelope.body;
    let answer = summary(&accepted.request_id, accepted.state, accepted.duplicate);
    Ok(plain(StatusCode::OK, &answer))
}
