//! Presence: which enforcers of the caller's tenant are there, in plain JSON.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::auth::As;
use super::body::Path;
use super::error::Refusal;
use super::reply::{Node, plain};
use crate::gateway::caller::Member;
use crate::gateway::error::Error;
use crate::protocol::id::{EnforcerId, TextId as _};

/// `GET /v1/presence/enforcers`.
pub async fn list(State(node): State<Node>, As(caller): As<Member>) -> Result<Response, Refusal> {
    let gateway = node.gateway.clone();
    let records = node
        .finish(async move { gateway.presence.enforcers(&caller).await })
        .await?;
    Ok(plain(StatusCode::OK, &records))
}

/// `GET /v1/presence/enforcers/{enforcerDeviceId}`.
pub async fn one(
    State(node): State<Node>,
    As(caller): As<Member>,
    Path(enforcer): Path<String>,
) -> Result<Response, Refusal> {
    // What cannot be an id names nobody.
    let enforcer = EnforcerId::parse(&enforcer).ok_or(Error::NotFound)?;
    let gateway = node.gateway.clone();
    let record = node
        .finish(async move { gateway.presence.enforcer(&caller, &enforcer).await })
        .await?;
    Ok(plain(StatusCode::OK, &record))
}
