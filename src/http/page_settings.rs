//! What the approvers' page has to know before anybody has signed in.

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::{Value, json};

use super::auth::admit_address;
use super::error::Refusal;
use super::peer::PeerInfo;
use super::reply::{Node, plain};
use crate::config::Oidc;

/// A changed configuration is known everywhere after a minute.
const CACHED: HeaderValue = HeaderValue::from_static("public, max-age=60");

/// `GET /v1/page`.
pub async fn read(
    State(node): State<Node>,
    peer: Option<Extension<PeerInfo>>,
) -> Result<Response, Refusal> {
    if let Some(Extension(peer)) = peer {
        admit_address(&node, peer)?;
    }
    let answer = described(&node.context.config.page.oidc);
    let mut response = plain(StatusCode::OK, &answer);
    response.headers_mut().insert(header::CACHE_CONTROL, CACHED);
    Ok(response)
}

/// The settings of the page. All of it is public: the page's client has no secret.
fn described(oidc: &Oidc) -> Value {
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
