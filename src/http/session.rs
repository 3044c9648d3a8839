//! Sessions over REST: events in any framing, plain JSON out.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use super::auth::As;
use super::body::{self, Kind, Path};
use super::error::Refusal;
use super::generic::refused;
use super::reply::{Node, plain};
use crate::gateway::caller::{Enforcer, Member};
use crate::gateway::error::Error;
use crate::protocol::id::{SessionId, TextId as _};

/// `POST /v1/session/event`.
pub async fn report(
    State(node): State<Node>,
    As(caller): As<Enforcer>,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let bytes = body::read(&node, &parts.headers, body, Kind::Snapshot).await?;
    let command = node
        .gateway
        .sessions
        .read_report(&caller, &bytes)
        .map_err(refused(&bytes))?;
    let (gateway, session) = (node.gateway.clone(), command.report.session_id.clone());
    let reported = node
        .finish(async move { gateway.sessions.report(&caller, command).await })
        .await
        .map_err(refused(&bytes))?;
    let answer = json!({
        "sessionId": session,
        "state": reported.state,
        "duplicate": reported.duplicate,
    });
    Ok(plain(StatusCode::ACCEPTED, &answer))
}

/// `GET /v1/session/{sessionId}`.
pub async fn read(
    State(node): State<Node>,
    As(caller): As<Member>,
    Path(session): Path<String>,
) -> Result<Response, Refusal> {
    // What cannot be an id names nothing.
    let session = SessionId::parse(&session).ok_or(Error::NotFound)?;
    let gateway = node.gateway.clone();
    let session = node
        .finish(async move { gateway.sessions.session(&caller, &session).await })
        .await?;
    Ok(plain(StatusCode::OK, &session))
}
