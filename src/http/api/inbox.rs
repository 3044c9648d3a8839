//! Inboxes over REST.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde::Serialize;
use serde_json::value::RawValue;

use super::auth::As;
use super::body::{self, PageQuery, PathParameters};
use super::error::{HttpRefusal, RefusalContext};
use super::reply::{AppState, reserved};
use super::request_scope::RequestScope;
use crate::gateway::ExchangeService;
use crate::gateway::caller::Approver;
use crate::gateway::error::Error;
use crate::protocol::envelope::OutgoingEnvelope;
use crate::protocol::id::{ApproverId, RequestId, TextId};
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
    State(node): State<AppState>,
    State(exchanges): State<Arc<ExchangeService>>,
    As(caller): As<Approver>,
    PathParameters(approver): PathParameters<String>,
    Extension(http): Extension<RequestScope>,
    uri: Uri,
) -> Result<Response, HttpRefusal> {
    page(
        &node,
        &exchanges,
        caller,
        &approver,
        InboxKind::Active,
        http,
        &uri,
    )
    .await
}

/// `GET /v1/approvers/{approverId}/inbox/expired`.
pub async fn expired(
    State(node): State<AppState>,
    State(exchanges): State<Arc<ExchangeService>>,
    As(caller): As<Approver>,
    PathParameters(approver): PathParameters<String>,
    Extension(http): Extension<RequestScope>,
    uri: Uri,
) -> Result<Response, HttpRefusal> {
    page(
        &node,
        &exchanges,
        caller,
        &approver,
        InboxKind::Expired,
        http,
        &uri,
    )
    .await
}

/// The approver a path names, which the caller must be allowed to act as.
fn path_approver(caller: &Approver, text: &str) -> Result<ApproverId, Error> {
    caller.acting(Some(body::path_id("approverId", text)?), "approverId")
}

async fn page(
    node: &AppState,
    exchanges: &ExchangeService,
    caller: Approver,
    approver: &str,
    kind: InboxKind,
    http: RequestScope,
    uri: &Uri,
) -> Result<Response, HttpRefusal> {
    let approver = path_approver(&caller, approver)?;
    let request = body::query::<PageQuery>(uri)?.into();
    let limits = &node.context.config.limits;
    let items = node.context.page_limit(&request)?;
    let item = limits.artifact_bytes + limits.envelope_bytes;
    let bytes = usize::try_from(items).unwrap_or(1).saturating_mul(item);
    let memory = node.reserve(&http, bytes).await?;
    let page = exchanges.inbox(&caller, &approver, kind, &request).await?;
    let gateway_id = &node.context.config.server.gateway_id;
    let items: Result<Vec<_>, _> = page
        .items
        .into_iter()
        .map(|item| item.envelope(gateway_id))
        .collect();
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
    State(node): State<AppState>,
    State(exchanges): State<Arc<ExchangeService>>,
    As(caller): As<Approver>,
    PathParameters((approver, request)): PathParameters<(String, String)>,
) -> Result<Response, HttpRefusal> {
    let approver = path_approver(&caller, &approver)?;
    let request = RequestId::parse(&request).ok_or(Error::NotFound)?;
    let expires_at = exchanges
        .remove_item(&caller, &approver, &request)
        .await
        .about(&request)?;
    Ok(node.respond(
        StatusCode::OK,
        &node.envelope(
            "inbox.removed",
            &request,
            Some(expires_at),
            RemovedBody {
                request_id: &request,
            },
        ),
    ))
}
