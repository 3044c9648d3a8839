//! Inputs that every implementation refuses, for other implementers, in
//! `tests/vectors/refused.json`. They use the keys and the artifact of `encryption.json`. After a
//! deliberate change, run it once with `WRITE_VECTORS=1`.

use super::people::{World, device, known, node, now, ruling, time, world};
use super::refused_lists::statements;
use super::texts::{check_published, parsed};
use countersign_e2e::{Ciphertext, DeviceKeys, SealPurpose, accept, open_artifact, sign_decision};
use countersign_protocol::decision::Verdict;
use countersign_protocol::id::TextId as _;
use countersign_protocol::json;
use serde_json::{Value, json};

fn with(value: &Value, pointer: &str, other: Value) -> Value {
    let mut changed = value.clone();
    *changed.pointer_mut(pointer).unwrap() = other;
    changed
}

/// The same text with another first character.
fn bent(value: &Value, pointer: &str) -> Value {
    let text = value.pointer(pointer).unwrap().as_str().unwrap();
    let first = if text.starts_with('A') { "B" } else { "A" };
    with(value, pointer, json!(format!("{first}{}", &text[1..])))
}

fn ciphertexts(world: &World) -> Value {
    let good = parsed(&world.sealed().to_text().unwrap());
    let context = json!({
        "requestId": world.context().request_id.as_str(),
        "artifactType": world.context().artifact_type,
        "artifactHash": world.context().artifact_hash.to_string(),
        "expiresAt": world.context().expires_at,
        "enforcerId": world.context().enforcer_id.as_str(),
    });
    let recipients = good["recipients"].as_array().unwrap().clone();
    let swapped: Value = recipients.iter().rev().cloned().collect();
    let twice: Value = [&recipients[0], &recipients[0]]
        .into_iter()
        .cloned()
        .collect();
    let further: Value = {
        let mut further = good.clone();
        further["more"] = json!(1);
        further
    };
    let data = good["data"].as_str().unwrap();
    let rows = [
        (
            "a bit of the content changed",
            bent(&good, "/data"),
            context.clone(),
        ),
        (
            "its last byte cut off",
            with(&good, "/data", json!(&data[..data.len() - 2])),
            context.clone(),
        ),
        (
            "padding",
            with(&good, "/data", json!(format!("{data}="))),
            context.clone(),
        ),
        ("another nonce", bent(&good, "/nonce"), context.clone()),
        (
            "another content key",
            bent(&good, "/recipients/0/key"),
            context.clone(),
        ),
        (
            "another ephemeral key",
            bent(&good, "/recipients/0/encapsulated"),
            context.clone(),
        ),
        (
            "the recipients in another order",
            with(&good, "/recipients", swapped),
            context.clone(),
        ),
        (
            "a recipient less",
            with(&good, "/recipients", json!([recipients[0]])),
            context.clone(),
        ),
        (
            "a recipient twice",
            with(&good, "/recipients", twice),
            context.clone(),
        ),
        (
            "no recipient",
            with(&good, "/recipients", json!([])),
            context.clone(),
        ),
        (
            "for other devices only",
            with(&good, "/recipients", json!([recipients[1]])),
            context.clone(),
        ),
        (
            "another algorithm",
            with(&good, "/alg", json!("HPKE-P256-SHA256-A256GCM")),
            context.clone(),
        ),
        (
            "another cipher",
            with(&good, "/enc", json!("A128GCM")),
            context.clone(),
        ),
        ("a member more", further, context.clone()),
        (
            "another request",
            good.clone(),
            with(&context, "/requestId", json!("01J2V8V3K6B2Z9X6G1V7Y2QK8J")),
        ),
        (
            "another type",
            good.clone(),
            with(&context, "/artifactType", json!("plan.review")),
        ),
        (
            "another hash",
            good.clone(),
            with(&context, "/artifactHash", json!("00".repeat(32))),
        ),
        (
            "another end",
            good.clone(),
            with(&context, "/expiresAt", json!("2026-02-21T12:10:01Z")),
        ),
        (
            "the same end, spelled otherwise",
            good.clone(),
            with(&context, "/expiresAt", json!("2026-02-21T12:10:00.0Z")),
        ),
        (
            "another enforcer",
            good.clone(),
            with(&context, "/enforcerId", json!("prod-bot")),
        ),
    ];
    let opens = |ciphertext: &Value, context: &Value| {
        let text = |name: &str| context[name].as_str().unwrap().to_owned();
        let mut known = world.context();
        known.request_id = countersign_protocol::id::RequestId::parse(&text("requestId")).unwrap();
        known.artifact_type = text("artifactType");
        known.artifact_hash =
            countersign_protocol::canonical::Sha256Hex::parse(&text("artifactHash")).unwrap();
        known.expires_at = text("expiresAt");
        known.enforcer_id =
            countersign_protocol::id::EnforcerId::parse(&text("enforcerId")).unwrap();
        let whole = ciphertext.to_string();
        let node = json::parse(whole.as_bytes()).unwrap();
        Ciphertext::parse(SealPurpose::Artifact, &node)
            .and_then(|parsed| open_artifact(&world.phone, &world.pinned_enforcer, &known, &parsed))
            .is_ok()
    };
    assert!(opens(&good, &context));
    for (name, ciphertext, context) in &rows {
        assert!(!opens(ciphertext, context), "{name}");
    }
    let row = |(name, ciphertext, context): &(&str, Value, Value)| json!({ "name": name, "ciphertext": ciphertext, "context": context });
    rows.iter().map(row).collect()
}

