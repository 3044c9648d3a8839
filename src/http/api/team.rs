//! Teams, in plain JSON. Signed texts pass through byte for byte.

use axum::extract::Request;
use axum::http::header::{CACHE_CONTROL, ETAG};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::IntoResponse as _;
use serde::Deserialize;
use serde_json::json;

use super::auth::As;
use super::body::{self, BodyKind};
use super::device::names;
use super::error::HttpResult;
use super::path::{PathId, query};
use super::reply::{created, plain};
use crate::e2e::TeamId;
use crate::gateway::identity::caller::{Approver, Member};
use crate::gateway::{StateListing, TeamInvitation, TeamService};
use crate::protocol::id::ApproverId;
use crate::protocol::json::JsonNode;

/// `POST /v1/teams`.
pub async fn create(As(node, caller): As<Approver>, request: Request) -> HttpResult {
    let parse = |document: &JsonNode<'_>| TeamService::read_state(&caller, None, document);
    let command = body::read_as(&node, request, BodyKind::TeamState, parse).await?;
    let (team, is_new) = node.teams.create(&caller, command).await?;
    Ok(plain(created(is_new), &team))
}

/// `POST /v1/teams/{teamId}/states`.
pub async fn publish(
    As(node, caller): As<Approver>,
    PathId(team): PathId<TeamId>,
    request: Request,
) -> HttpResult {
    let parse = |document: &JsonNode<'_>| TeamService::read_state(&caller, Some(team), document);
    let command = body::read_as(&node, request, BodyKind::TeamState, parse).await?;
    let (head, is_new) = node.teams.publish(&caller, command).await?;
    Ok(plain(created(is_new), &head))
}

#[derive(Deserialize)]
struct AfterQuery {
    after: Option<String>,
}

/// `GET /v1/teams/{teamId}/states`.
pub async fn states(
    As(node, caller): As<Member>,
    PathId(team): PathId<TeamId>,
    uri: Uri,
    headers: HeaderMap,
) -> HttpResult {
    let AfterQuery { after } = query(&uri)?;
    let known = |tag: &str| names(&headers, tag);
    let listing = node.teams.states(&caller, team, after.as_deref(), known);
    let (tag, mut response) = match listing.await? {
        StateListing::Unchanged(tag) => {
            let no_store = [(CACHE_CONTROL, HeaderValue::from_static("no-store"))];
            (tag, (StatusCode::NOT_MODIFIED, no_store).into_response())
        }
        StateListing::Whole(tag, list) => (tag, plain(StatusCode::OK, &list)),
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    Ok(response)
}

/// `POST /v1/teams/{teamId}/invitations`.
pub async fn invite(
    As(node, caller): As<Approver>,
    PathId(team): PathId<TeamId>,
    request: Request,
) -> HttpResult {
    let invitation = body::read_as(&node, request, BodyKind::Other, TeamInvitation::parse).await?;
    let (line, is_new) = node.teams.invite(&caller, team, invitation).await?;
    Ok(plain(created(is_new), &line))
}

/// `POST /v1/teams/{teamId}/consents`.
pub async fn consent(
    As(node, caller): As<Approver>,
    PathId(team): PathId<TeamId>,
    request: Request,
) -> HttpResult {
    let parse = |document: &JsonNode<'_>| TeamService::read_consent(&caller, team, document);
    let command = body::read_as(&node, request, BodyKind::Consent, parse).await?;
    let is_new = node.teams.consent(&caller, team, &command).await?;
    let answer = json!({ "teamId": team.to_string(), "inviteId": command.invite.to_string() });
    Ok(plain(created(is_new), &answer))
}

/// `GET /v1/teams/{teamId}/consents`.
pub async fn consents(As(node, caller): As<Member>, PathId(team): PathId<TeamId>) -> HttpResult {
    let list = node.teams.consents(&caller, team).await?;
    Ok(plain(StatusCode::OK, &list))
}

/// `POST /v1/teams/{teamId}/introductions`.
pub async fn introduce(
    As(node, caller): As<Approver>,
    PathId(team): PathId<TeamId>,
    request: Request,
) -> HttpResult {
    let teams = &node.teams;
    let parse = |document: &JsonNode<'_>| teams.read_introduction(&caller, team, document);
    let command = body::read_as(&node, request, BodyKind::Introduction, parse).await?;
    let (line, is_new) = teams.introduce(&caller, team, &command).await?;
    Ok(plain(created(is_new), &line))
}

/// `GET /v1/teams/{teamId}/introductions`.
pub async fn introductions(
    As(node, caller): As<Member>,
    PathId(team): PathId<TeamId>,
) -> HttpResult {
    let list = node.teams.introductions(&caller, team).await?;
    Ok(plain(StatusCode::OK, &list))
}

/// `GET /v1/approvers/{approverId}/teams`.
pub async fn list(
    As(node, caller): As<Approver>,
    PathId(approver): PathId<ApproverId>,
) -> HttpResult {
    let teams = node.teams.teams_of(&caller, &approver).await?;
    let answer = json!({ "approverId": approver, "teams": teams });
    Ok(plain(StatusCode::OK, &answer))
}
