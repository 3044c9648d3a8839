//! Pairing: plain JSON, outside the protocol's media type and framing.

use axum::extract::Request;
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::auth::As;
use super::body::{self, BodyKind};
use super::compat;
use super::error::HttpResult;
use super::path::{PathId, QueryPage};
use super::reply::{extended, paged, plain};
use crate::gateway::identity::caller::{Approver, Enforcer, EnforcerOrApprover, Member};
use crate::protocol::pairing::{
    CompletePairing, InitiatePairing, Nonce, PairingCode, parse_revoke,
};

/// `POST /v1/pairing/initiate`.
pub async fn initiate(As(node, caller): As<Enforcer>, request: Request) -> HttpResult {
    if caller.origin.profile.is_compat() {
        return compat::pairing::initiate(&node, &caller, request).await;
    }
    let request = body::read_as(&node, request, BodyKind::Other, InitiatePairing::parse).await?;
    let begun = node.pairings.initiate_pairing(&caller, request).await?;
    let answer = json!({
        "code": begun.code.to_string(), "nonce": begun.nonce, "expiresAt": begun.expires_at,
    });
    Ok(plain(StatusCode::OK, &answer))
}

/// `GET /v1/pairing/resolve/{code}`.
pub async fn resolve(As(node, caller): As<Approver>, PathId(code): PathId<String>) -> HttpResult {
    let code = PairingCode::parse(&code);
    let found = node.pairings.resolve_pairing(&caller, code).await?;
    let optional = [
        ("enforcerLabel", found.label.map(Value::from)),
        ("workspaceName", found.workspace.map(Value::from)),
        ("publicKey", found.public_key.map(Value::from)),
    ];
    let answer = extended(json!({ "nonce": found.nonce }), optional);
    Ok(plain(StatusCode::OK, &answer))
}

/// `GET /v1/pairing/status/{nonce}`, also spelled `GET /v1/pairing/{nonce}/status`.
pub async fn status(As(node, caller): As<Member>, PathId(nonce): PathId<Nonce>) -> HttpResult {
    let status = node.pairings.pairing_status(&caller, nonce).await?;
    if caller.origin().profile.is_compat() {
        return Ok(plain(StatusCode::OK, &compat::pairing::described(&status)));
    }
    Ok(plain(StatusCode::OK, &status))
}

/// `POST /v1/pairing/complete`.
pub async fn complete(As(node, caller): As<Approver>, request: Request) -> HttpResult {
    if caller.origin.profile.is_compat() {
        return compat::pairing::complete(&node, &caller, request).await;
    }
    let request = body::read_as(&node, request, BodyKind::Other, CompletePairing::parse).await?;
    let paired = node.pairings.complete_pairing(&caller, request).await?;
    let optional = [
        ("enforcerLabel", paired.label.map(Value::from)),
        ("workspaceName", paired.workspace.map(Value::from)),
    ];
    let answer = extended(json!({ "routingToken": paired.token }), optional);
    Ok(plain(StatusCode::OK, &answer))
}

/// `POST /v1/pairing/revoke`.
pub async fn revoke(As(node, caller): As<Member>, request: Request) -> HttpResult {
    let token = body::read_as(&node, request, BodyKind::Other, parse_revoke).await?;
    node.pairings.revoke_pairing(&caller, &token).await?;
    Ok(plain(StatusCode::OK, &json!({ "status": "revoked" })))
}

/// `GET /v1/pairings`.
pub async fn list(
    As(node, caller): As<EnforcerOrApprover>,
    QueryPage(page): QueryPage,
) -> HttpResult {
    let page = node.pairings.pairings(&caller, &page).await?;
    Ok(paged(&page))
}
