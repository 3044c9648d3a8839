//! The identity behind a credential, for clients whose tokens come from elsewhere.

use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use super::auth::As;
use super::reply::plain;
use crate::gateway::identity::caller::Member;

/// `GET /v1/whoami`.
pub async fn read(As(_, caller): As<Member>) -> Response {
    let origin = caller.origin();
    let mut answer = json!({ "tenantId": origin.tenant, "role": caller.role() });
    if let Some(id) = caller.bound() {
        answer["boundId"] = id.into();
    }
    if let Some(end) = origin.expires_at {
        answer["expiresAt"] = end.to_string().into();
    }
    plain(StatusCode::OK, &answer)
}
