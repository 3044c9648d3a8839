//! Invitations, and joining by one, in plain JSON.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde_json::json;

use super::auth::{As, admit_address};
use super::body::{self, BodyKind, PageQuery, PathParameters};
use super::error::HttpRefusal;
use super::platform::paged;
use super::reply::{AppState, plain};
use crate::gateway::caller::AdminOrOperator;
use crate::gateway::error::Error;
use crate::gateway::{InvitationRequest, PageRequest, PlatformService, invitations};
use crate::http::server::peer::PeerInfo;
use crate::protocol::credential::RoleName;
use crate::protocol::id::{InvitationId, TenantId, TextId as _};
use crate::protocol::json;
use crate::protocol::reader::MemberReader;

fn read(bytes: &[u8]) -> Result<(Option<TenantId>, InvitationRequest), Error> {
    let document = json::parse(bytes)?;
    let mut reader = MemberReader::new(&document, "")?;
    let role = reader.word("role", RoleName::ALL, RoleName::as_str)?;
    let bound_id = reader.optional_str("boundId")?.map(str::to_owned);
    let name = reader.optional_label("name", invitations::MAX_NAME_CHARS)?;
    let expires_at = reader.optional_timestamp("expiresAt")?;
    let tenant = reader.optional_id("tenantId")?;
    reader.finish()?;
    let request = InvitationRequest {
        role,
        bound_id,
        name,
        expires_at,
    };
    Ok((tenant, request))
}

/// Where the page is. The `Host` header is ignored: a caller could choose it, and so receive the code.
fn page(node: &AppState) -> String {
    let config = &node.context.config;
    match config.page.url.as_str() {
        "" => config.local_url(),
        url => url.to_owned(),
    }
}

/// `POST /platform/v1/invitations`.
pub async fn create(
    State(node): State<AppState>,
    State(platform): State<Arc<PlatformService>>,
    As(caller): As<AdminOrOperator>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let page = page(&node);
    let bytes = body::read(&node, request, BodyKind::Other).await?;
    let (tenant, request) = read(&bytes)?;
    let (role, bound_id, name) = (request.role, request.bound_id.clone(), request.name.clone());
    let made = platform.invite(&caller, tenant, request).await?;
    let mut answer = json!({
        "invitationId": made.id, "link": made.link(&page), "expiresAt": made.expires_at,
        "tenantId": made.tenant, "role": role,
    });
    for (member, value) in [("boundId", bound_id), ("name", name)] {
        if let Some(value) = value {
            answer[member] = value.into();
        }
    }
    Ok(plain(StatusCode::CREATED, &answer))
}

/// `GET /platform/v1/invitations`.
pub async fn list(
    State(platform): State<Arc<PlatformService>>,
    As(caller): As<AdminOrOperator>,
    uri: Uri,
) -> Result<Response, HttpRefusal> {
    let page: PageRequest = body::query::<PageQuery>(&uri)?.into();
    let page = platform.invitations(&caller, &page).await?;
    Ok(paged(&page))
}

/// `DELETE /platform/v1/invitations/{invitationId}`.
pub async fn withdraw(
    State(platform): State<Arc<PlatformService>>,
    As(caller): As<AdminOrOperator>,
    PathParameters(invitation): PathParameters<String>,
) -> Result<Response, HttpRefusal> {
    let invitation = InvitationId::parse(&invitation).ok_or(Error::NotFound)?;
    platform.withdraw_invitation(&caller, &invitation).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /v1/join`. The code authenticates the call; any other credential is ignored.
pub async fn join(
    State(node): State<AppState>,
    State(platform): State<Arc<PlatformService>>,
    peer: Option<Extension<PeerInfo>>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let peer = peer.map(|Extension(peer)| peer);
    if let Some(peer) = peer {
        admit_address(&node, peer)?;
    }
    let bytes = body::read(&node, request, BodyKind::Other).await?;
    let code = {
        let document = json::parse(&bytes).map_err(Error::from)?;
        let mut reader = MemberReader::new(&document, "").map_err(Error::from)?;
        let code = reader.str("code").map_err(Error::from)?.to_owned();
        reader.finish().map_err(Error::from)?;
        code
    };
    let joined = platform.join(&code, peer.map(|peer| peer.address)).await?;
    let mut answer = json!({
        "tenantId": joined.credential.tenant, "role": joined.credential.role,
        "credentialId": joined.id, "apiKey": joined.api_key,
    });
    if let Some(id) = joined.credential.bound_id {
        answer["boundId"] = id.into();
    }
    Ok(plain(StatusCode::CREATED, &answer))
}
