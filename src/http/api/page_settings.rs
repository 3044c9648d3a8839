//! Settings that the approvers' page needs before anybody has signed in.

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::{Value, json};

use super::auth::AdmittedAddress;
use super::reply::{AppState, plain};
use crate::config::Oidc;

/// A changed configuration is known everywhere after a minute.
const CACHED: HeaderValue = HeaderValue::from_static("public, max-age=60");

/// `GET /v1/page`.
pub async fn read(State(node): State<AppState>, _: AdmittedAddress) -> Response {
    let answer = described(&node.context.config.page.oidc);
    let mut response = plain(StatusCode::OK, &answer);
    response.headers_mut().insert(header::CACHE_CONTROL, CACHED);
    response
}

/// The settings of the page. All of it is public: the page's client has no secret.
pub fn described(oidc: &Oidc) -> Value {
    if !oidc.is_enabled() {
        return json!({ "oidc": null });
    }
    let mut settings =
        json!({ "issuer": oidc.issuer, "clientId": oidc.client_id, "scope": oidc.scope });
    for (member, value) in [("audience", &oidc.audience), ("resource", &oidc.resource)] {
        if !value.is_empty() {
            settings[member] = value.as_str().into();
        }
    }
    json!({ "oidc": settings })
}
