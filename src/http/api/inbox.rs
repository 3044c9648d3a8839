//! Inboxes over REST.

use axum::Extension;
use axum::http::StatusCode;
use serde::Serialize;
use serde_json::value::RawValue;

use super::auth::As;
use super::error::{HttpResult, RefusalContext};
use super::path::{PathId, PathPair, PathParameter as _, QueryPage};
use super::reply::{AppState, reserved};
use super::request_scope::RequestScope;
use crate::gateway::PageRequest;
use crate::gateway::error::Error;
use crate::gateway::identity::caller::Approver;
use crate::protocol::envelope::OutgoingEnvelope;
use crate::protocol::id::{ApproverId, RequestId};
use crate::protocol::listing::InboxKind;

/// The body of `inbox.page`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InboxPage {
    items: Vec<OutgoingEnvelope<Box<RawValue>>>,
    next_cursor: Option<String>,
}

/// `GET /v1/approvers/{approverId}/inbox`.
pub async fn active(
    As(node, caller): As<Approver>,
    PathId(approver): PathId<ApproverId>,
    QueryPage(page): QueryPage,
    Extension(http): Extension<RequestScope>,
) -> HttpResult {
    list(&node, &caller, approver, InboxKind::Active, &page, &http).await
}

/// `GET /v1/approvers/{approverId}/inbox/expired`.
pub async fn expired(
    As(node, caller): As<Approver>,
    PathId(approver): PathId<ApproverId>,
    QueryPage(page): QueryPage,
    Extension(http): Extension<RequestScope>,
) -> HttpResult {
    list(&node, &caller, approver, InboxKind::Expired, &page, &http).await
}

async fn list(
    node: &AppState,
    caller: &Approver,
    approver: ApproverId,
    kind: InboxKind,
    request: &PageRequest,
    http: &RequestScope,
) -> HttpResult {
    let approver = caller.acting(Some(approver), "approverId")?;
    let limits = &node.context.config.limits;
    let items = node.context.page_limit(request)?;
    let item = limits.artifact_bytes + limits.envelope_bytes;
    let bytes = usize::try_from(items).unwrap_or(1).saturating_mul(item);
    let memory = node.reserve(http, bytes).await?;
    let exchanges = &node.exchanges;
    let page = exchanges.inbox(caller, &approver, kind, request).await?;
    let gateway_id = &node.context.config.server.gateway_id;
    let items = page.items.into_iter();
    let items: Result<_, _> = items.map(|item| item.envelope(gateway_id)).collect();
    let body = InboxPage {
        items: items.map_err(Error::from)?,
        next_cursor: page.next,
    };
    let envelope = node.envelope_about("inbox.page", http.id().to_owned(), None, body);
    Ok(reserved(memory, node.respond(StatusCode::OK, &envelope)))
}

/// The body of `inbox.removed`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RemovedBody<'a> {
    request_id: &'a RequestId,
}

/// `DELETE /v1/approvers/{approverId}/inbox/{requestId}`.
pub async fn remove(
    As(node, caller): As<Approver>,
    PathPair(approver, request): PathPair<ApproverId, String>,
) -> HttpResult {
    let approver = caller.acting(Some(approver), "approverId")?;
    let request = RequestId::read(request)?;
    let exchanges = &node.exchanges;
    let removed = exchanges.remove_item(&caller, &approver, &request).await;
    let expires_at = removed.about(&request)?;
    let body = RemovedBody {
        request_id: &request,
    };
    let envelope = node.envelope("inbox.removed", &request, Some(expires_at), body);
    Ok(node.respond(StatusCode::OK, &envelope))
}
