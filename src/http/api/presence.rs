//! Presence: which enforcers of the caller's tenant are there, in plain JSON.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::auth::As;
use super::body::PathParameters;
use super::error::HttpRefusal;
use super::reply::{AppState, plain, reserved};
use super::request_scope::RequestScope;
use crate::gateway::EnforcerPresence;
use crate::gateway::caller::Member;
use crate::gateway::error::Error;
use crate::protocol::id::{EnforcerId, TextId as _};

/// What a record usually takes.
const RECORD_BYTES: usize = 256;

/// `GET /v1/presence/enforcers`.
pub async fn list(
    State(node): State<AppState>,
    State(presence): State<Arc<EnforcerPresence>>,
    As(caller): As<Member>,
    Extension(http): Extension<RequestScope>,
) -> Result<Response, HttpRefusal> {
    let records = node.context.config.presence.list_max;
    let bytes = usize::try_from(records).unwrap_or(1) * RECORD_BYTES;
    let memory = node.reserve(&http, bytes).await?;
    let records = presence.enforcers(&caller).await?;
    Ok(reserved(memory, plain(StatusCode::OK, &records)))
}

/// `GET /v1/presence/enforcers/{enforcerDeviceId}`.
pub async fn one(
    State(presence): State<Arc<EnforcerPresence>>,
    As(caller): As<Member>,
    PathParameters(enforcer): PathParameters<String>,
) -> Result<Response, HttpRefusal> {
    let enforcer = EnforcerId::parse(&enforcer).ok_or(Error::NotFound)?;
    let record = presence.enforcer(&caller, &enforcer).await?;
    Ok(plain(StatusCode::OK, &record))
}
