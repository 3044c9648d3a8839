//! Where an approver is notified, in plain JSON.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};

use super::auth::As;
use super::body::{self, BodyKind, PathParameters};
use super::error::HttpRefusal;
use super::reply::{AppState, plain};
use crate::gateway::NotificationService;
use crate::gateway::caller::ApproverOrAdmin;
use crate::protocol::id::ApproverId;

/// `GET /v1/approvers/{approverId}/notifications`.
pub async fn list(
    State(notifications): State<Arc<NotificationService>>,
    As(caller): As<ApproverOrAdmin>,
    PathParameters(approver): PathParameters<String>,
) -> Result<Response, HttpRefusal> {
    let approver: ApproverId = body::path_id("approverId", &approver)?;
    let list = notifications.list(&caller, &approver).await?;
    Ok(plain(StatusCode::OK, &list))
}

/// `POST /v1/approvers/{approverId}/notifications`.
pub async fn add(
    State(node): State<AppState>,
    State(notifications): State<Arc<NotificationService>>,
    As(caller): As<ApproverOrAdmin>,
    PathParameters(approver): PathParameters<String>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let approver: ApproverId = body::path_id("approverId", &approver)?;
    notifications.check_caller(&caller, &approver)?;
    let bytes = body::read(&node, request, BodyKind::Notification).await?;
    let new = body::parsed(&bytes, |document| notifications.read(document))?;
    let (added, is_new) = notifications.add(&caller, &approver, new).await?;
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok(plain(status, &added))
}

/// `DELETE /v1/approvers/{approverId}/notifications/{notificationId}`.
pub async fn remove(
    State(notifications): State<Arc<NotificationService>>,
    As(caller): As<ApproverOrAdmin>,
    PathParameters((approver, id)): PathParameters<(String, String)>,
) -> Result<Response, HttpRefusal> {
    let approver: ApproverId = body::path_id("approverId", &approver)?;
    notifications.remove(&caller, &approver, &id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /v1/approvers/{approverId}/notifications/{notificationId}/test`.
pub async fn test(
    State(notifications): State<Arc<NotificationService>>,
    As(caller): As<ApproverOrAdmin>,
    PathParameters((approver, id)): PathParameters<(String, String)>,
) -> Result<Response, HttpRefusal> {
    let approver: ApproverId = body::path_id("approverId", &approver)?;
    let tested = notifications.test(&caller, &approver, &id).await?;
    Ok(plain(StatusCode::OK, &tested))
}
