//! The messages clients send.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign::protocol::canonical::{Sha256Hex, canonical_without};
use countersign::protocol::id::TenantId;
use countersign::protocol::json;
use ed25519_dalek::{Signer as _, SigningKey};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A hash for sealed artifacts, which the gateway cannot check.
pub const HASH: &str = "8e326e1f69e5859a3b5b12965f06b5829f09b12d1748aa2fddb609fb44f831c1";
/// Another.
pub const OTHER_HASH: &str = "0b18f65f2e4d81b0bbfa89267138163a439ee2381393f95b41f01fbdfdbabd50";

/// A random UUID.
pub fn request_id() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("randomness");
    uuid::Builder::from_random_bytes(bytes)
        .into_uuid()
        .to_string()
}

/// The real time, moved.
#[expect(
    clippy::disallowed_methods,
    reason = "clients have clocks of their own"
)]
pub fn in_time(ahead: i64) -> String {
    let at = OffsetDateTime::now_utc() + time::Duration::seconds(ahead);
    at.format(&Rfc3339).expect("a time")
}

/// The real time.
pub fn now() -> String {
    in_time(0)
}

/// An envelope.
#[expect(
    clippy::needless_pass_by_value,
    reason = "most callers make the parts on the spot"
)]
pub fn envelope(msg_type: &str, request: &str, sender: Value, body: Value) -> Value {
    json!({ "msgType": msg_type, "requestId": request, "createdAt": now(), "sender": sender, "body": body })
}

/// A sealed artifact that lives an hour.
pub fn sealed() -> Value {
    sealed_for(Duration::from_secs(3_600))
}

/// A sealed artifact that lives this long.
pub fn sealed_for(life: Duration) -> Value {
    let millis = i64::try_from(life.as_millis()).expect("a short life");
    json!({
        "artifactType": "command.review",
        "artifactHash": HASH,
        "ciphertext": { "alg": "A256GCM", "data": "c2VhbGVk", "nonce": "bm9uY2U" },
        "expiresAt": in_millis(millis),
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "clients have clocks of their own"
)]
fn in_millis(ahead: i64) -> String {
    let at = OffsetDateTime::now_utc() + time::Duration::milliseconds(ahead);
    at.format(&Rfc3339).expect("a time")
}

/// An open artifact, with its hash.
pub fn open(request: &str) -> Value {
    hashed(json!({
        "requestId": request,
        "artifactType": "plan.review",
        "repoRef": "repo:acme/widgets",
        "createdAt": now(),
        "expiresAt": in_time(3_600),
        "payload": { "kind": "plan", "steps": ["one", "two"] },
        "artifactHashAlg": "SHA-256",
    }))
}

/// An open artifact with its hash put right.
pub fn hashed(mut artifact: Value) -> Value {
    artifact
        .as_object_mut()
        .expect("an object")
        .remove("artifactHash");
    artifact["artifactHash"] = json!(hash_of(&artifact.to_string(), "artifactHash"));
    artifact
}

/// The hash over the canonical form of an object's text without one member.
pub fn hash_of(text: &str, without: &str) -> String {
    let node = json::parse(text.as_bytes()).expect("strict JSON");
    Sha256Hex::of(canonical_without(node.as_object().expect("an object"), without).as_bytes())
        .to_string()
}

/// A compact decision with a signature that is well-formed and means nothing.
pub fn compact(verdict: &str) -> Value {
    json!({
        "artifactHash": HASH,
        "decision": verdict,
        "signerKeyId": "key-1",
        "nonce": request_id(),
        "signature": URL_SAFE_NO_PAD.encode([7; 64]),
    })
}

/// A full decision on an artifact, unsigned.
pub fn full(request: &str, hash: &str) -> Value {
    json!({
        "requestId": request,
        "artifactHashAlg": "SHA-256",
        "artifactHash": hash,
        "repoRef": "repo:acme/widgets",
        "decision": "approve",
        "scope": "once",
        "expiresAt": in_time(600),
        "nonce": request_id(),
        "sigAlg": "Ed25519",
        "signerKeyId": "key-1",
        "signature": URL_SAFE_NO_PAD.encode([7; 64]),
    })
}

/// An approver's signing key, by a number.
pub fn signing_key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

/// Its public half, as it is registered.
pub fn public_key(key: &SigningKey) -> String {
    URL_SAFE_NO_PAD.encode(key.verifying_key().as_bytes())
}

/// Registers an approver's key, with the proof of possession.
pub fn registration(tenant: &TenantId, approver: &str, id: &str, key: &SigningKey) -> Value {
    let (public, nonce, created_at) = (public_key(key), request_id(), now());
    let purpose = "countersign-key-registration-v1";
    let text = [
        purpose,
        tenant.as_str(),
        approver,
        id,
        &public,
        &nonce,
        &created_at,
    ]
    .join("\n");
    let signature = URL_SAFE_NO_PAD.encode(key.sign(text.as_bytes()).to_bytes());
    let proof = json!({ "nonce": nonce, "createdAt": created_at, "signature": signature });
    json!({ "publicKey": public, "proof": proof })
}

/// A decision, signed.
pub fn signed(mut decision: Value, key: &SigningKey) -> Value {
    let text = decision.to_string();
    let node = json::parse(text.as_bytes()).expect("strict JSON");
    let signable = canonical_without(node.as_object().expect("an object"), "signature");
    decision["signature"] = json!(URL_SAFE_NO_PAD.encode(key.sign(signable.as_bytes()).to_bytes()));
    decision
}

/// The value with one member set, by JSON Pointer.
pub fn with(value: &Value, pointer: &str, member: Value) -> Value {
    let mut value = value.clone();
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    let name = name.replace("~1", "/");
    match value.pointer_mut(parent).expect("a parent") {
        Value::Object(object) => {
            object.insert(name, member);
        }
        Value::Array(items) => items[name.parse::<usize>().expect("an index")] = member,
        other => panic!("no member fits into {other}"),
    }
    value
}

/// The value without one member, by JSON Pointer.
pub fn without(value: &Value, pointer: &str) -> Value {
    let mut value = value.clone();
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    let parent = value.pointer_mut(parent).expect("a parent");
    let removed = parent.as_object_mut().expect("an object").remove(name);
    assert!(removed.is_some(), "there is no {pointer}");
    value
}

/// A time as the gateway prints it.
pub fn printed(time: &Value) -> String {
    let time = time.as_str().expect("a time");
    countersign::protocol::timestamp::Timestamp::parse(time)
        .expect("a time")
        .to_string()
}
