//! Revocations of tokens, in plain JSON.

use axum::extract::Request;
use axum::http::StatusCode;

use super::auth::As;
use super::body::{self, BodyKind};
use super::error::HttpResult;
use super::path::QueryPage;
use super::reply::{paged, plain};
use crate::gateway::identity::caller::Admin;
use crate::protocol::token::RevocationRequest;

/// `POST /platform/v1/token-revocations`.
pub async fn revoke(As(node, caller): As<Admin>, request: Request) -> HttpResult {
    let parse = RevocationRequest::parse;
    let request = body::read_as(&node, request, BodyKind::Other, parse).await?;
    let administration = node.platform.administration(caller.actor());
    let revoked = administration
        .revoke_tokens(&caller.origin.tenant, &request)
        .await?;
    Ok(plain(StatusCode::CREATED, &revoked))
}

/// `GET /platform/v1/token-revocations`.
pub async fn list(As(node, caller): As<Admin>, QueryPage(page): QueryPage) -> HttpResult {
    let page = node.platform.token_revocations(&caller, &page).await?;
    Ok(paged(&page))
}
