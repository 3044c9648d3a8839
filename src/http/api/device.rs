//! The devices of an approver, in plain JSON. Statements pass through byte for byte.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use super::auth::As;
use super::body::{self, BodyKind, PathParameters};
use super::error::HttpRefusal;
use super::reply::{AppState, plain};
use crate::e2e::DeviceId;
use crate::gateway::caller::{Admin, Approver, Member};
use crate::gateway::error::Error;
use crate::gateway::{DeviceListing, DeviceService, PlatformService, StatementCommand};
use crate::protocol::id::ApproverId;
use crate::protocol::json;

async fn read(
    node: &AppState,
    devices: &DeviceService,
    caller: &Approver,
    approver: &ApproverId,
    request: Request,
) -> Result<StatementCommand, HttpRefusal> {
    let bytes = body::read(node, request, BodyKind::Statement).await?;
    let document = json::parse(&bytes).map_err(Error::from)?;
    Ok(devices.read(caller, approver, &document)?)
}

/// `POST /v1/approvers/{approverId}/devices`.
pub async fn add(
    State(node): State<AppState>,
    State(devices): State<Arc<DeviceService>>,
    As(caller): As<Approver>,
    PathParameters(approver): PathParameters<String>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let approver: ApproverId = body::path_id("approverId", &approver)?;
    caller.speaking_for(&approver)?;
    let command = read(&node, &devices, &caller, &approver, request).await?;
    let (device, is_new) = devices.add(&caller, &approver, &command).await?;
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok(plain(status, &device))
}

/// `DELETE /v1/approvers/{approverId}/devices/{deviceId}`.
pub async fn revoke(
    State(node): State<AppState>,
    State(devices): State<Arc<DeviceService>>,
    As(caller): As<Approver>,
    PathParameters((approver, device)): PathParameters<(String, String)>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let approver: ApproverId = body::path_id("approverId", &approver)?;
    caller.speaking_for(&approver)?;
    let device = DeviceId::parse(&device).map_err(|_| Error::Parameter {
        name: "deviceId",
        expected: "22 characters of base64url",
    })?;
    let command = read(&node, &devices, &caller, &approver, request).await?;
    let revoked = devices.revoke(&caller, &approver, device, &command).await?;
    Ok(plain(StatusCode::OK, &revoked))
}

/// `DELETE /v1/approvers/{approverId}/devices`.
pub async fn reset(
    State(platform): State<Arc<PlatformService>>,
    As(caller): As<Admin>,
    PathParameters(approver): PathParameters<String>,
) -> Result<Response, HttpRefusal> {
    let approver: ApproverId = body::path_id("approverId", &approver)?;
    platform
        .administration(caller.actor())
        .reset_devices(&caller.origin.tenant, &approver)
        .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `GET /v1/approvers/{approverId}/devices`.
pub async fn list(
    State(devices): State<Arc<DeviceService>>,
    As(caller): As<Member>,
    PathParameters(approver): PathParameters<String>,
    headers: HeaderMap,
) -> Result<Response, HttpRefusal> {
    let approver: ApproverId = body::path_id("approverId", &approver)?;
    let known = |tag: &str| names(&headers, tag);
    let (tag, mut response) = match devices.list(&caller, &approver, known).await? {
        DeviceListing::Unchanged(tag) => {
            let mut response = StatusCode::NOT_MODIFIED.into_response();
            let no_store = HeaderValue::from_static("no-store");
            response
                .headers_mut()
                .insert(header::CACHE_CONTROL, no_store);
            (tag, response)
        }
        DeviceListing::Whole(tag, list) => (tag, plain(StatusCode::OK, &list)),
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    Ok(response)
}

/// Whether `If-None-Match` names this version.
fn names(headers: &HeaderMap, tag: &str) -> bool {
    let values = headers.get_all(IF_NONE_MATCH).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    let mut tags = texts.flat_map(|text| text.split(',')).map(str::trim);
    tags.any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag)
}
