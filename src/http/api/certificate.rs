//! Client certificates as credentials: the holder of a certificate binds it with a code.

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use serde_json::json;

use super::auth::{As, admit_address};
use super::body::{self, BodyKind};
use super::error::{HttpRefusal, HttpResult};
use super::path::PathId;
use super::platform::only_text;
use super::reply::{AppState, plain};
use crate::gateway::error::Error;
use crate::gateway::identity::caller::AdminOrOperator;
use crate::http::server::peer::PeerInfo;
use crate::protocol::id::CredentialId;
use crate::protocol::json::JsonNode;

/// `POST /platform/v1/credentials/{credentialId}/code`.
pub async fn issue_code(
    As(node, caller): As<AdminOrOperator>,
    PathId(credential): PathId<CredentialId>,
) -> HttpResult {
    let made = node
        .platform
        .managed_by(&caller)
        .issue_code(&credential)
        .await?;
    let answer = json!({
        "credentialId": credential, "code": made.code, "codeExpiresAt": made.expires_at,
    });
    Ok(plain(StatusCode::CREATED, &answer))
}

/// `POST /platform/v1/certificates`. The certificate identifies the caller, nothing else does.
pub async fn bind(
    State(node): State<AppState>,
    peer: Option<Extension<PeerInfo>>,
    request: Request,
) -> HttpResult {
    let from = peer.as_ref().map(|peer| peer.address);
    let noted = |error: Error| {
        node.authenticator.note_unbound(&error, from);
        HttpRefusal::from(error)
    };
    let Extension(peer) = peer.ok_or_else(|| noted(Error::NoCertificate))?;
    admit_address(&node, peer)?;
    let certificate = peer.certificate;
    let certificate = certificate.ok_or_else(|| noted(Error::NoCertificate))?;
    let parse = |document: &JsonNode<'_>| only_text(document, "code");
    let code = body::read_as(&node, request, BodyKind::Other, parse).await?;
    let platform = &node.platform;
    let bound = platform.bind_certificate(&code, &certificate, peer.address);
    Ok(plain(StatusCode::OK, &bound.await.map_err(noted)?))
}
