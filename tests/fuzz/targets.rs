//! Checks of arbitrary bytes: each reading ends, never panics, and accepts only texts with one
//! meaning. The fuzzer runs them on its inputs, and the tests on the corpus that it left behind.

#[path = "second.rs"]
mod second;

use super::subject::artifact::{self, ArtifactRules};
use super::subject::canonical::canonical;
use super::subject::credential::{ApiKey, UserPassword};
use super::subject::cursor::{self, PagePosition};
use super::subject::decision::Decision;
use super::subject::error::Error;
use super::subject::framing::{FramedBody, Framing, FramingKinds};
use super::subject::json::{self, JsonNode, JsonProblem, JsonValue};
use super::subject::pairing::{CompletePairing, InitiatePairing, PairingCode, parse_revoke};
use super::subject::presence::parse_hello;
use super::subject::prompt::{self, Prompt, SentAck};
use super::subject::reader::InvalidMember;
use super::subject::refresh::{parse_ack, parse_reason};
use super::subject::session;
use super::subject::timestamp::Timestamp;
use super::subject::token::{self, SignedToken};

/// Strict JSON and its canonical form, compared with a second implementation.
pub fn strict_json(data: &[u8]) {
    let node = match json::parse(data) {
        Ok(node) => node,
        Err(error) => {
            let grammar = matches!(
                error.reason,
                JsonProblem::Syntax | JsonProblem::UnexpectedEnd | JsonProblem::TrailingBytes
            );
            let is_text = std::str::from_utf8(data).is_ok();
            assert_eq!(is_text, error.reason != JsonProblem::NotUtf8);
            // A text that breaks the grammar for us breaks it for others; further refusals are our
            // own strictness.
            if grammar {
                let other = serde_json::from_slice::<serde::de::IgnoredAny>(data);
                assert!(other.is_err(), "refused as {:?}", error.reason);
            }
            return;
        }
    };
    let text = std::str::from_utf8(data).expect("it was read as text");
    let second = second::read(text).expect("a second reading");
    let own = canonical(&node);
    assert_eq!(own, second::canonical(&second));
    assert!(text.contains(node.raw), "its source is its source");
    sources(&node);
    // The canonical form is canonical, where it can be read again at all (a large float prints as
    // an integer).
    if let Ok(again) = json::parse(own.as_bytes()) {
        assert_eq!(canonical(&again), own);
    }
}

/// Every value's source says the value.
fn sources(node: &JsonNode<'_>) {
    let again = json::parse(node.raw.as_bytes()).expect("the source of a value is JSON");
    assert_eq!(again.value, node.value);
    match &node.value {
        JsonValue::Array(items) => items.iter().for_each(sources),
        JsonValue::Object(object) => object.iter().for_each(|member| sources(&member.node)),
        _ => {}
    }
}

const ANY: FramingKinds = FramingKinds {
    allowed: &[
        "artifact.submit",
        "decision.submit",
        "prompt.send",
        "prompt.ack",
    ],
    bare: |object| {
        if object.get("ackAt").is_some() {
            "prompt.ack"
        } else if object.get("promptHash").is_some() {
            "prompt.send"
        } else if object.get("signature").is_some() {
            "decision.submit"
        } else {
            "artifact.submit"
        }
    },
    about: "requestId",
};

/// A pointer names a member that was, or should be, in the document.
fn pointed(invalid: &InvalidMember) {
    let pointer = &invalid.pointer;
    assert!(pointer.is_empty() || pointer.starts_with('/'), "{pointer}");
    assert!(!invalid.expected.is_empty());
    for framing in [Framing::Bare, Framing::Core, Framing::Wire] {
        let framed = framing.pointer(pointer);
        assert!(framed.is_empty() || framed.starts_with('/'), "{framed}");
    }
}