fn decisions(world: &World) -> Value {
    let signed = |keys: &DeviceKeys, expires: &str| {
        let mut ruling = ruling(Verdict::Approve);
        ruling.expires_at = time(expires);
        let signed = sign_decision(&world.opened(), &ruling, keys, &mut known("decision"));
        parsed(&signed.unwrap())
    };
    let good = signed(&world.phone, "2026-02-21T12:10:00Z");
    let (stranger, _) = device("stranger");
    let without = |name: &str| {
        let mut less = good.clone();
        less.as_object_mut().unwrap().remove(name);
        less
    };
    let mut further = good.clone();
    further["more"] = json!(1);
    // The signature of a device may be spelled in one way only.
    let high = {
        use base64::Engine as _;
        let base64 = base64::engine::general_purpose::URL_SAFE_NO_PAD;
        let mut bytes = base64.decode(good["signature"].as_str().unwrap()).unwrap();
        let order: [u8; 32] = [
            0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9,
            0xde, 0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
        ];
        let mut carry = 0_u16;
        for (byte, more) in bytes[32..].iter_mut().zip(order) {
            carry += u16::from(*byte) + u16::from(more);
            *byte = (carry & 0xff) as u8;
            carry >>= 8;
        }
        base64.encode(bytes)
    };
    let rows = [
        (
            "the other verdict",
            with(&good, "/decision", json!("reject")),
        ),
        ("another scope", with(&good, "/scope", json!("session"))),
        (
            "a later end",
            with(&good, "/expiresAt", json!("2026-02-21T13:00:00Z")),
        ),
        ("another nonce", bent(&good, "/nonce")),
        (
            "another request",
            with(&good, "/requestId", json!("01J2V8V3K6B2Z9X6G1V7Y2QK8J")),
        ),
        (
            "another artifact",
            with(&good, "/artifactHash", json!("00".repeat(32))),
        ),
        (
            "another repository",
            with(&good, "/repoRef", json!("repo:acme/other")),
        ),
        ("no repository", with(&good, "/repoRef", json!(""))),
        (
            "another signer",
            with(&good, "/signerKeyId", json!(world.laptop.id().to_string())),
        ),
        ("another signature", bent(&good, "/signature")),
        (
            "a signature of zeros",
            with(&good, "/signature", json!("A".repeat(86))),
        ),
        (
            "the signature with the group's order added to its second half",
            with(&good, "/signature", json!(high)),
        ),
        ("no signature", without("signature")),
        ("a compact decision", without("sigAlg")),
        ("another algorithm", with(&good, "/sigAlg", json!("none"))),
        ("a member more", further),
        (
            "by a device that none has added",
            signed(&stranger, "2026-02-21T12:10:00Z"),
        ),
        ("past its end", signed(&world.phone, "2026-02-21T12:00:30Z")),
    ];
    let accepted = |body: &Value| {
        let text = body.to_string();
        let (request, trusts) = (world.request(), [&world.trust]);
        accept(&node(&text), &request, &world.enforcer, &trusts, now()).is_ok()
    };
    assert!(accepted(&good));
    for (name, body) in &rows {
        assert!(!accepted(body), "{name}");
    }
    let row = |(name, body): &(&str, Value)| json!({ "name": name, "body": body });
    rows.iter().map(row).collect()
}

#[test]
fn the_published_refusals_are_refused() {
    let world = world();
    let computed = json!({
        "source": "What must be refused, about the keys and the artifact in encryption.json; docs/encryption.md says how to read it",
        "at": now(),
        "ciphertexts": ciphertexts(&world),
        "decisions": decisions(&world),
        "statements": statements(&world),
    });
    check_published("refused.json", &computed);
}
