//! Presence: parses `hello`, and judges from the store's facts whether an enforcer is online.
//! Routing does not depend on it.

use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use super::id::EnforcerId;
use super::json::JsonNode;
use super::reader::{MemberReader, ReadResult};
use super::timestamp::Timestamp;
use super::words::words;

pub const MAX_NAME_CHARS: usize = 1_024;

/// The abilities that a client announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ClientCapabilities {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub push: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sse: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientHello {
    pub label: Option<String>,
    pub workspace_name: Option<String>,
    pub capabilities: Option<ClientCapabilities>,
}

/// Reads a `hello`, a bare object of optional members.
pub fn parse_hello(node: &JsonNode<'_>) -> ReadResult<ClientHello> {
    let mut hello = MemberReader::new(node, "")?;
    hello.optional_str("msgType")?;
    let workspace_name = hello.optional_label("workspaceName", MAX_NAME_CHARS)?;
    let label = hello.optional_label("enforcerLabel", MAX_NAME_CHARS)?;
    let capabilities = hello.optional_inner("capabilities")?;
    let capabilities = capabilities.map(parse_capabilities).transpose()?;
    hello.finish()?;
    Ok(ClientHello {
        label,
        workspace_name,
        capabilities,
    })
}

fn parse_capabilities(mut reader: MemberReader<'_, '_>) -> ReadResult<ClientCapabilities> {
    let capabilities = ClientCapabilities {
        push: reader.optional_bool("push")?,
        poll: reader.optional_bool("poll")?,
        sse: reader.optional_bool("sse")?,
    };
    reader.finish()?;
    Ok(capabilities)
}

words! {
    /// How an enforcer reaches the gateway. A channel is never `Poll`.
    Transport {
        WebSocket = "websocket",
        Sse = "sse",
        Poll = "poll",
    }
    PresenceStatus {
        /// It has a live channel, or has called recently.
        Online = "online",
        Offline = "offline",
    }
}

#[derive(Debug, Clone)]
pub struct CallFacts {
    pub transport: Transport,
    pub called_at: Option<Timestamp>,
    /// When its latest channel ended.
    pub closed_at: Option<Timestamp>,
    pub seen_at: Timestamp,
}

#[derive(Debug, Clone)]
pub struct ChannelFacts {
    pub live: bool,
    /// Of the newest channel, live ones first.
    pub transport: Transport,
    pub seen_at: Timestamp,
    /// When they ended, unless one is live: when the node's lease expired or, for a silent channel,
    /// when it was opened, so that later calls count.
    pub ended_at: Timestamp,
}

/// An enforcer as the store knows it: a record of calls, channels, or both.
#[derive(Debug)]
pub struct PresenceFacts {
    pub enforcer: EnforcerId,
    pub label: Option<String>,
    pub workspace_name: Option<String>,
    pub capabilities: Option<Box<RawValue>>,
    pub noted: Option<CallFacts>,
    pub held: Option<ChannelFacts>,
    pub now: Timestamp,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Presence {
    pub enforcer_device_id: EnforcerId,
    pub status: PresenceStatus,
    pub last_seen_at: Timestamp,
    /// The current transport, or the last one.
    pub transport: Transport,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcer_label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Box<RawValue>>,
}

/// Judges whether an enforcer is online: it has a live channel, or called within `call_for` and
/// since its last channel ended. `None` if nothing is known of it.
pub fn judge_presence(facts: PresenceFacts, call_for: Duration) -> Option<Presence> {
    let PresenceFacts { noted, held, .. } = &facts;
    let called_at = noted.as_ref().and_then(|noted| noted.called_at);
    let closed_at = noted.as_ref().and_then(|noted| noted.closed_at);
    let ended_at = held.as_ref().map(|held| held.ended_at);
    let live = held.as_ref().is_some_and(|held| held.live);
    let called = called_at.is_some_and(|at| {
        Some(at) > closed_at.max(ended_at) && facts.now.inner() - at.inner() < call_for
    });
    let transport = match (held, noted) {
        (Some(held), _) if held.live || ended_at > called_at.max(closed_at) => held.transport,
        (_, Some(noted)) => noted.transport,
        (held, None) => held.as_ref()?.transport,
    };
    let last_seen_at =
        (noted.as_ref().map(|noted| noted.seen_at)).max(held.as_ref().map(|held| held.seen_at))?;
    Some(Presence {
        status: if live || called {
            PresenceStatus::Online
        } else {
            PresenceStatus::Offline
        },
        last_seen_at,
        transport,
        enforcer_device_id: facts.enforcer,
        workspace_name: facts.workspace_name,
        enforcer_label: facts.label,
        capabilities: facts.capabilities,
    })
}
