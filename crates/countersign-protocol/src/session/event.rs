//! The bodies of session events.

use crate::canonical::{Sha256Hex, canonical, canonical_without};
use crate::error::{Error, Result};
use crate::framing::{FramedBody, Framing, FramingKinds};
use crate::id::{SessionId, SnapshotId};
use crate::json::JsonNode;
use crate::reader::{MemberReader, ReadResult};
use crate::text::is_longer;
use crate::timestamp::Timestamp;
use crate::words::words;

const EVENT_TYPES: [&str; 4] = [
    "session.start",
    "session.snapshot",
    "session.status",
    "session.end",
];

const KINDS: FramingKinds = FramingKinds {
    allowed: &EVENT_TYPES,
    bare: |object| {
        let stated = object.get("eventType").and_then(|node| node.as_str());
        let known = EVENT_TYPES.iter().find(|kind| Some(**kind) == stated);
        known.copied().unwrap_or_default()
    },
    about: "sessionId",
};

/// Longest host and repository reference, so that rows stay small.
pub const MAX_WORD_CHARS: usize = 1_024;

words! {
    SessionState {
        Idle = "idle",
        Planning = "planning",
        Editing = "editing",
        Executing = "executing",
        WaitingApproval = "waiting_approval",
        Error = "error",
    }
    SnapshotType {
        Summary = "summary",
        Plan = "plan",
        DiffSummary = "diff_summary",
        Context = "context",
    }
    EndReason {
        UserEnd = "user_end",
        Timeout = "timeout",
        PolicyKill = "policy_kill",
    }
}

/// Objects are kept as the sender's own text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionEvent {
    Start {
        agent_host: String,
        repo_ref: Option<String>,
        metadata: Option<String>,
    },
    Snapshot {
        snapshot_id: SnapshotId,
        snapshot_type: SnapshotType,
        body: String,
    },
    Status {
        state: SessionState,
        details: Option<String>,
    },
    End {
        reason: EndReason,
        metadata: Option<String>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionReport {
    pub session_id: SessionId,
    /// When it happened, by the sender's clock.
    pub at: Timestamp,
    /// Tells a repeat from another event: a snapshot's own hash, else that of the canonical event.
    pub hash: Sha256Hex,
    pub event: SessionEvent,
}

#[derive(Debug, Clone, Copy)]
pub struct EventRules {
    pub latest: Timestamp,
    /// Largest snapshot payload, in bytes of its text.
    pub max_payload: usize,
}

pub fn unframe<'n, 'a>(node: &'n JsonNode<'a>, now: Timestamp) -> ReadResult<FramedBody<'n, 'a>> {
    // A bare object that is no event is refused as such before anything else is checked.
    if node
        .as_object()
        .is_some_and(|object| Framing::of(object) == Framing::Bare)
    {
        MemberReader::new(node, "/body")?.one_of("eventType", &EVENT_TYPES)?;
    }
    FramedBody::parse(node, &KINDS, now)
}

pub fn is_snapshot(framed: &FramedBody<'_, '_>) -> bool {
    framed.msg_type == "session.snapshot"
}

pub fn parse(framed: &FramedBody<'_, '_>, rules: &EventRules) -> Result<SessionReport> {
    let mut body = MemberReader::new(framed.envelope.body, "/body")?;
    let kind = body.one_of("eventType", &EVENT_TYPES)?;
    if kind != framed.msg_type {
        let expected = format!("{}, as msgType says", framed.msg_type);
        return Err(body.refusal("eventType", expected).into());
    }
    let session_id = body.id("sessionId")?;
    let (at, event) = match kind {
        "session.start" => read_start(&mut body, rules)?,
        "session.status" => {
            let event = SessionEvent::Status {
                state: body.word("state")?,
                details: text_of(&mut body, "details")?,
            };
            (body.past_timestamp("updatedAt", rules.latest)?, event)
        }
        "session.end" => {
            let event = SessionEvent::End {
                reason: body.word("reason")?,
                metadata: text_of(&mut body, "metadata")?,
            };
            (body.past_timestamp("endedAt", rules.latest)?, event)
        }
        _ => return read_snapshot(body, session_id, framed, rules),
    };
    body.finish()?;
    Ok(SessionReport {
        session_id,
        at,
        hash: Sha256Hex::of(canonical(framed.envelope.body).as_bytes()),
        event,
    })
}

fn read_start(
    body: &mut MemberReader<'_, '_>,
    rules: &EventRules,
) -> ReadResult<(Timestamp, SessionEvent)> {
    let at = body.past_timestamp("createdAt", rules.latest)?;
    let agent_host = body.bounded_str("agentHost", 0, MAX_WORD_CHARS)?.to_owned();
    let repo_ref = body.optional_str("repoRef")?.map(str::to_owned);
    if repo_ref
        .as_ref()
        .is_some_and(|text| is_longer(text, MAX_WORD_CHARS))
    {
        let expected = format!("a string of 0 to {MAX_WORD_CHARS} characters");
        return Err(body.refusal("repoRef", expected));
    }
    let event = SessionEvent::Start {
        agent_host,
        repo_ref,
        metadata: text_of(body, "metadata")?,
    };
    Ok((at, event))
}

fn read_snapshot(
    mut body: MemberReader<'_, '_>,
    session_id: SessionId,
    framed: &FramedBody<'_, '_>,
    rules: &EventRules,
) -> Result<SessionReport> {
    let event = SessionEvent::Snapshot {
        snapshot_id: body.id("snapshotId")?,
        snapshot_type: body.word("snapshotType")?,
        body: framed.envelope.body.raw.to_owned(),
    };
    let at = body.past_timestamp("createdAt", rules.latest)?;
    let payload_bytes = body.nested("payload")?.raw.len();
    body.constant("snapshotHashAlg", "SHA-256")?;
    let hash = body.hash("snapshotHash")?;
    body.optional_nested("metadata")?;
    let object = body.object();
    body.finish()?;
    if payload_bytes > rules.max_payload {
        return Err(Error::PayloadTooLarge {
            pointer: "/body/payload",
            limit: rules.max_payload,
        });
    }
    if Sha256Hex::of(canonical_without(object, "snapshotHash").as_bytes()) != hash {
        return Err(Error::SnapshotHash);
    }
    Ok(SessionReport {
        session_id,
        at,
        hash,
        event,
    })
}

fn text_of(body: &mut MemberReader<'_, '_>, name: &'static str) -> ReadResult<Option<String>> {
    Ok(body.optional_nested(name)?.map(|node| node.raw.to_owned()))
}
