//! Session events, and sessions as they are read.

use serde_json::{Value, json};

use super::super::Context;
use super::super::schema::{
    Member, any_object, hash, id, list, meaning, object, one_of, shared, text, text_of, time, word,
};
use super::envelope::{self, From};
use super::{ENFORCER, SESSION, hashed};
use crate::protocol::session::{EndReason, MAX_WORD_CHARS, SessionState, SnapshotType};

/// The schemas that others refer to.
pub fn shared_schemas(context: &Context<'_>) -> Vec<Member> {
    let host = text_of(0, MAX_WORD_CHARS);
    let payload = format!(
        "at most {} bytes of JSON",
        context.config.limits.snapshot_bytes
    );
    vec![
        (
            "SessionStart",
            object(
                [
                    ("eventType", word("session.start")),
                    ("sessionId", id()),
                    ("createdAt", time()),
                    ("agentHost", host.clone()),
                ],
                [("repoRef", host), ("metadata", any_object())],
            ),
        ),
        (
            "SessionStatus",
            object(
                [
                    ("eventType", word("session.status")),
                    ("sessionId", id()),
                    (
                        "state",
                        one_of(&SessionState::ALL.map(SessionState::as_str)),
                    ),
                    ("updatedAt", time()),
                ],
                [("details", any_object())],
            ),
        ),
        (
            "SessionSnapshot",
            object(
                [
                    ("eventType", word("session.snapshot")),
                    ("sessionId", id()),
                    ("snapshotId", id()),
                    (
                        "snapshotType",
                        one_of(&SnapshotType::ALL.map(SnapshotType::as_str)),
                    ),
                    ("createdAt", time()),
                    ("payload", meaning(any_object(), &payload)),
                    ("snapshotHashAlg", word("SHA-256")),
                    (
                        "snapshotHash",
                        meaning(hash(), "over the canonical event without this member"),
                    ),
                ],
                [("metadata", any_object())],
            ),
        ),
        (
            "SessionEnd",
            object(
                [
                    ("eventType", word("session.end")),
                    ("sessionId", id()),
                    ("reason", one_of(&EndReason::ALL.map(EndReason::as_str))),
                    ("endedAt", time()),
                ],
                [("metadata", any_object())],
            ),
        ),
    ]
}

/// What the session endpoint takes: each kind of event, bare or in either Envelope.
pub fn taken() -> Value {
    let kinds = [
        ("session.start", "SessionStart"),
        ("session.status", "SessionStatus"),
        ("session.snapshot", "SessionSnapshot"),
        ("session.end", "SessionEnd"),
    ];
    let bare = kinds.map(|(_, event)| shared(event));
    let core = kinds.map(|(kind, event)| envelope::core(&[kind], shared(event)));
    let wire = kinds.map(|(kind, event)| envelope::sent(kind, From::Either, shared(event)));
    let forms = [bare, core, wire].concat();
    json!({ "oneOf": forms })
}

/// A session as it is read.
pub fn read() -> Value {
    let snapshot = object(
        [
            ("snapshotId", id()),
            (
                "snapshotType",
                one_of(&SnapshotType::ALL.map(SnapshotType::as_str)),
            ),
            ("snapshotHash", hash()),
            ("createdAt", time()),
        ],
        [],
    );
    let mut snapshots = list(snapshot);
    snapshots["maxItems"] = 20.into();
    object(
        [
            ("sessionId", id()),
            ("enforcerId", id()),
            (
                "state",
                one_of(&SessionState::ALL.map(SessionState::as_str)),
            ),
            ("updatedAt", time()),
            ("snapshots", meaning(snapshots, "the newest")),
        ],
        [
            ("agentHost", text()),
            ("repoRef", text()),
            ("startedAt", time()),
            ("endedAt", time()),
            ("reason", one_of(&EndReason::ALL.map(EndReason::as_str))),
            ("metadata", any_object()),
        ],
    )
}

/// The answer to an event.
pub fn reported() -> Value {
    let state = one_of(&SessionState::ALL.map(SessionState::as_str));
    let members = [
        ("sessionId", id()),
        ("state", state),
        ("duplicate", super::super::schema::flag()),
    ];
    object(members, [])
}

/// Examples: a session from its start to its end.
pub fn examples(context: &Context<'_>) -> [(&'static str, Value); 4] {
    let at = context.earlier();
    let start = json!({
        "eventType": "session.start", "sessionId": SESSION, "createdAt": at, "agentHost": "laptop-7",
        "repoRef": "repo:acme/widgets", "metadata": { "enforcerId": ENFORCER },
    });
    let status = json!({
        "eventType": "session.status", "sessionId": SESSION, "state": "planning", "updatedAt": at,
    });
    let snapshot = hashed(
        json!({
            "eventType": "session.snapshot", "sessionId": SESSION, "snapshotId": "plan-1", "snapshotType": "plan",
            "createdAt": at, "payload": { "steps": 3 }, "snapshotHashAlg": "SHA-256",
        }),
        "snapshotHash",
    );
    let end = json!({ "eventType": "session.end", "sessionId": SESSION, "reason": "user_end", "endedAt": at });
    let sender = json!({ "enforcerId": ENFORCER });
    let snapshot = envelope::from(context, "session.snapshot", SESSION, &sender, &snapshot);
    let core = |body: Value| {
        json!({
            "envelopeId": "e-1", "msgType": body["eventType"], "createdAt": at, "body": body,
            "sender": { "actor": "HE", "deviceId": ENFORCER },
            "recipient": { "actor": "GW", "deviceId": "countersign" },
        })
    };
    [
        ("1-start", start),
        ("2-status", core(status)),
        ("3-snapshot", snapshot),
        ("4-end", end),
    ]
}

/// An example of a session as it is read.
pub fn read_example(context: &Context<'_>) -> Value {
    let at = context.earlier();
    json!({
        "sessionId": SESSION, "enforcerId": ENFORCER, "agentHost": "laptop-7", "repoRef": "repo:acme/widgets",
        "state": "planning", "startedAt": at, "updatedAt": at, "snapshots": [],
    })
}
