//! Invitations of an approver's devices for another device, in plain JSON.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde_json::json;

use super::auth::As;
use super::body::{self, BodyKind};
use super::error::HttpResult;
use super::invitation::page;
use super::path::{PathId, PathPair};
use super::reply::plain;
use crate::gateway::DeviceRequest;
use crate::gateway::identity::caller::Approver;
use crate::protocol::id::{ApproverId, InvitationId};
use crate::protocol::json::JsonNode;

/// `POST /v1/approvers/{approverId}/invitations`.
pub async fn create(
    As(node, caller): As<Approver>,
    PathId(approver): PathId<ApproverId>,
    request: Request,
) -> HttpResult {
    caller.speaking_for(&approver)?;
    let devices = &node.devices;
    let parse = |document: &JsonNode<'_>| devices.read_invitation(&caller, &approver, document);
    let signed = body::read_as(&node, request, BodyKind::Introduction, parse).await?;
    let made = devices.invite(&caller, &approver, &signed).await?;
    let answer = json!({
        "invitationId": made.id, "code": made.code, "expiresAt": made.expires_at, "page": page(&node),
    });
    Ok(plain(StatusCode::CREATED, &answer))
}

/// `GET /v1/approvers/{approverId}/invitations/{invitationId}`.
pub async fn read(
    As(node, caller): As<Approver>,
    PathPair(approver, invitation): PathPair<ApproverId, InvitationId>,
) -> HttpResult {
    let line = node.devices.invitation(&caller, &approver, &invitation);
    Ok(plain(StatusCode::OK, &line.await?))
}

/// `DELETE /v1/approvers/{approverId}/invitations/{invitationId}`.
pub async fn end(
    As(node, caller): As<Approver>,
    PathPair(approver, invitation): PathPair<ApproverId, InvitationId>,
) -> HttpResult {
    let ended = (node.devices).end_invitation(&caller, &approver, &invitation);
    ended.await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `PUT /v1/approvers/{approverId}/invitations/{invitationId}`.
pub async fn answer(
    As(node, caller): As<Approver>,
    PathPair(approver, invitation): PathPair<ApproverId, InvitationId>,
    request: Request,
) -> HttpResult {
    caller.speaking_for(&approver)?;
    let devices = &node.devices;
    let answer = body::read_as(&node, request, BodyKind::Statement, DeviceRequest::parse).await?;
    let line = devices.answer_invitation(&caller, &approver, &invitation, &answer);
    Ok(plain(StatusCode::OK, &line.await?))
}
