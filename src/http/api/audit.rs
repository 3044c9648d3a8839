//! A tenant's audit, in plain JSON.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde_json::json;

use super::auth::As;
use super::body::{self, PageQuery};
use super::error::HttpRefusal;
use super::reply::plain;
use crate::gateway::PageRequest;
use crate::gateway::PlatformService;
use crate::gateway::caller::Admin;

/// `GET /platform/v1/audit`.
pub async fn list(
    State(platform): State<Arc<PlatformService>>,
    As(caller): As<Admin>,
    uri: Uri,
) -> Result<Response, HttpRefusal> {
    let page: PageRequest = body::query::<PageQuery>(&uri)?.into();
    let page = platform.audit(&caller, &page).await?;
    Ok(plain(
        StatusCode::OK,
        &json!({ "items": page.items, "nextCursor": page.next }),
    ))
}
