//! A tenant's audit, in plain JSON.

use super::auth::As;
use super::error::HttpResult;
use super::path::QueryPage;
use super::reply::paged;
use crate::gateway::identity::caller::Admin;

/// `GET /platform/v1/audit`.
pub async fn list(As(node, caller): As<Admin>, QueryPage(page): QueryPage) -> HttpResult {
    let page = node.platform.audit(&caller, &page).await?;
    Ok(paged(&page))
}
