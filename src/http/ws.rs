//! Channels as WebSockets: authenticated before the upgrade, fed like event streams, and taking the same calls as REST,
//! through the same use cases, with the same answers.

mod handshake;
mod pieces;
mod socket;
mod unfinished;

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use self::handshake::Handshake;
use self::pieces::Pieces;
use self::socket::Socket;
use super::auth::As;
use super::body;
use super::connection_limit::ConnectionPermit;
use super::error::Refusal;
use super::frame::Peer;
use super::metered::Meter;
use super::origin;
use super::reply::Node;
use crate::gateway::Feed;
use crate::gateway::caller::EnforcerOrApprover;
use crate::gateway::error::Error;
use crate::gateway::limit::Kind;
use crate::protocol::presence::Transport;
use crate::wake::Key;

/// The subprotocol a browser offers beside the one that carries its token.
pub const SUBPROTOCOL: &str = "countersign";
/// What tungstenite keeps per socket: its default of 128 KiB is for few sockets, not for ten thousand.
const READ_BUFFER: usize = 1_024;

#[derive(Deserialize)]
struct ConnectQuery {
    role: Option<String>,
    id: Option<String>,
}

/// `GET /v1/ws?role=&id=`.
pub async fn connect(
    State(node): State<Node>,
    As(caller): As<EnforcerOrApprover>,
    headers: HeaderMap,
    uri: Uri,
    permit: Option<Extension<Arc<ConnectionPermit>>>,
    meter: Option<Extension<Arc<Meter>>>,
    handshake: Result<Handshake, Refusal>,
) -> Result<Response, Refusal> {
    origin::check(&node, &headers)?;
    let query: ConnectQuery = body::query(&uri)?;
    let id = query.id.as_deref().ok_or(Error::Parameter {
        name: "id",
        expected: "the id to act as (required)",
    })?;
    let (key, peer, origin) = match (query.role.as_deref(), caller) {
        (Some("enforcer"), EnforcerOrApprover::Enforcer(caller)) => {
            let id = caller.acting(Some(body::path_id("id", id)?), "id")?;
            let origin = caller.origin.clone();
            (
                Key::Enforcer(origin.tenant.clone(), id),
                Peer::Enforcer(caller),
                origin,
            )
        }
        (Some("approver"), EnforcerOrApprover::Approver(caller)) => {
            let id = caller.acting(Some(body::path_id("id", id)?), "id")?;
            let origin = caller.origin.clone();
            (
                Key::Approver(origin.tenant.clone(), id),
                Peer::Approver(caller),
                origin,
            )
        }
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
    };
    node.gateway.admit(Kind::Connect, &origin, Some(id))?;
    let handshake = handshake?;
    let gateway = node.gateway.clone();
    let feed = node
        .finish(async move {
            let channel = gateway
                .open_channel(&origin, key, Transport::WebSocket)
                .await?;
            match &channel.key {
                Key::Approver(..) => Feed::approver(&gateway, channel, true, None).await,
                _ => Feed::enforcer(&gateway, channel),
            }
        })
        .await?;
    let limits = &node.gateway.config.limits;
    let most = match peer {
        Peer::Enforcer(_) => limits.artifact_bytes + limits.envelope_bytes,
        Peer::Approver(_) => limits.body_bytes,
    };
    let settings = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(0)
        .max_message_size(Some(most))
        .max_frame_size(Some(most));
    let (response, upgrade) = handshake.accept();
    let tasks = node.tasks.clone();
    let opening = async move {
        let Ok(upgraded) = upgrade.await else {
            return;
        };
        let stream = Pieces::new(TokioIo::new(upgraded), most);
        let stream = WebSocketStream::from_raw_socket(stream, Role::Server, Some(settings)).await;
        let meter = meter.map(|Extension(meter)| meter).unwrap_or_default();
        let socket = Socket::new(node.clone(), stream, feed, peer, meter, permit);
        // On a task of its own, which has no more to carry than the socket.
        node.tasks.spawn(socket.run());
    };
    tasks.spawn(opening);
    Ok(response)
}
