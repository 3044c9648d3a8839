//! Where an approver is notified, in plain JSON.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;

use super::auth::As;
use super::body::{self, BodyKind};
use super::error::HttpResult;
use super::path::{PathId, PathPair};
use super::reply::{created, plain};
use crate::gateway::identity::caller::ApproverOrAdmin;
use crate::protocol::id::ApproverId;

/// `GET /v1/approvers/{approverId}/notifications`.
pub async fn list(
    As(node, caller): As<ApproverOrAdmin>,
    PathId(approver): PathId<ApproverId>,
) -> HttpResult {
    let list = node.notifications.list(&caller, &approver).await?;
    Ok(plain(StatusCode::OK, &list))
}

/// `POST /v1/approvers/{approverId}/notifications`.
pub async fn add(
    As(node, caller): As<ApproverOrAdmin>,
    PathId(approver): PathId<ApproverId>,
    request: Request,
) -> HttpResult {
    node.notifications.check_caller(&caller, &approver)?;
    let bytes = body::read(&node, request, BodyKind::Notification).await?;
    let new = body::parsed(&bytes, |document| node.notifications.read(document))?;
    let (added, is_new) = node.notifications.add(&caller, &approver, new).await?;
    Ok(plain(created(is_new), &added))
}

/// `DELETE /v1/approvers/{approverId}/notifications/{notificationId}`.
pub async fn remove(
    As(node, caller): As<ApproverOrAdmin>,
    PathPair(approver, id): PathPair<ApproverId, String>,
) -> HttpResult {
    node.notifications.remove(&caller, &approver, &id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /v1/approvers/{approverId}/notifications/{notificationId}/test`.
pub async fn test(
    As(node, caller): As<ApproverOrAdmin>,
    PathPair(approver, id): PathPair<ApproverId, String>,
) -> HttpResult {
    let tested = node.notifications.test(&caller, &approver, &id).await?;
    Ok(plain(StatusCode::OK, &tested))
}
