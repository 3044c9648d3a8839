//! Envelopes: the wire Envelope as clients send it and as the gateway prints it, and the core Envelope.

use serde_json::{Value, json};

use super::super::Context;
use super::super::schema::{
    any_object, either, id, meaning, object, one_of, shared, text, text_of, time, word,
};

/// Who an envelope must say that it is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// An enforcer.
    Enforcer,
    /// An approver.
    Approver,
    /// Whoever the credential is bound to, unless it says so.
    Either,
}

/// A wire Envelope that a client sends.
pub fn sent(msg_type: &str, from: From, body: Value) -> Value {
    let ids = || {
        object(
            [],
            [
                ("enforcerId", id()),
                ("approverId", id()),
                ("gatewayId", text()),
            ],
        )
    };
    let mut sender = ids();
    match from {
        From::Enforcer => sender["required"] = json!(["enforcerId"]),
        From::Approver => sender["required"] = json!(["approverId"]),
        From::Either => {}
    }
    let message = json!({ "type": "string", "minLength": 1 });
    object(
        [
            ("msgType", word(msg_type)),
            ("requestId", id()),
            ("createdAt", time()),
            ("sender", sender),
            ("body", body),
        ],
        [
            ("msgId", message),
            ("expiresAt", meaning(time(), "the body's own, if at all")),
            (
                "recipient",
                object([], [("enforcerId", id()), ("approverId", id())]),
            ),
            ("trace", meaning(any_object(), "passed on untouched")),
        ],
    )
}

/// A core Envelope.
pub fn core(msg_types: &[&str], body: Value) -> Value {
    let actor = |codes: &[&str]| object([("actor", one_of(codes)), ("deviceId", id())], []);
    let gateway = object([("actor", word("GW")), ("deviceId", text())], []);
    let msg_type = match msg_types {
        [one] => word(one),
        many => one_of(many),
    };
    object(
        [
            ("envelopeId", text_of(1, 1_024)),
            ("msgType", msg_type),
            ("sender", actor(&["HE", "MA"])),
            ("recipient", either([actor(&["HE", "MA"]), gateway])),
            ("createdAt", time()),
            ("body", body),
        ],
        [("trace", any_object())],
    )
}

/// An Envelope that the gateway prints.
pub fn printed(msg_type: &str, body: Value) -> Value {
    let sender = object(
        [("gatewayId", text())],
        [("enforcerId", id()), ("approverId", id())],
    );
    object(
        [
            ("msgId", shared("Uuid")),
            ("msgType", word(msg_type)),
            (
                "requestId",
                meaning(
                    id(),
                    "the exchange; or the HTTP request, where there is none",
                ),
            ),
            ("createdAt", time()),
            ("sender", sender),
            ("body", body),
        ],
        [
            ("expiresAt", time()),
            (
                "recipient",
                object([], [("enforcerId", id()), ("approverId", id())]),
            ),
            ("trace", any_object()),
        ],
    )
}

/// An example of an Envelope from a client.
pub fn from(
    context: &Context<'_>,
    msg_type: &str,
    request: &str,
    sender: &Value,
    body: &Value,
) -> Value {
    json!({
        "msgType": msg_type, "requestId": request, "createdAt": context.earlier(), "sender": sender, "body": body,
    })
}

/// An example of an Envelope from the gateway.
pub fn answer(context: &Context<'_>, msg_type: &str, request: &str, body: &Value) -> Value {
    json!({
        "msgId": super::MESSAGE, "msgType": msg_type, "requestId": request, "createdAt": context.earlier(),
        "sender": { "gatewayId": context.config.server.gateway_id }, "body": body,
    })
}

/// The same, with the time at which the exchange ends.
pub fn answer_until(context: &Context<'_>, msg_type: &str, request: &str, body: &Value) -> Value {
    let mut envelope = answer(context, msg_type, request, body);
    envelope["expiresAt"] = context.later().into();
    envelope
}
