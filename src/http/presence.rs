//! Presence: which enforcers of the caller's tenant are there, in plain JSON.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::auth::As;
use super::body::Path;
use super::error::Refusal;
use super::reply::plain;
use crate::gateway::EnforcerPresence;
use crate::gateway::caller::Member;
use crate::gateway::error::Error;
use crate::protocol::id::{EnforcerId, TextId as _};

/// `GET /v1/presence/enforcers`.
pub async fn list(
    State(presence): State<Arc<EnforcerPresence>>,
    As(caller): As<Member>,
) -> Result<Response, Refusal> {
    let records = presence.enforcers(&caller).await?;
    Ok(plain(StatusCode::OK, &records))
}

/// `GET /v1/presence/enforcers/{enforcerDeviceId}`.
pub async fn one(
    State(presence): State<Arc<EnforcerPresence>>,
    As(caller): As<Member>,
    Path(enforcer): Path<String>,
) -> Result<Response, Refusal> {
    let enforcer = EnforcerId::parse(&enforcer).ok_or(Error::NotFound)?;
    let record = presence.enforcer(&caller, &enforcer).await?;
    Ok(plain(StatusCode::OK, &record))
}
