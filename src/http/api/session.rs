//! Sessions over REST: events in any framing, plain JSON out.

use axum::Extension;
use axum::extract::Request;
use axum::http::StatusCode;
use serde_json::json;

use super::auth::As;
use super::body::{self, BodyKind};
use super::error::{HttpResult, refused};
use super::path::PathId;
use super::reply::{plain, reserved};
use super::request_scope::RequestScope;
use crate::gateway::identity::caller::{Enforcer, Member};
use crate::protocol::id::SessionId;
use crate::protocol::json;

/// `POST /v1/session/event`.
pub async fn report(As(node, caller): As<Enforcer>, request: Request) -> HttpResult {
    let bytes = body::read(&node, request, BodyKind::Snapshot).await?;
    let read =
        |document: &json::JsonNode<'_>| node.sessions.read_report(&caller, document, bytes.len());
    let (command, framing) = body::parsed_large(&node, &caller.origin, &bytes, read).await?;
    let session = command.report.session_id.clone();
    let reported = node
        .sessions
        .report(&caller, command)
        .await
        .map_err(refused(framing))?;
    let answer = json!({
        "sessionId": session,
        "state": reported.state,
        "duplicate": reported.duplicate,
    });
    Ok(plain(StatusCode::ACCEPTED, &answer))
}

/// `GET /v1/session/{sessionId}`.
pub async fn read(
    As(node, caller): As<Member>,
    PathId(session): PathId<SessionId>,
    Extension(http): Extension<RequestScope>,
) -> HttpResult {
    let limits = &node.context.config.limits;
    let memory = node.reserve(&http, limits.snapshot_bytes).await?;
    let session = node.sessions.session(&caller, &session).await?;
    Ok(reserved(memory, plain(StatusCode::OK, &session)))
}
