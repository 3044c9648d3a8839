//! Presence: which enforcers of the caller's tenant are there, in plain JSON.

use axum::Extension;
use axum::http::StatusCode;

use super::auth::As;
use super::error::HttpResult;
use super::path::PathId;
use super::reply::{plain, reserved};
use super::request_scope::RequestScope;
use crate::gateway::error::Error;
use crate::gateway::identity::caller::Member;
use crate::protocol::id::{EnforcerId, TextId as _};

/// Usual size of a record.
const RECORD_BYTES: usize = 256;

/// `GET /v1/presence/enforcers`.
pub async fn list(
    As(node, caller): As<Member>,
    Extension(http): Extension<RequestScope>,
) -> HttpResult {
    let records = node.context.config.presence.list_max;
    let bytes = usize::try_from(records).unwrap_or(1) * RECORD_BYTES;
    let memory = node.reserve(&http, bytes).await?;
    let records = node.presence.enforcers(&caller).await?;
    Ok(reserved(memory, plain(StatusCode::OK, &records)))
}

/// `GET /v1/presence/enforcers/{enforcerDeviceId}`.
pub async fn one(As(node, caller): As<Member>, PathId(enforcer): PathId<String>) -> HttpResult {
    let enforcer = EnforcerId::parse(&enforcer).ok_or(Error::NotFound)?;
    let record = node.presence.enforcer(&caller, &enforcer).await?;
    Ok(plain(StatusCode::OK, &record))
}
