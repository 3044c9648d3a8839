//! Session events: what the agent beside an enforcer does, as it reports it; and the judgement of what a report met.
//! Events may come in any order and more than once: the latest state stands, and an end is the end.

mod judge;

pub use self::judge::{ReportFact, ReportRefusal, Reported, Standing, judge_report};

use super::canonical::{Sha256Hex, canonical, canonical_without};
use super::framing::{Framed, Framing, Kinds};
use super::id::{SessionId, SnapshotId};
use super::json::Node;
use super::reader::{Invalid, Reader};
use super::timestamp::Timestamp;

const EVENT_TYPES: [&str; 4] = [
    "session.start",
    "session.snapshot",
    "session.status",
    "session.end",
];

const KINDS: Kinds = Kinds {
    allowed: &EVENT_TYPES,
    bare: |object| {
        let stated = object.get("eventType").and_then(|node| node.as_str());
        let known = EVENT_TYPES.iter().find(|kind| Some(**kind) == stated);
        known.copied().unwrap_or_default()
    },
    about: "sessionId",
};

/// Longest host and repository reference: they stand in rows that are to stay small.
pub const MAX_WORD_CHARS: usize = 1_024;

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal),+ $(,)? })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[expect(missing_docs, reason = "each variant is the word it stands for")]
        pub enum $name { $($variant),+ }

        impl $name {
            pub const WORDS: &[&str] = &[$($word),+];

            /// The word for it, on the wire and in the database.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            #[must_use]
            pub fn parse(word: &str) -> Option<Self> {
                [$(Self::$variant),+].into_iter().find(|known| known.as_str() == word)
            }

            fn read(reader: &mut Reader<'_, '_>, name: &'static str) -> Result<Self, Invalid> {
                let word = reader.one_of(name, Self::WORDS)?;
                Self::parse(word).ok_or_else(|| Invalid::shape(reader.at(name), "a known word"))
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    )+};
}

words! {
    State {
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

/// What happened. Texts of objects are the sender's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
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
        state: State,
        details: Option<String>,
    },
    End {
        reason: EndReason,
        metadata: Option<String>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub session_id: SessionId,
    /// When it happened, by the sender's clock.
    pub at: Timestamp,
    /// By which a repeat is told from another event: a snapshot's own hash, else that of the canonical event.
    pub hash: Sha256Hex,
    pub event: Event,
}

/// What a parser of events needs to know of the gateway's settings.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// The latest time an event may claim.
    pub latest: Timestamp,
    /// Largest snapshot payload, in bytes of its text.
    pub max_payload: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventError {
    Invalid(Invalid),
    /// The snapshot is not what its hash says.
    HashMismatch,
    TooLarge {
        pointer: &'static str,
        /// The limit, in bytes.
        limit: usize,
    },
}

impl From<Invalid> for EventError {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

pub fn unframe<'n, 'a>(node: &'n Node<'a>, now: Timestamp) -> Result<Framed<'n, 'a>, Invalid> {
    // A bare object that is no event is refused for that, before anything else that it lacks.
    if node
        .as_object()
        .is_some_and(|object| Framing::of(object) == Framing::Bare)
    {
        Reader::new(node, "/body")?.one_of("eventType", &EVENT_TYPES)?;
    }
    Framed::parse(node, &KINDS, now)
}

/// Whether a message may be as long as a snapshot.
#[must_use]
pub fn is_snapshot(framed: &Framed<'_, '_>) -> bool {
    framed.msg_type == "session.snapshot"
}

pub fn parse(framed: &Framed<'_, '_>, rules: &Rules) -> Result<Report, EventError> {
    let mut body = Reader::new(framed.envelope.body, "/body")?;
    let kind = body.one_of("eventType", &EVENT_TYPES)?;
    if kind != framed.msg_type {
        let expected = format!("{}, as msgType says", framed.msg_type);
        return Err(Invalid::shape(body.at("eventType"), expected).into());
    }
    let session_id = body.id("sessionId")?;
    let (at, event) = match kind {
        "session.start" => read_start(&mut body, rules)?,
        "session.status" => read_status(&mut body, rules)?,
        "session.end" => read_end(&mut body, rules)?,
        _ => return read_snapshot(body, session_id, framed, rules),
    };
    body.finish()?;
    Ok(Report {
        session_id,
        at,
        hash: Sha256Hex::of(canonical(framed.envelope.body).as_bytes()),
        event,
    })
}

fn read_start(body: &mut Reader<'_, '_>, rules: &Rules) -> Result<(Timestamp, Event), Invalid> {
    let at = time(body, "createdAt", rules)?;
    let agent_host = body.bounded_str("agentHost", 0, MAX_WORD_CHARS)?.to_owned();
    let repo_ref = body.optional_str("repoRef")?.map(str::to_owned);
    if let Some(text) = &repo_ref
        && text.chars().nth(MAX_WORD_CHARS).is_some()
    {
        return Err(Invalid::shape(
            body.at("repoRef"),
            format!("a string of 0 to {MAX_WORD_CHARS} characters"),
        ));
    }
    let event = Event::Start {
        agent_host,
        repo_ref,
        metadata: text_of(body, "metadata")?,
    };
    Ok((at, event))
}

fn read_status(body: &mut Reader<'_, '_>, rules: &Rules) -> Result<(Timestamp, Event), Invalid> {
    let event = Event::Status {
        state: State::read(body, "state")?,
        details: text_of(body, "details")?,
    };
    Ok((time(body, "updatedAt", rules)?, event))
}

fn read_end(body: &mut Reader<'_, '_>, rules: &Rules) -> Result<(Timestamp, Event), Invalid> {
    let event = Event::End {
        reason: EndReason::read(body, "reason")?,
        metadata: text_of(body, "metadata")?,
    };
    Ok((time(body, "endedAt", rules)?, event))
}

fn read_snapshot(
    mut body: Reader<'_, '_>,
    session_id: SessionId,
    framed: &Framed<'_, '_>,
    rules: &Rules,
) -> Result<Report, EventError> {
    let event = Event::Snapshot {
        snapshot_id: body.id("snapshotId")?,
        snapshot_type: SnapshotType::read(&mut body, "snapshotType")?,
        body: framed.envelope.body.raw.to_owned(),
    };
    let at = time(&mut body, "createdAt", rules)?;
    let payload_bytes = body.nested("payload")?.raw.len();
    body.constant("snapshotHashAlg", "SHA-256")?;
    let hash = body.hash("snapshotHash")?;
    body.optional_nested("metadata")?;
    let object = body.object();
    body.finish()?;
    if payload_bytes > rules.max_payload {
        return Err(EventError::TooLarge {
            pointer: "/body/payload",
            limit: rules.max_payload,
        });
    }
    if Sha256Hex::of(canonical_without(object, "snapshotHash").as_bytes()) != hash {
        return Err(EventError::HashMismatch);
    }
    Ok(Report {
        session_id,
        at,
        hash,
        event,
    })
}

/// When something happened: not in the future.
fn time(
    body: &mut Reader<'_, '_>,
    name: &'static str,
    rules: &Rules,
) -> Result<Timestamp, Invalid> {
    let at = body.timestamp(name)?;
    if at > rules.latest {
        return Err(Invalid::timestamp(
            body.at(name),
            "a time that is not in the future",
        ));
    }
    Ok(at)
}

fn text_of(body: &mut Reader<'_, '_>, name: &'static str) -> Result<Option<String>, Invalid> {
    Ok(body.optional_nested(name)?.map(|node| node.raw.to_owned()))
}
