//! Sessions over REST: events in any framing, plain JSON out.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use super::auth::As;
use super::body::{self, BodyKind, PathParameters};
use super::error::HttpRefusal;
use super::generic::refused;
use super::reply::{AppState, plain, reserved};
use super::request_scope::RequestScope;
use crate::gateway::SessionService;
use crate::gateway::caller::{Enforcer, Member};
use crate::gateway::error::Error;
use crate::protocol::id::{SessionId, TextId as _};
use crate::protocol::json;

/// `POST /v1/session/event`.
pub async fn report(
    State(node): State<AppState>,
    State(sessions): State<Arc<SessionService>>,
    As(caller): As<Enforcer>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let bytes = body::read(&node, request, BodyKind::Snapshot).await?;
    let read = |document: &json::JsonNode<'_>| sessions.read_report(&caller, document, bytes.len());
    let (command, framing) = body::parsed_large(&node, &caller.origin, &bytes, read).await?;
    let session = command.report.session_id.clone();
    let reported = sessions
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
    State(node): State<AppState>,
    State(sessions): State<Arc<SessionService>>,
    As(caller): As<Member>,
    PathParameters(session): PathParameters<String>,
    Extension(http): Extension<RequestScope>,
) -> Result<Response, HttpRefusal> {
    let session = SessionId::parse(&session).ok_or(Error::NotFound)?;
    let limits = &node.context.config.limits;
    let memory = node.reserve(&http, limits.snapshot_bytes).await?;
    let session = sessions.session(&caller, &session).await?;
    Ok(reserved(memory, plain(StatusCode::OK, &session)))
}
