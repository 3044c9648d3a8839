//! Prompts over REST, in any framing: from approvers and administrators, to enforcers.

use axum::extract::Request;
use axum::http::{StatusCode, Uri};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::auth::As;
use super::body::{self, BodyKind};
use super::error::{HttpResult, refused};
use super::path::{self, PathId};
use super::reply::{plain, replayed};
use crate::gateway::error::Error;
use crate::gateway::identity::caller::{EnforcerOrAdmin, Member};
use crate::gateway::{PromptCommand, bind_key};
use crate::protocol::envelope::OutgoingEnvelope;
use crate::protocol::id::{EnforcerId, ID_EXPECTED, RequestId, SessionId, TextId};
use crate::protocol::json;

/// `POST /v1/prompt`.
pub async fn post(As(node, caller): As<Member>, request: Request) -> HttpResult {
    let bytes = body::read(&node, request, BodyKind::Prompt).await?;
    let key = body::sent_key(&bytes.parts.headers)?;
    let bound = bind_key(caller.origin(), key.clone(), bytes.parts.uri.path(), &bytes);
    let read = |document: &json::JsonNode<'_>| {
        node.prompts
            .read_prompt(&caller, document, bytes.len(), bound)
    };
    let (command, framing) = body::parsed_large(&node, caller.origin(), &bytes, read).await?;
    match command {
        PromptCommand::Send(command) => {
            body::require_key(&node, key.as_deref())?;
            let request = command.request_id().clone();
            let (standing, was_replayed) = node
                .prompts
                .send_prompt(*command)
                .await
                .map_err(refused(framing))?;
            let body = standing.body(request).map_err(Error::from)?;
            Ok(replayed(plain(StatusCode::ACCEPTED, &body), was_replayed))
        }
        PromptCommand::Ack(command) => {
            let request = command.request_id().clone();
            let standing = node
                .prompts
                .acknowledge_prompt(command)
                .await
                .map_err(refused(framing))?;
            let body = standing.body(request).map_err(Error::from)?;
            Ok(plain(StatusCode::OK, &body))
        }
    }
}

/// `GET /v1/prompt/{requestId}`.
pub async fn get(As(node, caller): As<Member>, PathId(request): PathId<RequestId>) -> HttpResult {
    let standing = node.prompts.prompt(&caller, &request).await?;
    let body = standing.body(request).map_err(Error::from)?;
    Ok(plain(StatusCode::OK, &body))
}

/// The query.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PendingQuery {
    session_id: Option<String>,
    after: Option<String>,
}

/// `GET /v1/enforcers/{enforcerId}/prompts`.
pub async fn pending(
    As(node, caller): As<EnforcerOrAdmin>,
    PathId(enforcer): PathId<EnforcerId>,
    uri: Uri,
) -> HttpResult {
    let query = path::query::<PendingQuery>(&uri)?;
    let session = read_id::<SessionId>("sessionId", query.session_id.as_deref())?;
    let after = read_id::<RequestId>("after", query.after.as_deref())?;
    let found = node
        .prompts
        .pending(&caller, &enforcer, session.as_ref(), after.as_ref())
        .await?;
    let gateway_id = &node.context.config.server.gateway_id;
    let items = found
        .into_iter()
        .map(|prompt| prompt.envelope(gateway_id, &enforcer));
    let items: Vec<_> = items.collect::<Result<_, _>>().map_err(Error::from)?;
    Ok(plain(StatusCode::OK, &PendingPrompt { items }))
}

fn read_id<T: TextId>(name: &'static str, text: Option<&str>) -> Result<Option<T>, Error> {
    let malformed = Error::Parameter {
        name,
        expected: ID_EXPECTED,
    };
    text.map(|id| T::parse(id).ok_or(malformed)).transpose()
}

#[derive(Serialize)]
struct PendingPrompt {
    items: Vec<OutgoingEnvelope<Box<RawValue>>>,
}
