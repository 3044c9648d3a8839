//! Introductions of enforcers, in plain JSON. They pass through byte for byte.

use axum::extract::Request;
use axum::http::StatusCode;

use super::auth::As;
use super::body::{self, BodyKind};
use super::error::HttpResult;
use super::path::PathId;
use super::reply::{created, plain};
use crate::gateway::identity::caller::Approver;
use crate::protocol::id::ApproverId;
use crate::protocol::json::JsonNode;

/// `POST /v1/approvers/{approverId}/introductions`.
pub async fn introduce(
    As(node, caller): As<Approver>,
    PathId(approver): PathId<ApproverId>,
    request: Request,
) -> HttpResult {
    caller.speaking_for(&approver)?;
    let devices = &node.devices;
    let parse = |document: &JsonNode<'_>| devices.read_introduction(&caller, &approver, document);
    let command = body::read_as(&node, request, BodyKind::Introduction, parse).await?;
    let (line, is_new) = devices.introduce(&caller, &approver, &command).await?;
    Ok(plain(created(is_new), &line))
}

/// `GET /v1/approvers/{approverId}/introductions`.
pub async fn list(
    As(node, caller): As<Approver>,
    PathId(approver): PathId<ApproverId>,
) -> HttpResult {
    let list = node.devices.introductions(&caller, &approver).await?;
    Ok(plain(StatusCode::OK, &list))
}
