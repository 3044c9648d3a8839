//! Reads bodies, within their limits and in time.

use std::ops::Deref;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use tokio::time::{Instant, timeout_at};

use super::auth;
use super::error::{HttpRefusal, TransportError};
use super::reply::AppState;
use super::request_scope::RequestScope;
use crate::config;
use crate::gateway::error::Error;
use crate::gateway::identity::caller::CallerIdentity;
use crate::http::server::memory::{MemoryAccount, MemoryCharge};
use crate::http::server::metered::ReadPace;
use crate::protocol::device::{MAX_INTRODUCTION_BYTES, MAX_STATEMENT_BYTES};
use crate::protocol::framing::Framing;
use crate::protocol::id::{RequestId, TextId};
use crate::protocol::json;
use crate::protocol::notification::MAX_NOTIFICATION_BYTES;
use crate::protocol::team::{MAX_CONSENT_BYTES, MAX_TEAM_STATE_BYTES};

const MAX_KEY_BYTES: usize = 255;

/// How long the sender of a body may pause.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyKind {
    /// A submission: the payload's limit and an envelope around it.
    Artifact,
    /// A prompt: the text's limit and an envelope around it.
    Prompt,
    /// A session event: it may be a snapshot, whose payload has a limit of its own.
    Snapshot,
    /// A signed statement about a device.
    Statement,
    /// A signed introduction of an enforcer.
    Introduction,
    /// A signed state of a team.
    TeamState,
    /// A signed consent to join a team.
    Consent,
    /// A target to notify an approver at.
    Notification,
    Other,
    /// Anything else; the body may be missing.
    Optional,
}

/// A request whose body was read whole, with its share of the memory for bodies.
pub struct ReceivedRequest {
    pub parts: Parts,
    bytes: Bytes,
    _memory: MemoryCharge,
}

impl ReceivedRequest {
    /// Gives up the body and its memory.
    pub fn into_parts(self) -> Parts {
        self.parts
    }
}

