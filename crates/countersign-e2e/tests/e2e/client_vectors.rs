//! The vectors for clients in other languages say what this crate does: `accept.json`,
//! `small_order.json` and `strict_json.json`.

use std::collections::BTreeSet;

use super::people::{alice, bot, tenant, time};
use super::rfc9180::unhex;
use super::texts::{hex, unbase};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_e2e::{
    DeviceBundle, DeviceId, DeviceTrust, EncryptionKey, EnforcerKeys, Error, OwnRequest,
    PlainArtifact, VerifiedDecision, accept,
};
use countersign_protocol::canonical::canonical;
use countersign_protocol::json;
use countersign_protocol::signature::{PublicKey, Signature};
use serde_json::Value;

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn bytes(hexadecimal: &Value) -> Vec<u8> {
    unhex(hexadecimal.as_str().unwrap())
}

fn cases(list: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let list = list.as_array().unwrap().iter();
    list.map(|case| (case["name"].as_str().unwrap(), case))
}

/// The number of the check that an error stands for; 1 also for a device id that cannot be read.
fn check_of(error: &Error) -> u64 {
    match error {
        Error::UnknownDevice(_) | Error::RevokedDevice(_) => 2,
        Error::DecisionSignature => 3,
        Error::OtherSubject { .. } => 4,
        Error::DecisionExpired => 5,
        Error::RequestExpired => 6,
        Error::Hints(_) => 7,
        _ => 1,
    }
}

#[test]
fn decisions_are_accepted_and_refused_by_the_same_check() {
    let vectors = read(include_str!("../../../../tests/vectors/accept.json"));
    let text = |member: &str| vectors[member].as_str().unwrap();
    let list = |member: &str| vectors[member].as_array().unwrap().iter();
    let devices = list("devices").map(|it| DeviceBundle::parse(it.as_str().unwrap()).unwrap());
    let revoked = list("revoked").map(|it| DeviceId::parse(it.as_str().unwrap()).unwrap());
    let revoked: BTreeSet<_> = revoked.collect();
    let trust = DeviceTrust::from_own_records(tenant(), alice(), devices.collect(), revoked);
    let artifact = PlainArtifact::parse(text("artifact").as_bytes()).unwrap();
    let request = OwnRequest::of(&artifact, bot());
    let private = bytes(&vectors["enforcerPrivate"]);
    let keys = EnforcerKeys::from_secret(&private.try_into().unwrap());
    let judge = |case: &Value| {
        let at = time(case["at"].as_str().unwrap_or(text("at")));
        let decision = case["decision"].as_str().unwrap();
        let decision = json::parse(decision.as_bytes()).map_err(|_| 1_u64)?;
        let judged = accept(&decision, &request, &keys, &[&trust], at);
        judged.map_err(|error| check_of(&error))
    };
    for (name, case) in cases(&vectors["accepted"]) {
        let is_approval = match judge(case) {
            Ok(VerifiedDecision::Approved(_)) => true,
            Ok(VerifiedDecision::Rejected(_)) => false,
            Err(check) => panic!("{name}: {check}"),
        };
        assert_eq!(is_approval, case["verdict"] == "approve", "{name}");
    }
    for (name, case) in cases(&vectors["refused"]) {
        let check = judge(case).expect_err(name);
        let expected = case["check"].as_u64().unwrap();
        assert!(
            check == expected || (check, expected) == (1, 2),
            "{name}: {check}"
        );
    }
}

#[test]
fn weak_keys_are_refused_and_signatures_judged_strictly() {
    let vectors = read(include_str!("../../../../tests/vectors/small_order.json"));
    let encryption = |key: &[u8]| EncryptionKey::parse("key", &URL_SAFE_NO_PAD.encode(key));
    for (name, case) in cases(&vectors["ed25519"]) {
        assert!(
            PublicKey::from_bytes(&bytes(&case["key"])).is_none(),
            "{name}"
        );
    }
    for (name, case) in cases(&vectors["x25519"]) {
        assert!(encryption(&bytes(&case["key"])).is_err(), "{name}");
    }
    let usable = &vectors["usable"];
    assert!(PublicKey::from_bytes(&bytes(&usable["ed25519"])).is_some());
    let key = encryption(&bytes(&usable["x25519"])).unwrap();
    assert_eq!(hex(key.as_bytes()), usable["x25519"].as_str().unwrap());
    let message = bytes(&vectors["message"]);
    for (name, case) in cases(&vectors["signatures"]) {
        let key = PublicKey::from_bytes(&bytes(&case["key"]));
        let signature = Signature::from_bytes(&bytes(&case["signature"]));
        let is_valid = key.zip(signature);
        let is_valid = is_valid.is_some_and(|(key, signature)| key.verifies(&message, &signature));
        assert_eq!(is_valid, case["valid"].as_bool().unwrap(), "{name}");
    }
}

/// The text of a case, which may be spelled in pieces.
fn text_of(case: &Value) -> Vec<u8> {
    if let Some(parts) = case["parts"].as_array() {
        let repeated = |part: &Value| {
            let count = usize::try_from(part[1].as_u64().unwrap()).unwrap();
            part[0].as_str().unwrap().repeat(count)
        };
        return parts.iter().map(repeated).collect::<String>().into();
    }
    match case["text"].as_str() {
        Some(text) => text.into(),
        None => unbase(&case["base64url"]),
    }
}

#[test]
fn strict_json_reads_and_spells_the_same() {
    let vectors = read(include_str!("../../../../tests/vectors/strict_json.json"));
    for (name, case) in cases(&vectors["accepted"]) {
        let text = text_of(case);
        let spelled =
            canonical(&json::parse(&text).unwrap_or_else(|error| panic!("{name}: {error:?}")));
        match case["canonical"].as_str() {
            Some(expected) => assert_eq!(spelled, expected, "{name}"),
            None => assert_eq!(spelled.as_bytes(), text, "{name}"),
        }
    }
    for (name, case) in cases(&vectors["refused"]) {
        assert!(json::parse(&text_of(case)).is_err(), "{name}");
    }
}
