//! Introductions of enforcers, in plain JSON. They pass through byte for byte.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::auth::As;
use super::body::{self, BodyKind, PathParameters};
use super::error::HttpRefusal;
use super::reply::{AppState, plain};
use crate::gateway::DeviceService;
use crate::gateway::caller::Approver;
use crate::gateway::error::Error;
use crate::protocol::id::ApproverId;
use crate::protocol::json;

/// `POST /v1/approvers/{approverId}/introductions`.
pub async fn introduce(
    State(node): State<AppState>,
    State(devices): State<Arc<DeviceService>>,
    As(caller): As<Approver>,
    PathParameters(approver): PathParameters<String>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let approver: ApproverId = body::path_id("approverId", &approver)?;
    caller.speaking_for(&approver)?;
    let bytes = body::read(&node, request, BodyKind::Introduction).await?;
    let document = json::parse(&bytes).map_err(Error::from)?;
    let command = devices.read_introduction(&caller, &approver, &document)?;
    let (line, is_new) = devices.introduce(&caller, &approver, &command).await?;
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok(plain(status, &line))
}

/// `GET /v1/approvers/{approverId}/introductions`.
pub async fn list(
    State(devices): State<Arc<DeviceService>>,
    As(caller): As<Approver>,
    PathParameters(approver): PathParameters<String>,
) -> Result<Response, HttpRefusal> {
    let approver: ApproverId = body::path_id("approverId", &approver)?;
    let list = devices.introductions(&caller, &approver).await?;
    Ok(plain(StatusCode::OK, &list))
}
