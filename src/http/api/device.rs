//! The devices of an approver, in plain JSON. Statements pass through byte for byte.

use axum::extract::Request;
use axum::http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::IntoResponse as _;

use super::auth::As;
use super::body::{self, BodyKind};
use super::error::{HttpRefusal, HttpResult};
use super::path::{PathId, PathPair};
use super::reply::{AppState, created, plain};
use crate::e2e::DeviceId;
use crate::gateway::error::Error;
use crate::gateway::identity::caller::{Admin, Approver, Member};
use crate::gateway::{DeviceListing, StatementCommand};
use crate::protocol::id::ApproverId;
use crate::protocol::json::JsonNode;

async fn read(
    node: &AppState,
    caller: &Approver,
    approver: &ApproverId,
    request: Request,
) -> Result<StatementCommand, HttpRefusal> {
    let parse = |document: &JsonNode<'_>| node.devices.read(caller, approver, document);
    body::read_as(node, request, BodyKind::Statement, parse).await
}

/// `POST /v1/approvers/{approverId}/devices`.
pub async fn add(
    As(node, caller): As<Approver>,
    PathId(approver): PathId<ApproverId>,
    request: Request,
) -> HttpResult {
    caller.speaking_for(&approver)?;
    let command = read(&node, &caller, &approver, request).await?;
    let (device, is_new) = node.devices.add(&caller, &approver, &command).await?;
    Ok(plain(created(is_new), &device))
}

/// `DELETE /v1/approvers/{approverId}/devices/{deviceId}`.
pub async fn revoke(
    As(node, caller): As<Approver>,
    PathPair(approver, device): PathPair<ApproverId, String>,
    request: Request,
) -> HttpResult {
    caller.speaking_for(&approver)?;
    let device = DeviceId::parse(&device).map_err(|_| Error::Parameter {
        name: "deviceId",
        expected: "22 characters of base64url",
    })?;
    let command = read(&node, &caller, &approver, request).await?;
    let revoked = node
        .devices
        .revoke(&caller, &approver, device, &command)
        .await?;
    Ok(plain(StatusCode::OK, &revoked))
}

/// `DELETE /v1/approvers/{approverId}/devices`.
pub async fn reset(
    As(node, caller): As<Admin>,
    PathId(approver): PathId<ApproverId>,
) -> HttpResult {
    node.platform
        .administration(caller.actor())
        .reset_devices(&caller.origin.tenant, &approver)
        .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `GET /v1/approvers/{approverId}/devices`.
pub async fn list(
    As(node, caller): As<Member>,
    PathId(approver): PathId<ApproverId>,
    headers: HeaderMap,
) -> HttpResult {
    let known = |tag: &str| names(&headers, tag);
    let (tag, mut response) = match node.devices.list(&caller, &approver, known).await? {
        DeviceListing::Unchanged(tag) => {
            let no_store = [(CACHE_CONTROL, HeaderValue::from_static("no-store"))];
            (tag, (StatusCode::NOT_MODIFIED, no_store).into_response())
        }
        DeviceListing::Whole(tag, list) => (tag, plain(StatusCode::OK, &list)),
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    Ok(response)
}

/// Whether `If-None-Match` names this version.
pub(super) fn names(headers: &HeaderMap, tag: &str) -> bool {
    let values = headers.get_all(IF_NONE_MATCH).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    let mut tags = texts.flat_map(|text| text.split(',')).map(str::trim);
    tags.any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag)
}
