//! What pairing takes and answers.

use serde_json::{Value, json};

use super::super::Context;
use super::super::schema::{Member, id, meaning, object, one_of, pattern, text, text_of, time};
use super::{APPROVER, ENFORCER};
use crate::protocol::pairing::{MAX_KEY_CHARS, MAX_LABEL_CHARS};

/// A nonce of the examples: 256 bits in base64url.
pub const NONCE: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
/// A token of the examples.
pub const TOKEN: &str = "hT8kQ2m1vZ0yq3b5c7d9e1f3g5h7i9j1k3l5m7n9o1A";

fn nonce() -> Value {
    meaning(
        pattern("^[0-9A-Za-z_-]{43}$"),
        "the attempt: 256 bits in base64url",
    )
}

fn labels() -> [Member; 2] {
    [("enforcerLabel", text()), ("workspaceName", text())]
}

/// The body of `initiate`.
pub fn initiate() -> Value {
    let label = text_of(0, MAX_LABEL_CHARS);
    object(
        [("enforcerId", id())],
        [
            ("enforcerLabel", label.clone()),
            ("workspaceName", label),
            ("publicKey", text_of(0, MAX_KEY_CHARS)),
        ],
    )
}

/// An example of it.
pub fn initiate_example() -> Value {
    json!({ "enforcerId": ENFORCER, "enforcerLabel": "The build bot", "workspaceName": "widgets" })
}

/// What was begun.
pub fn initiated() -> Value {
    let code = pattern("^[0-9A-HJKMNP-TV-Z]{4}-[0-9A-HJKMNP-TV-Z]{4}$");
    let members = [
        ("code", meaning(code, "for the approver to type")),
        ("nonce", nonce()),
        ("expiresAt", time()),
    ];
    object(members, [])
}

/// Who asks.
pub fn resolved() -> Value {
    let [label, workspace] = labels();
    object(
        [("nonce", nonce())],
        [label, workspace, ("publicKey", text())],
    )
}

/// The body of `complete`.
pub fn complete() -> Value {
    object(
        [("nonce", text()), ("approverId", id())],
        [("publicKey", text_of(0, MAX_KEY_CHARS))],
    )
}

/// An example of it.
pub fn complete_example() -> Value {
    json!({ "nonce": NONCE, "approverId": APPROVER })
}

/// What was completed.
pub fn completed() -> Value {
    object([("routingToken", text())], labels())
}

/// How far an attempt has come.
pub fn status() -> Value {
    let words = one_of(&["pending", "resolved", "completed", "expired"]);
    object(
        [("nonce", nonce()), ("status", words), ("expiresAt", time())],
        [
            ("approverId", id()),
            ("publicKey", meaning(text(), "the approver's")),
            ("routingToken", meaning(text(), "while it is good")),
        ],
    )
}

/// A pairing in force.
pub fn line() -> Value {
    let [label, workspace] = labels();
    object(
        [
            ("enforcerId", id()),
            ("approverId", id()),
            ("pairedAt", time()),
        ],
        [
            label,
            workspace,
            ("enforcerPublicKey", text()),
            ("approverPublicKey", text()),
            ("routingToken", text()),
        ],
    )
}

/// An example of a pairing in force.
pub fn line_example(context: &Context<'_>) -> Value {
    json!({
        "enforcerId": ENFORCER, "approverId": APPROVER, "enforcerLabel": "The build bot", "workspaceName": "widgets",
        "routingToken": TOKEN, "pairedAt": context.earlier(),
    })
}