impl Deref for ReceivedRequest {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads a body whole, if it comes fast enough. It acquires memory as it arrives: announcing a size
/// reserves nothing, and many at once cannot use up the memory.
async fn whole(
    config: &config::Server,
    mut body: Body,
    limit: usize,
    memory: &mut MemoryCharge,
) -> Result<Bytes, HttpRefusal> {
    let begun = Instant::now();
    let deadline = begun + Duration::from_secs(config.body_timeout_seconds);
    let pace = ReadPace {
        pause: READ_TIMEOUT,
        rate: config.min_bytes_per_second,
    };
    let (mut bytes, mut moved) = (Vec::new(), begun);
    loop {
        let next = pace.deadline(begun, moved, bytes.len() as u64);
        let next = next.map_or(deadline, |next| next.min(deadline));
        let next = timeout_at(next, body.frame()).await;
        let Some(frame) = next.map_err(|_| TransportError::BodyIncomplete)? else {
            break;
        };
        let frame = frame.map_err(|_| TransportError::BodyIncomplete)?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let length = bytes.len() + data.len();
        if length > limit {
            return Err(Error::BodyTooLarge { limit }.into());
        }
        if !memory.grow(length).await {
            return Err(Error::Unavailable.into());
        }
        if !data.is_empty() {
            moved = Instant::now();
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.into())
}

/// Reads a JSON body. Too long a one is refused by its stated length, before it is read.
pub async fn read(
    node: &AppState,
    request: Request,
    kind: BodyKind,
) -> Result<ReceivedRequest, HttpRefusal> {
    let (parts, body) = request.into_parts();
    let limits = &node.context.config.limits;
    let limit = match kind {
        BodyKind::Artifact => limits.artifact_bytes + limits.envelope_bytes,
        BodyKind::Prompt => limits.prompt_bytes + limits.envelope_bytes,
        BodyKind::Snapshot => limits.snapshot_bytes + limits.envelope_bytes,
        BodyKind::Statement => MAX_STATEMENT_BYTES.min(limits.body_bytes),
        BodyKind::Introduction => MAX_INTRODUCTION_BYTES.min(limits.body_bytes),
        BodyKind::TeamState => MAX_TEAM_STATE_BYTES.min(limits.body_bytes),
        BodyKind::Consent => MAX_CONSENT_BYTES.min(limits.body_bytes),
        BodyKind::Notification => MAX_NOTIFICATION_BYTES.min(limits.body_bytes),
        BodyKind::Other | BodyKind::Optional => limits.body_bytes,
    };
    let stated = parts
        .headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if stated.is_some_and(|length| length > limit) {
        return Err(Error::BodyTooLarge { limit }.into());
    }
    if kind != BodyKind::Optional {
        check_media_type(node, &parts.headers)?;
    }
    let scope = parts.extensions.get::<RequestScope>();
    let mut memory = scope.map_or_else(
        || MemoryCharge::new(&node.memory, MemoryAccount::default(), None),
        |scope| scope.charge(&node.memory),
    );
    let begun = Instant::now();
    let bytes = whole(&node.context.config.server, body, limit, &mut memory).await?;
    auth::authenticate_again(node, &parts, begun).await?;
    // HTTP/2 reports a stream that was reset without an error as the end of its body.
    if stated.is_some_and(|length| length != bytes.len()) {
        return Err(TransportError::BodyIncomplete.into());
    }
    // Only what arrived tells whether there is a body: neither chunks nor HTTP/2 say so beforehand.
    if kind == BodyKind::Optional && !bytes.is_empty() {
        check_media_type(node, &parts.headers)?;
    }
    Ok(ReceivedRequest {
        parts,
        bytes,
        _memory: memory,
    })
}

fn check_media_type(node: &AppState, headers: &HeaderMap) -> Result<(), TransportError> {
    let plain = headers
        .get(header::CONTENT_ENCODING)
        .is_none_or(|value| value == "identity");
    let stated = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = stated.split(';').next().unwrap_or_default().trim();
    let known = [node.context.names.media_type.as_str(), "application/json"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(essence));
    if plain && known {
        Ok(())
    } else {
        Err(TransportError::UnsupportedMediaType)
    }
}

/// Reads a body that has one form, and nothing around it.
pub async fn read_as<T, E: Into<Error>>(
    node: &AppState,
    request: Request,
    kind: BodyKind,
    parse: impl FnOnce(&json::JsonNode<'_>) -> Result<T, E>,
) -> Result<T, HttpRefusal> {
    let bytes = read(node, request, kind).await?;
    let document = json::parse(&bytes).map_err(Error::from)?;
    Ok(parse(&document).map_err(Into::into)?)
}

/// Reads a command from a body. A refusal names the exchange that the envelope is about.
pub fn parsed<T>(
    bytes: &[u8],
    read: impl FnOnce(&json::JsonNode<'_>) -> Result<T, Error>,
) -> Result<T, HttpRefusal> {
    parsed_any(bytes, read).map(|(command, _)| command)
}

/// Parses a body that may be large.
pub async fn parsed_large<T>(
    node: &AppState,
    origin: &CallerIdentity,
    bytes: &[u8],
    read: impl FnOnce(&json::JsonNode<'_>) -> Result<T, Error>,
) -> Result<(T, Framing), HttpRefusal> {
    let parse = || parsed_any(bytes, read);
    let limiter = &node.limiter;
    node.parsing
        .parse(limiter, origin, bytes.len(), parse)
        .await
}

/// Also returns the framing of the message, which refusals point into.
pub fn parsed_any<T>(
    bytes: &[u8],
    read: impl FnOnce(&json::JsonNode<'_>) -> Result<T, Error>,
) -> Result<(T, Framing), HttpRefusal> {
    let document = json::parse(bytes).map_err(Error::from)?;
    let framing = document.as_object().map_or(Framing::Wire, Framing::of);
    match read(&document) {
        Ok(command) => Ok((command, framing)),
        Err(error) => Err(HttpRefusal {
            about: request_of(&document),
            framing,
            ..error.into()
        }),
    }
}

/// Adds the exchange that an envelope is about to a refusal.
pub fn about(bytes: &[u8]) -> impl FnOnce(Error) -> HttpRefusal + '_ {
    |error| HttpRefusal {
        about: json::parse(bytes)
            .ok()
            .and_then(|document| request_of(&document)),
        ..error.into()
    }
}

fn request_of(document: &json::JsonNode<'_>) -> Option<String> {
    let id = document.as_object()?.get("requestId")?.as_str()?;
    RequestId::parse(id).map(|id| id.as_str().to_owned())
}

/// The `Idempotency-Key` header of a submission, which may be required.
pub fn idempotency_key(node: &AppState, headers: &HeaderMap) -> Result<Option<String>, Error> {
    let key = sent_key(headers)?;
    require_key(node, key.as_deref())?;
    Ok(key)
}

/// Refuses a submission without the header where it is required.
pub fn require_key(node: &AppState, key: Option<&str>) -> Result<(), Error> {
    if key.is_none() && node.context.config.idempotency.required {
        return Err(Error::Parameter {
            name: "Idempotency-Key",
            expected: "a header with a key of your own (required)",
        });
    }
    Ok(())
}

/// The `Idempotency-Key` header.
pub fn sent_key(headers: &HeaderMap) -> Result<Option<String>, Error> {
    let mut values = headers.get_all("idempotency-key").iter();
    let refused = Error::Parameter {
        name: "Idempotency-Key",
        expected: "one key of 1 to 255 visible ASCII characters",
    };
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(_), Some(_)) => Err(refused),
        (Some(value), None) => match value.to_str() {
            Ok(key)
                if (1..=MAX_KEY_BYTES).contains(&key.len())
                    && key.bytes().all(|byte| byte.is_ascii_graphic()) =>
            {
                Ok(Some(key.to_owned()))
            }
            _ => Err(refused),
        },
    }
}
