//! Invitations, and joining by one, in plain JSON.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde_json::{Value, json};

use super::auth::{AdmittedAddress, As};
use super::body::{self, BodyKind};
use super::error::HttpResult;
use super::path::{PathId, QueryPage};
use super::platform::only_text;
use super::reply::{AppState, extended, paged, plain};
use crate::gateway::InvitationRequest;
use crate::gateway::identity::caller::AdminOrOperator;
use crate::gateway::identity::invitations;
use crate::protocol::id::{InvitationId, TenantId};
use crate::protocol::json::JsonNode;
use crate::protocol::reader::{InvalidMember, MemberReader};

fn read(document: &JsonNode<'_>) -> Result<(Option<TenantId>, InvitationRequest), InvalidMember> {
    let mut reader = MemberReader::new(document, "")?;
    let role = reader.word("role")?;
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

/// The address of the page. A caller could choose the `Host` header, and so receive the code.
pub(super) fn page(node: &AppState) -> String {
    let config = &node.context.config;
    match config.page.url.as_str() {
        "" => config.local_url(),
        url => url.to_owned(),
    }
}

/// `POST /platform/v1/invitations`.
pub async fn create(As(node, caller): As<AdminOrOperator>, request: Request) -> HttpResult {
    let page = page(&node);
    let (tenant, request) = body::read_as(&node, request, BodyKind::Other, read).await?;
    let (role, bound_id, name) = (request.role, request.bound_id.clone(), request.name.clone());
    let made = node.platform.invite(&caller, tenant, request).await?;
    let answer = json!({
        "invitationId": made.id, "link": made.link(&page), "expiresAt": made.expires_at,
        "tenantId": made.tenant, "role": role,
    });
    let optional = [
        ("boundId", bound_id.map(Value::from)),
        ("name", name.map(Value::from)),
    ];
    Ok(plain(StatusCode::CREATED, &extended(answer, optional)))
}

/// `GET /platform/v1/invitations`.
pub async fn list(As(node, caller): As<AdminOrOperator>, QueryPage(page): QueryPage) -> HttpResult {
    let page = node.platform.invitations(&caller, &page).await?;
    Ok(paged(&page))
}

/// `DELETE /platform/v1/invitations/{invitationId}`.
pub async fn withdraw(
    As(node, caller): As<AdminOrOperator>,
    PathId(invitation): PathId<InvitationId>,
) -> HttpResult {
    node.platform
        .managed_by(&caller)
        .withdraw_invitation(&invitation)
        .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /v1/join`. The code authenticates the call; any other credential is ignored.
pub async fn join(
    State(node): State<AppState>,
    AdmittedAddress(peer): AdmittedAddress,
    request: Request,
) -> HttpResult {
    let parse = |document: &JsonNode<'_>| only_text(document, "code");
    let code = body::read_as(&node, request, BodyKind::Other, parse).await?;
    let joined = node
        .platform
        .join(&code, peer.map(|peer| peer.address))
        .await?;
    let answer = json!({
        "tenantId": joined.credential.tenant, "role": joined.credential.role,
        "credentialId": joined.id, "apiKey": joined.api_key,
        "invitationId": joined.credential.invitation,
    });
    let optional = [("boundId", joined.credential.bound_id.map(Value::from))];
    Ok(plain(StatusCode::CREATED, &extended(answer, optional)))
}
