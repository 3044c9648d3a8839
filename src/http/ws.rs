//! Channels as WebSockets: authenticated before the upgrade, fed like event streams, and taking the same calls as REST,
//! through the same use cases, with the same answers.

mod socket;
mod unfinished;

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use serde::Deserialize;

use self::socket::Socket;
use super::auth::As;
use super::body;
use super::error::Refusal;
use super::frame::Peer;
use super::metered::Meter;
use super::origin;
use super::reply::Node;
use super::seats::Seat;
use crate::gateway::Feed;
use crate::gateway::caller::EnforcerOrApprover;
use crate::gateway::error::Error;
use crate::gateway::limit::Kind;
use crate::store::channel::Transport;
use crate::wake::Key;

/// The subprotocol a browser offers beside the one that carries its token.
pub const SUBPROTOCOL: &str = "countersign";
/// What tungstenite keeps per socket: its default of 128 KiB is for few sockets, not for ten thousand.
const READ_BUFFER: usize = 1_024;

/// The query of a connection.
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
    seat: Option<Extension<Arc<Seat>>>,
    meter: Option<Extension<Arc<Meter>>>,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
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
    let upgrade = upgrade.map_err(|_| Error::Parameter {
        name: "Upgrade",
        expected: "a WebSocket handshake",
    })?;
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
    let tasks = node.tasks.clone();
    Ok(upgrade
        .protocols([SUBPROTOCOL])
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(0)
        .max_message_size(most)
        .max_frame_size(most)
        .on_upgrade(move |socket| {
            tasks.track_future(async move {
                let _seat = seat;
                let meter = meter.map(|Extension(meter)| meter).unwrap_or_default();
                Socket::new(node, socket, feed, peer, meter).run().await;
            })
        }))
}
