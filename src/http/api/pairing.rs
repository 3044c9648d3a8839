//! Pairing: plain JSON, outside the protocol's media type and framing.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde_json::{Value, json};

use super::auth::As;
use super::body::{self, BodyKind, PageQuery, PathParameters};
use super::error::HttpRefusal;
use super::reply::{AppState, plain};
use crate::gateway::PageRequest;
use crate::gateway::PairingService;
use crate::gateway::caller::{Approver, Enforcer, EnforcerOrApprover, Member};
use crate::gateway::error::Error;
use crate::protocol::json;
use crate::protocol::pairing::{
    CompletePairing, InitiatePairing, Nonce, PairingCode, parse_revoke,
};
use crate::protocol::reader::InvalidMember;

/// Reads a body as what `parse` makes of it.
async fn read<T>(
    node: &AppState,
    request: Request,
    parse: impl FnOnce(&json::JsonNode<'_>) -> Result<T, InvalidMember>,
) -> Result<T, HttpRefusal> {
    let bytes = body::read(node, request, BodyKind::Other).await?;
    let document = json::parse(&bytes).map_err(Error::from)?;
    Ok(parse(&document).map_err(Error::from)?)
}

/// An answer with those of the optional members that there are.
fn answer<const N: usize>(mut always: Value, optional: [(&str, Option<String>); N]) -> Response {
    for (name, value) in optional {
        if let Some(value) = value {
            always[name] = value.into();
        }
    }
    plain(StatusCode::OK, &always)
}

/// `POST /v1/pairing/initiate`.
pub async fn initiate(
    State(node): State<AppState>,
    State(pairings): State<Arc<PairingService>>,
    As(caller): As<Enforcer>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let request = read(&node, request, InitiatePairing::parse).await?;
    let begun = pairings.initiate_pairing(&caller, request).await?;
    let always = json!({
        "code": begun.code.to_string(),
        "nonce": begun.nonce,
        "expiresAt": begun.expires_at,
    });
    Ok(answer(always, []))
}

/// `GET /v1/pairing/resolve/{code}`.
pub async fn resolve(
    State(pairings): State<Arc<PairingService>>,
    As(caller): As<Approver>,
    PathParameters(code): PathParameters<String>,
) -> Result<Response, HttpRefusal> {
    let code = PairingCode::parse(&code);
    let found = pairings.resolve_pairing(&caller, code).await?;
    Ok(answer(
        json!({ "nonce": found.nonce }),
        [
            ("enforcerLabel", found.label),
            ("workspaceName", found.workspace),
            ("publicKey", found.public_key),
        ],
    ))
}

/// `GET /v1/pairing/status/{nonce}`, also spelled `GET /v1/pairing/{nonce}/status`.
pub async fn status(
    State(pairings): State<Arc<PairingService>>,
    As(caller): As<Member>,
    PathParameters(nonce): PathParameters<String>,
) -> Result<Response, HttpRefusal> {
    let nonce = Nonce::parse(&nonce).ok_or(Error::NotFound)?;
    let status = pairings.pairing_status(&caller, nonce).await?;
    Ok(plain(StatusCode::OK, &status))
}

/// `POST /v1/pairing/complete`.
pub async fn complete(
    State(node): State<AppState>,
    State(pairings): State<Arc<PairingService>>,
    As(caller): As<Approver>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let request = read(&node, request, CompletePairing::parse).await?;
    let paired = pairings.complete_pairing(&caller, request).await?;
    Ok(answer(
        json!({ "routingToken": paired.token }),
        [
            ("enforcerLabel", paired.label),
            ("workspaceName", paired.workspace),
        ],
    ))
}

/// `POST /v1/pairing/revoke`.
pub async fn revoke(
    State(node): State<AppState>,
    State(pairings): State<Arc<PairingService>>,
    As(caller): As<Member>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let token = read(&node, request, parse_revoke).await?;
    pairings.revoke_pairing(&caller, &token).await?;
    Ok(plain(StatusCode::OK, &json!({ "status": "revoked" })))
}

/// `GET /v1/pairings`.
pub async fn list(
    State(pairings): State<Arc<PairingService>>,
    As(caller): As<EnforcerOrApprover>,
    uri: Uri,
) -> Result<Response, HttpRefusal> {
    let page: PageRequest = body::query::<PageQuery>(&uri)?.into();
    let page = pairings.pairings(&caller, &page).await?;
    Ok(plain(
        StatusCode::OK,
        &json!({ "items": page.items, "nextCursor": page.next }),
    ))
}
