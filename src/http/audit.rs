//! A tenant's audit, in plain JSON.

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde_json::json;

use super::auth::As;
use super::body::{self, PageQuery};
use super::error::Refusal;
use super::reply::{Node, plain};
use crate::gateway::PageRequest;
use crate::gateway::caller::Admin;

/// `GET /platform/v1/audit`.
pub async fn list(
    State(node): State<Node>,
    As(caller): As<Admin>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let page: PageRequest = body::query::<PageQuery>(&uri)?.into();
    let gateway = node.gateway.clone();
    let page = node
        .finish(async move { gateway.platform.audit(&caller, &page).await })
        .await?;
    Ok(plain(
        StatusCode::OK,
        &json!({ "items": page.items, "nextCursor": page.next }),
    ))
}
