//! Presence: what an enforcer's client says of itself in `hello`, and the record that anyone of its tenant may read.
//! Whether an enforcer is online is judged here, from facts; routing never asks.

use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use super::id::EnforcerId;
use super::json::{Node, Value};
use super::reader::{Invalid, Reader};
use super::timestamp::Timestamp;

/// Longest label or workspace name, in characters.
pub const MAX_NAME_CHARS: usize = 1_024;

/// What a client can do, as far as it says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub push: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sse: Option<bool>,
}

/// What an enforcer's client says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    pub label: Option<String>,
    pub workspace_name: Option<String>,
    pub capabilities: Option<Capabilities>,
}

/// Reads a `hello`: a bare object, whose members may be missing but not be of another type.
pub fn parse_hello(node: &Node<'_>) -> Result<Hello, Invalid> {
    let mut hello = Reader::new(node, "")?;
    hello.optional_str("msgType")?;
    let workspace_name = name(&mut hello, "workspaceName")?;
    let label = name(&mut hello, "enforcerLabel")?;
    let capabilities = match hello.optional_nested("capabilities")? {
        None => None,
        Some(node) => {
            let mut reader = Reader::new(node, "/capabilities")?;
            let capabilities = Capabilities {
                push: flag(&mut reader, "push")?,
                poll: flag(&mut reader, "poll")?,
                sse: flag(&mut reader, "sse")?,
            };
            reader.finish()?;
            Some(capabilities)
        }
    };
    hello.finish()?;
    Ok(Hello {
        label,
        workspace_name,
        capabilities,
    })
}

fn name(hello: &mut Reader<'_, '_>, name: &'static str) -> Result<Option<String>, Invalid> {
    match hello.optional_str(name)? {
        Some(text) if text.chars().nth(MAX_NAME_CHARS).is_some() => Err(Invalid::shape(
            hello.at(name),
            format!("a string of at most {MAX_NAME_CHARS} characters"),
        )),
        text => Ok(text.map(str::to_owned)),
    }
}

fn flag(reader: &mut Reader<'_, '_>, name: &'static str) -> Result<Option<bool>, Invalid> {
    match reader.optional(name).map(|node| &node.value) {
        None => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(_) => Err(Invalid::shape(reader.at(name), "true or false")),
    }
}

/// How an enforcer reaches the gateway. A channel is never `Poll`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    WebSocket,
    Sse,
    Poll,
}

impl Transport {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WebSocket => "websocket",
            Self::Sse => "sse",
            Self::Poll => "poll",
        }
    }

    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::WebSocket, Self::Sse, Self::Poll]
            .into_iter()
            .find(|transport| transport.as_str() == text)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It has a live channel, or has called lately.
    Online,
    Offline,
}

#[derive(Debug, Clone)]
pub struct Noted {
    pub transport: Transport,
    pub called_at: Option<Timestamp>,
    /// When its latest channel ended.
    pub closed_at: Option<Timestamp>,
    /// When it was last known to be there.
    pub seen_at: Timestamp,
}

/// The registered channels of an enforcer.
#[derive(Debug, Clone)]
pub struct Held {
    pub live: bool,
    /// Transport of the newest one, live ones first.
    pub transport: Transport,
    pub seen_at: Timestamp,
    /// When they ended, unless one is live: when their node's lease ran out or, for one that merely went silent, when it
    /// was opened, so that calls made since count.
    pub ended_at: Timestamp,
}

/// What is known of an enforcer: it has been noted, or it has channels, or both.
#[derive(Debug)]
pub struct Facts {
    pub enforcer: EnforcerId,
    pub label: Option<String>,
    pub workspace_name: Option<String>,
    pub capabilities: Option<Box<RawValue>>,
    pub noted: Option<Noted>,
    pub held: Option<Held>,
    pub now: Timestamp,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Presence {
    pub enforcer_device_id: EnforcerId,
    pub status: Status,
    /// When it was last known to be there.
    pub last_seen_at: Timestamp,
    /// How it reaches the gateway, or last did.
    pub transport: Transport,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcer_label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Box<RawValue>>,
}

/// Judges whether an enforcer is online: it has a live channel, or called within `call_for` and since its last channel
/// ended. `None` if nothing is known of it.
#[must_use]
pub fn judge_presence(facts: Facts, call_for: Duration) -> Option<Presence> {
    let Facts { noted, held, .. } = &facts;
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
            Status::Online
        } else {
            Status::Offline
        },
        last_seen_at,
        transport,
        enforcer_device_id: facts.enforcer,
        workspace_name: facts.workspace_name,
        enforcer_label: facts.label,
        capabilities: facts.capabilities,
    })
}
