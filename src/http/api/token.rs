//! Revocations of tokens, in plain JSON.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde_json::json;

use super::auth::As;
use super::body::{self, BodyKind, PageQuery};
use super::error::HttpRefusal;
use super::reply::{AppState, plain};
use crate::gateway::caller::Admin;
use crate::gateway::error::Error;
use crate::gateway::{PageRequest, PlatformService};
use crate::protocol::json;
use crate::protocol::token::RevocationRequest;

/// `POST /platform/v1/token-revocations`.
pub async fn revoke(
    State(node): State<AppState>,
    State(platform): State<Arc<PlatformService>>,
    As(caller): As<Admin>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let bytes = body::read(&node, request, BodyKind::Other).await?;
    let request = {
        let document = json::parse(&bytes).map_err(Error::from)?;
        RevocationRequest::parse(&document).map_err(Error::from)?
    };
    let administration = platform.administration(caller.actor());
    let revoked = administration
        .revoke_tokens(&caller.origin.tenant, &request)
        .await?;
    Ok(plain(StatusCode::CREATED, &revoked))
}

/// `GET /platform/v1/token-revocations`.
pub async fn list(
    State(platform): State<Arc<PlatformService>>,
    As(caller): As<Admin>,
    uri: Uri,
) -> Result<Response, HttpRefusal> {
    let page: PageRequest = body::query::<PageQuery>(&uri)?.into();
    let page = platform.token_revocations(&caller, &page).await?;
    Ok(plain(
        StatusCode::OK,
        &json!({ "items": page.items, "nextCursor": page.next }),
    ))
}
