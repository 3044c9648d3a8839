//! Channels over WebSocket: authenticated before the upgrade, fed like event streams. They accept
//! the same calls as REST, through the same use cases, with the same answers.

mod frame_splitter;
mod partial_message;
mod socket;

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONNECTION, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use self::frame_splitter::FrameSplitter;
use self::socket::ClientSocket;
use super::auth::As;
use super::error::HttpResult;
use super::{channel, origin, path};
use crate::gateway::error::Error;
use crate::gateway::identity::caller::EnforcerOrApprover;
use crate::http::server::connection_limit::ConnectionPermit;
use crate::http::server::metered::ConnectionMeter;
use crate::protocol::presence::Transport;

/// The subprotocol a browser offers beside the one that carries its token.
pub const SUBPROTOCOL: &str = "countersign";
/// Buffer of each socket: tungstenite's default of 128 KiB is for few sockets.
const READ_BUFFER: usize = 1_024;
/// A peer that reads no answers to its pings would otherwise fill the memory.
const WRITE_BUFFER: usize = 64 << 10;

#[derive(Deserialize)]
struct ConnectQuery {
    role: Option<String>,
    id: Option<String>,
}

/// Answers a WebSocket handshake (RFC 6455, section 4.2), and returns the upgraded connection.
fn upgrade(mut request: Request) -> Option<(Response, OnUpgrade)> {
    let headers = request.headers_mut();
    keep_only(headers, CONNECTION, "Upgrade");
    keep_only(headers, UPGRADE, "websocket");
    keep_only(headers, SEC_WEBSOCKET_VERSION, "13");
    let mut response = create_response_with_body(&request, Body::empty).ok()?;
    let offers = request.headers().get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let mut offers = offers.flat_map(|offer| offer.as_bytes().split(|byte| *byte == b','));
    if offers.any(|offer| offer.trim_ascii() == SUBPROTOCOL.as_bytes()) {
        let accepted = HeaderValue::from_static(SUBPROTOCOL);
        response
            .headers_mut()
            .insert(SEC_WEBSOCKET_PROTOCOL, accepted);
    }
    Some((response, request.extensions_mut().remove()?))
}

/// Reduces a header to one of the items it lists, if it does. tungstenite reads one header and
/// compares it whole, but these are lists, which a proxy may split or extend.
fn keep_only(headers: &mut HeaderMap, name: HeaderName, item: &'static str) {
    let values = headers.get_all(&name).iter();
    let mut items = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    if items.any(|one| one.trim_ascii().eq_ignore_ascii_case(item.as_bytes())) {
        headers.insert(name, HeaderValue::from_static(item));
    }
}

/// `GET /v1/ws?role=&id=`.
pub async fn connect(
    As(node, caller): As<EnforcerOrApprover>,
    permit: Option<Extension<Arc<ConnectionPermit>>>,
    meter: Option<Extension<Arc<ConnectionMeter>>>,
    request: Request,
) -> HttpResult {
    origin::check(&node, &request)?;
    let query: ConnectQuery = path::query(request.uri())?;
    let id = query.id.as_deref().ok_or(Error::Parameter {
        name: "id",
        expected: "the id to act as (required)",
    })?;
    match (query.role.as_deref(), &caller) {
        (Some("enforcer"), EnforcerOrApprover::Enforcer(_))
        | (Some("approver"), EnforcerOrApprover::Approver(_)) => {}
        (Some("enforcer" | "approver"), _) => {
            return Err(Error::Forbidden {
                pointer: Some("role".into()),
                expected: "the credential's own role",
            }
            .into());
        }
        _ => {
            return Err(Error::Parameter {
                name: "role",
                expected: "enforcer or approver",
            }
            .into());
        }
    }
    let key = channel::admit(&node, &caller, "id", id)?;
    let (response, upgrade) = upgrade(request).ok_or(Error::Parameter {
        name: "Upgrade",
        expected: "a WebSocket handshake",
    })?;
    let feed = channel::open(
        &node,
        caller.origin().clone(),
        key,
        Transport::WebSocket,
        None,
    )
    .await?;
    let limits = &node.context.config.limits;
    let limit = match caller {
        EnforcerOrApprover::Enforcer(_) => limits.artifact_bytes + limits.envelope_bytes,
        EnforcerOrApprover::Approver(_) => limits.body_bytes,
    };
    let settings = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(0)
        .max_write_buffer_size(WRITE_BUFFER)
        .max_message_size(Some(limit))
        .max_frame_size(Some(limit));
    let tasks = node.tasks.clone();
    let opening = async move {
        let Ok(upgraded) = upgrade.await else {
            return;
        };
        let stream = FrameSplitter::new(TokioIo::new(upgraded), limit);
        let stream = WebSocketStream::from_raw_socket(stream, Role::Server, Some(settings)).await;
        let meter = meter.map(|Extension(meter)| meter).unwrap_or_default();
        let socket = ClientSocket::new(node.clone(), stream, feed, caller, meter, permit);
        // On a task of its own, which is no larger than the socket.
        node.tasks.spawn(socket.run());
    };
    tasks.spawn(opening);
    Ok(response)
}