/// Frames of a WebSocket and bodies of every kind: read as whichever message they say they are.
pub fn frames(data: &[u8]) {
    let Ok(node) = json::parse(data) else {
        return;
    };
    let now = Timestamp::parse("2026-02-21T12:00:00Z").expect("a time");
    let later = Timestamp::parse("2026-03-21T12:00:00Z").expect("a time");
    let mut refusals: Vec<InvalidMember> = Vec::new();
    let mut note = |refused: Option<InvalidMember>| refusals.extend(refused);
    note(parse_hello(&node).err());
    note(parse_ack(&node).err());
    note(parse_reason(&node, "").err());
    note(InitiatePairing::parse(&node).err());
    note(CompletePairing::parse(&node).err());
    note(parse_revoke(&node).err());
    match session::unframe(&node, now) {
        Err(invalid) => note(Some(invalid)),
        Ok(framed) => {
            let rules = session::EventRules {
                latest: later,
                max_payload: 1 << 20,
            };
            if let Err(Error::Invalid(invalid)) = session::parse(&framed, &rules) {
                note(Some(invalid));
            }
        }
    }
    match FramedBody::parse(&node, &ANY, now) {
        Err(invalid) => note(Some(invalid)),
        Ok(framed) => {
            let envelope = &framed.envelope;
            let rules = ArtifactRules {
                max_payload: 1 << 20,
                requested_actions: "org.proto.requestedActions".to_owned(),
                latest_created: later,
                latest_expiry: later,
            };
            match artifact::parse(envelope, &rules) {
                Ok(submission) => {
                    let stored = json::parse(submission.stored.as_bytes()).expect("JSON");
                    assert!(stored.as_object().is_some());
                }
                Err(Error::Invalid(invalid) | Error::InvalidArtifact(invalid)) => {
                    note(Some(invalid));
                }
                Err(_) => {}
            }
            match Decision::parse(envelope) {
                Ok(decision) => assert_eq!(decision.body, envelope.body.raw),
                Err(invalid) => note(Some(invalid)),
            }
            let rules = prompt::PromptRules {
                max_text: 1 << 20,
                extension: "org.proto.prompt",
                latest_created: later,
                latest_expiry: later,
            };
            match Prompt::parse(envelope, &rules) {
                Ok(prompt) => assert_eq!(prompt.body, envelope.body.raw),
                Err(Error::Invalid(invalid)) => note(Some(invalid)),
                Err(_) => {}
            }
            note(SentAck::parse(envelope).err());
        }
    }
    refusals.iter().for_each(pointed);
}

/// Cursors: a damaged one is refused, and a good one says where it was.
pub fn cursor(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Some(position) = cursor::decode("listing", text) {
        let again = cursor::encode("listing", &position);
        assert_eq!(cursor::decode("listing", &again), Some(position.clone()));
        assert_eq!(cursor::decode("another", &again), None);
    }
    // Any id without control characters comes back.
    if !text.chars().any(char::is_control) {
        let position = PagePosition {
            at: time::OffsetDateTime::UNIX_EPOCH,
            id: text.to_owned(),
        };
        let printed = cursor::encode("listing", &position);
        assert_eq!(cursor::decode("listing", &printed), Some(position));
    }
}

/// Pairing codes: however one is typed, it is the code that was shown, or none.
pub fn pairing_code(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Some(code) = PairingCode::parse(text) {
        let shown = code.to_string();
        assert_eq!(PairingCode::parse(&shown), Some(code));
        assert_eq!(PairingCode::parse(&text.to_lowercase()), Some(code));
        let plain: String = text.chars().filter(|c| *c != '-').collect();
        assert_eq!(PairingCode::parse(&plain), Some(code));
        assert_eq!(plain.chars().count(), 8, "{text}");
    }
}

/// Credentials as they are presented, and what an issuer publishes: taken apart or refused, never
/// more than was there.
pub fn credential(data: &[u8]) {
    let _keys = token::KeySet::parse(data);
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Some(key) = ApiKey::parse(text) {
        assert_eq!(format!("csk_{}_{}", key.id, key.secret), text);
    }
    if let Some(key) = UserPassword::decode(text)
        .as_ref()
        .and_then(UserPassword::key)
    {
        assert!(!key.id.as_str().is_empty());
    }
    if let Ok(jws) = SignedToken::parse(text) {
        assert!(token::looks_signed(text) || text.ends_with('.') || text.contains('='));
        let rules = token::TokenRules {
            issuer: "https://issuer.example".to_owned(),
            audience: "countersign".to_owned(),
            max_lifetime: std::time::Duration::from_secs(86_400),
            leeway: std::time::Duration::from_secs(60),
            names: token::ClaimNames {
                tenant: "tenant".to_owned(),
                role: "role".to_owned(),
                id: "countersign_id".to_owned(),
            },
        };
        let now = Timestamp::parse("2026-02-21T12:00:00Z").expect("a time");
        let _claims = token::judge_claims(jws.payload(), &rules, now);
    }
}
