//! Decisions: the full and the compact form.

use serde_json::{Value, json};

use super::super::Context;
use super::super::schema::{
    Member, any_object, either, hash, id, meaning, object, one_of, pattern, shared, text, text_of,
    time, word,
};
use super::{APPROVER, DECIDED, ENFORCER, HASH, OPEN, SIGNATURE, artifact, envelope};
use crate::protocol::decision::{MAX_NONCE_CHARS, SCOPES};

fn signed() -> [Member; 5] {
    let signature = pattern("^[0-9A-Za-z_-]{85}[AQgw]={0,2}$");
    [
        ("artifactHash", hash()),
        ("decision", one_of(&["approve", "reject"])),
        ("signerKeyId", id()),
        ("nonce", text_of(1, MAX_NONCE_CHARS)),
        (
            "signature",
            meaning(
                signature,
                "Ed25519 over the canonical body without this member, in base64url",
            ),
        ),
    ]
}

fn full() -> Value {
    let [about, verdict, key, nonce, signature] = signed();
    let members = [
        about,
        verdict,
        key,
        nonce,
        signature,
        ("requestId", id()),
        ("artifactHashAlg", word("SHA-256")),
        ("repoRef", text()),
        ("scope", one_of(&SCOPES)),
        ("expiresAt", time()),
        ("sigAlg", word("Ed25519")),
    ];
    meaning(object(members, [("policyHints", any_object())]), "full")
}

fn compact() -> Value {
    let optional = [("reason", text()), ("decisionHash", hash())];
    meaning(object(signed(), optional), "compact")
}

fn compact_alone() -> Value {
    let [about, verdict, key, nonce, signature] = signed();
    let members = [about, verdict, key, nonce, signature, ("requestId", id())];
    let optional = [("reason", text()), ("decisionHash", hash())];
    meaning(object(members, optional), "compact, in any other framing")
}

/// The schemas that others refer to.
pub fn shared_schemas() -> Vec<Member> {
    vec![
        ("FullDecision", full()),
        ("CompactDecision", compact()),
        ("CompactDecisionAlone", compact_alone()),
    ]
}

/// The body of `decision.submit`, where the Envelope says what it is about or the body does.
pub fn submitted(alone: bool) -> Value {
    let compact = if alone {
        "CompactDecisionAlone"
    } else {
        "CompactDecision"
    };
    either([shared("FullDecision"), shared(compact)])
}

/// A decision body that is handed on as it came, from whichever call.
pub fn delivered() -> Value {
    either([
        shared("FullDecision"),
        shared("CompactDecision"),
        shared("CompactDecisionAlone"),
    ])
}

/// An example of the compact form.
pub fn compact_example() -> Value {
    json!({
        "artifactHash": HASH, "decision": "approve", "signerKeyId": "laptop", "nonce": "nonce-1", "signature": SIGNATURE,
    })
}

/// An example of the full form, on the open Artifact.
pub fn full_example(context: &Context<'_>) -> Value {
    let artifact = artifact::open_example(context);
    json!({
        "requestId": OPEN, "artifactHash": artifact["artifactHash"], "artifactHashAlg": "SHA-256",
        "repoRef": artifact["repoRef"], "decision": "reject", "scope": "once", "expiresAt": context.later(),
        "sigAlg": "Ed25519", "signerKeyId": "laptop", "nonce": "nonce-2", "signature": SIGNATURE,
    })
}

/// The envelope of an example.
pub fn example(context: &Context<'_>, request: &str, body: &Value) -> Value {
    let sender = json!({ "approverId": APPROVER });
    envelope::from(context, "decision.submit", request, &sender, body)
}

/// An example of a `decision.deliver`.
pub fn delivery_example(context: &Context<'_>) -> Value {
    let body = compact_example();
    let mut delivery = envelope::answer_until(context, "decision.deliver", DECIDED, &body);
    delivery["sender"]["approverId"] = APPROVER.into();
    delivery["recipient"] = json!({ "enforcerId": ENFORCER });
    delivery
}
