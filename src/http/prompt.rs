//! Prompts over REST, in any framing: sent by approvers and administrators, acknowledged by the enforcer.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::auth::As;
use super::body::{self, Kind, Path};
use super::error::Refusal;
use super::generic::refused;
use super::reply::{Node, plain, replayed};
use crate::gateway::Prompts;
use crate::gateway::caller::Member;
use crate::gateway::error::Error;
use crate::gateway::{PromptCommand, bind_key};
use crate::protocol::id::{RequestId, TextId};
use crate::protocol::json;

/// `POST /v1/prompt`.
pub async fn post(
    State(node): State<Node>,
    State(prompts): State<Arc<Prompts>>,
    As(caller): As<Member>,
    request: Request,
) -> Result<Response, Refusal> {
    let bytes = body::read(&node, request, Kind::Prompt).await?;
    let key = body::sent_key(&bytes.parts.headers)?;
    let bound = bind_key(caller.origin(), key.clone(), bytes.parts.uri.path(), &bytes);
    let read =
        |document: &json::Node<'_>| prompts.read_prompt(&caller, document, bytes.len(), bound);
    let (command, framing) = body::parsed_large(&node, caller.origin(), &bytes, read).await?;
    match command {
        PromptCommand::Send(command) => {
            body::require_key(&node, key.as_deref())?;
            let request = command.request_id().clone();
            let (standing, was_replayed) = prompts
                .send_prompt(*command)
                .await
                .map_err(refused(framing))?;
            let body = standing.body(request).map_err(Error::from)?;
            Ok(replayed(plain(StatusCode::ACCEPTED, &body), was_replayed))
        }
        PromptCommand::Ack(command) => {
            let request = command.request_id().clone();
            let standing = prompts
                .acknowledge_prompt(command)
                .await
                .map_err(refused(framing))?;
            let body = standing.body(request).map_err(Error::from)?;
            Ok(plain(StatusCode::OK, &body))
        }
    }
}

/// `GET /v1/prompt/{requestId}`.
pub async fn get(
    State(prompts): State<Arc<Prompts>>,
    As(caller): As<Member>,
    Path(request): Path<String>,
) -> Result<Response, Refusal> {
    let request = RequestId::parse(&request).ok_or(Error::NotFound)?;
    let standing = prompts.prompt(&caller, &request).await?;
    let body = standing.body(request).map_err(Error::from)?;
    Ok(plain(StatusCode::OK, &body))
}
