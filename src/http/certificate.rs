//! Client certificates as credentials: an administrator issues a code, and the certificate's holder binds it with that.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use super::auth::{As, admit_address};
use super::body::{self, Kind, Path};
use super::error::Refusal;
use super::peer::PeerInfo;
use super::reply::{Node, plain};
use crate::gateway::Platform;
use crate::gateway::caller::AdminOrOperator;
use crate::gateway::error::Error;
use crate::protocol::id::{CredentialId, TextId as _};
use crate::protocol::json;
use crate::protocol::reader::{Invalid, Reader};

/// `POST /platform/v1/credentials/{credentialId}/code`.
pub async fn issue_code(
    State(platform): State<Arc<Platform>>,
    As(caller): As<AdminOrOperator>,
    Path(credential): Path<String>,
) -> Result<Response, Refusal> {
    let credential = CredentialId::parse(&credential).ok_or(Error::NotFound)?;
    let made = platform.issue_code(&caller, &credential).await?;
    let answer = json!({
        "credentialId": credential, "code": made.code, "codeExpiresAt": made.expires_at,
    });
    Ok(plain(StatusCode::CREATED, &answer))
}

/// `POST /platform/v1/certificates`. The caller is whoever presents the certificate; any other credential is ignored.
pub async fn bind(
    State(node): State<Node>,
    State(platform): State<Arc<Platform>>,
    peer: Option<Extension<PeerInfo>>,
    request: Request,
) -> Result<Response, Refusal> {
    let from = peer.as_ref().map(|peer| peer.address);
    let noted = |error: Error| {
        node.gateway.authenticator.note_unbound(&error, from);
        Refusal::from(error)
    };
    let Extension(peer) = peer.ok_or_else(|| noted(Error::NoCertificate))?;
    admit_address(&node, peer)?;
    let certificate = peer.certificate;
    let certificate = certificate.ok_or_else(|| noted(Error::NoCertificate))?;
    let bytes = body::read(&node, request, Kind::Other).await?;
    let code = {
        let document = json::parse(&bytes).map_err(Error::from)?;
        let read = || -> Result<String, Invalid> {
            let mut reader = Reader::new(&document, "")?;
            let code = reader.str("code")?.to_owned();
            reader.finish()?;
            Ok(code)
        };
        read().map_err(Error::from)?
    };
    let bound = platform.bind_certificate(&code, &certificate, peer.address);
    Ok(plain(StatusCode::OK, &bound.await.map_err(noted)?))
}
