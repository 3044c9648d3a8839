//! Client certificates as credentials: an administrator issues a code, and the certificate's holder binds it with that.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use super::auth::{As, admit_address};
use super::body::{self, BodyKind, PathParameters};
use super::error::HttpRefusal;
use super::reply::{AppState, plain};
use crate::gateway::PlatformService;
use crate::gateway::caller::AdminOrOperator;
use crate::gateway::error::Error;
use crate::http::server::peer::PeerInfo;
use crate::protocol::id::{CredentialId, TextId as _};
use crate::protocol::json;
use crate::protocol::reader::{InvalidMember, MemberReader};

/// `POST /platform/v1/credentials/{credentialId}/code`.
pub async fn issue_code(
    State(platform): State<Arc<PlatformService>>,
    As(caller): As<AdminOrOperator>,
    PathParameters(credential): PathParameters<String>,
) -> Result<Response, HttpRefusal> {
    let credential = CredentialId::parse(&credential).ok_or(Error::NotFound)?;
    let made = platform.issue_code(&caller, &credential).await?;
    let answer = json!({
        "credentialId": credential, "code": made.code, "codeExpiresAt": made.expires_at,
    });
    Ok(plain(StatusCode::CREATED, &answer))
}

/// `POST /platform/v1/certificates`. The caller is whoever presents the certificate; any other credential is ignored.
pub async fn bind(
    State(node): State<AppState>,
    State(platform): State<Arc<PlatformService>>,
    peer: Option<Extension<PeerInfo>>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let from = peer.as_ref().map(|peer| peer.address);
    let noted = |error: Error| {
        node.gateway.authenticator.note_unbound(&error, from);
        HttpRefusal::from(error)
    };
    let Extension(peer) = peer.ok_or_else(|| noted(Error::NoCertificate))?;
    admit_address(&node, peer)?;
    let certificate = peer.certificate;
    let certificate = certificate.ok_or_else(|| noted(Error::NoCertificate))?;
    let bytes = body::read(&node, request, BodyKind::Other).await?;
    let code = {
        let document = json::parse(&bytes).map_err(Error::from)?;
        let read = || -> Result<String, InvalidMember> {
            let mut reader = MemberReader::new(&document, "")?;
            let code = reader.str("code")?.to_owned();
            reader.finish()?;
            Ok(code)
        };
        read().map_err(Error::from)?
    };
    let bound = platform.bind_certificate(&code, &certificate, peer.address);
    Ok(plain(StatusCode::OK, &bound.await.map_err(noted)?))
}
