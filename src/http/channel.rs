//! Opens the channels that `sse` and `ws` serve.

use uuid::Uuid;

use super::reply::Node;
use crate::gateway::Feed;
use crate::gateway::caller::Origin;
use crate::gateway::error::Error;
use crate::protocol::presence::Transport;
use crate::wake::Key;

/// Opens a channel for `key` and returns its feed. An approver's feed starts near `resume_after`, if that is given.
pub async fn open(
    node: &Node,
    origin: Origin,
    key: Key,
    transport: Transport,
    resume_after: Option<Uuid>,
) -> Result<Feed, Error> {
    let gateway = node.gateway.clone();
    node.finish(async move {
        let channel = gateway
            .channels
            .open_channel(&origin, key, transport)
            .await?;
        match &channel.key {
            Key::Approver(..) => {
                let withdrawals = transport == Transport::WebSocket;
                Feed::approver(&gateway.context, channel, withdrawals, resume_after).await
            }
            Key::Enforcer(..) | Key::Exchange(..) => Feed::enforcer(&gateway.context, channel),
        }
    })
    .await
}
