//! The small bodies: acknowledgements, withdrawals, refreshes, errors, and what is answered to submissions and decisions.

use serde_json::{Value, json};

use super::super::Context;
use super::super::schema::{
    Member, and_more, flag, hash, id, meaning, object, one_of, shared, text, text_of, time,
};
use super::decision::delivered;
use super::{APPROVER, DECIDED, ENFORCER, MESSAGE, envelope};
use crate::protocol::exchange::ExchangeState;
use crate::protocol::presence::MAX_NAME_CHARS;
use crate::protocol::refresh::MAX_REASON_CHARS;

/// A state of an exchange.
pub fn state() -> Value {
    one_of(&ExchangeState::ALL.map(ExchangeState::as_str))
}

/// A body that holds at most a reason.
pub fn reason() -> Value {
    object([], [("reason", text_of(0, MAX_REASON_CHARS))])
}

/// The body of `ack.submit`.
pub fn ack() -> Value {
    object(
        [
            (
                "msgId",
                meaning(text_of(1, 128), "of the message that was received"),
            ),
            (
                "status",
                meaning(one_of(&["received", "processed"]), "either ends redelivery"),
            ),
            ("ackAt", time()),
        ],
        [],
    )
}

/// The body of `ack.accepted`.
pub fn ack_accepted() -> Value {
    let status = one_of(&["received", "processed"]);
    object([("msgId", shared("Uuid")), ("status", status)], [])
}

/// The body of `artifact.accepted`.
pub fn artifact_accepted() -> Value {
    let members = [
        ("requestId", id()),
        ("state", state()),
        ("expiresAt", time()),
        ("duplicate", flag()),
    ];
    object(members, [])
}

/// The body of `decision.accepted`.
pub fn decision_accepted() -> Value {
    let members = [
        ("requestId", id()),
        ("state", state()),
        ("decision", one_of(&["approve", "reject"])),
        (
            "verified",
            meaning(flag(), "whether the gateway verified the signature"),
        ),
        ("duplicate", flag()),
    ];
    object(members, [])
}

/// What the generic endpoints answer.
pub fn accepted() -> Value {
    let members = [
        ("requestId", id()),
        ("state", state()),
        ("duplicate", flag()),
    ];
    object(members, [])
}

/// The body of `exchange.status`.
pub fn status() -> Value {
    object(
        [
            ("requestId", id()),
            ("state", state()),
            ("createdAt", meaning(time(), "when the gateway accepted it")),
            ("expiresAt", time()),
            ("artifactHash", hash()),
        ],
        [("decision", meaning(delivered(), "verbatim"))],
    )
}

/// The body of `exchange.withdrawn` as the gateway prints it.
pub fn withdrawn() -> Value {
    object(
        [
            ("requestId", id()),
            ("state", one_of(&["withdrawn", "cancelled"])),
            ("withdrawnAt", time()),
        ],
        [("reason", text())],
    )
}

/// `hello`.
pub fn hello() -> Value {
    let name = text_of(0, MAX_NAME_CHARS);
    object(
        [("msgType", super::super::schema::word("hello"))],
        [
            ("enforcerLabel", name.clone()),
            ("workspaceName", name),
            ("capabilities", capabilities()),
        ],
    )
}

/// What a client can do.
pub fn capabilities() -> Value {
    object([], [("push", flag()), ("poll", flag()), ("sse", flag())])
}

/// The schemas of errors.
pub fn shared_schemas() -> Vec<Member> {
    let details = object(
        [],
        [
            (
                "pointer",
                meaning(text(), "JSON Pointer of the member that was wrong"),
            ),
            (
                "parameter",
                meaning(text(), "the query parameter or header that was wrong"),
            ),
            ("expected", meaning(text(), "what should have stood there")),
            ("limit", json!({ "type": "integer" })),
            ("state", text()),
            (
                "conflict",
                one_of(&["AlreadyExistsConflict", "AlreadyDecidedConflict"]),
            ),
        ],
    );
    let error = object(
        [
            ("code", text()),
            ("message", text()),
            (
                "retryable",
                meaning(flag(), "whether the same call may succeed later"),
            ),
        ],
        [
            (
                "requestId",
                meaning(id(), "the exchange it is about, in an Envelope"),
            ),
            ("details", and_more(details)),
        ],
    );
    vec![
        ("Error", error),
        ("ErrorEnvelope", envelope::printed("error", shared("Error"))),
    ]
}

/// An example of an acknowledgement in its envelope.
pub fn ack_example(context: &Context<'_>) -> Value {
    let body = json!({ "msgId": MESSAGE, "status": "processed", "ackAt": context.earlier() });
    envelope::from(
        context,
        "ack.submit",
        DECIDED,
        &json!({ "enforcerId": ENFORCER }),
        &body,
    )
}

/// An example of a `refresh.request`, as it is queued.
pub fn refresh_example(context: &Context<'_>) -> Value {
    let body = json!({ "reason": "please submit again" });
    let mut queued = envelope::answer(context, "refresh.request", super::REFRESHED, &body);
    queued["sender"]["approverId"] = APPROVER.into();
    queued["recipient"] = json!({ "enforcerId": ENFORCER });
    queued
}

/// An example of an `exchange.withdrawn`.
pub fn withdrawn_example(context: &Context<'_>) -> Value {
    let body = json!({
        "requestId": super::WITHDRAWN, "state": "withdrawn", "withdrawnAt": context.earlier(), "reason": "no longer needed",
    });
    envelope::answer_until(context, "exchange.withdrawn", super::WITHDRAWN, &body)
}
