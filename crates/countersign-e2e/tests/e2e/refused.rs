//! What every implementation refuses, for other implementers, in `tests/vectors/refused.json`. It is about the keys and the artifact of
//! `encryption.json`. After a deliberate change, run it once with `WRITE_VECTORS=1`.

use countersign_e2e::{
    Ciphertext, DeviceBundle, DeviceKeys, DeviceStatement, DeviceTrust, SealPurpose,
    SignedStatement, StatementChange, TrustedDevice, accept, open_artifact, sign_decision,
};
use countersign_protocol::decision::Verdict;
use countersign_protocol::id::{ApproverId, TextId as _};
use countersign_protocol::json;
use serde_json::{Value, json};

use super::people::{
    World, add, alice, device, known, node, now, revoke, ruling, tenant, time, world,
};

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

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

/// A revocation that keeps these.
fn keeping(by: &DeviceKeys, gone: &DeviceKeys, keeps: &[&DeviceKeys]) -> SignedStatement {
    let keeps = keeps.iter().map(|keys| keys.id()).collect();
    let statement =
        DeviceStatement::revocation(&tenant(), &alice(), gone.id(), &keeps, now(), by.id())
            .unwrap();
    let signature = statement.sign(by).unwrap();
    SignedStatement::new(statement, signature, None)
}

/// Lists, with what follows from them for an enforcer that has pinned the phone.
fn statements(world: &World) -> Value {
    let (phone, laptop, laptops) = (&world.phone, &world.laptop, &world.laptop_bundle);
    let [(tablet, tablets), (thief, thiefs)] = ["tablet", "thief"].map(device);
    let added = || add(phone, laptop, laptops);
    let elsewhere = |approver: &str| {
        let approver = ApproverId::parse(approver).unwrap();
        let change = StatementChange::Add(Box::new(laptops.clone()));
        let statement =
            DeviceStatement::new(&tenant(), &approver, &change, now(), phone.id()).unwrap();
        let (signature, possession) = (
            statement.sign(phone).unwrap(),
            statement.sign(laptop).unwrap(),
        );
        SignedStatement::new(statement, signature, Some(possession))
    };
    let unproven = {
        let change = StatementChange::Add(Box::new(laptops.clone()));
        let statement =
            DeviceStatement::new(&tenant(), &alice(), &change, now(), phone.id()).unwrap();
        let signature = statement.sign(phone).unwrap();
        SignedStatement::new(statement, signature, None)
    };
    let rows = [
        ("an addition", vec![added()]),
        (
            "an addition that stands before that of its signer",
            vec![add(laptop, &tablet, &tablets), added()],
        ),
        (
            "a revocation that stands before the addition",
            vec![revoke(phone, laptop), added()],
        ),
        (
            "an addition by a revoked device",
            vec![
                added(),
                revoke(phone, laptop),
                add(laptop, &tablet, &tablets),
            ],
        ),
        (
            "an addition again after the revocation",
            vec![added(), revoke(phone, laptop), added()],
        ),
        (
            "an addition by a device that none has added",
            vec![add(&thief, &tablet, &tablets)],
        ),
        (
            "a device that adds itself",
            vec![add(&thief, &thief, &thiefs)],
        ),
        (
            "an addition without the new device's signature",
            vec![unproven],
        ),
        ("an addition for another approver", vec![elsewhere("bob")]),
        (
            "a revocation by a device that none has added",
            vec![added(), revoke(&thief, laptop)],
        ),
        (
            "a device that a revoked one has added, kept",
            vec![
                added(),
                add(laptop, &tablet, &tablets),
                keeping(phone, laptop, &[phone, &tablet]),
            ],
        ),
        (
            "a device that a revoked one has added, and the revocation does not keep",
            vec![
                added(),
                add(laptop, &thief, &thiefs),
                keeping(phone, laptop, &[phone]),
            ],
        ),
        (
            "the same, by a device between that was revoked before",
            vec![
                added(),
                add(laptop, &tablet, &tablets),
                add(&tablet, &thief, &thiefs),
                revoke(&tablet, &tablet),
                keeping(phone, laptop, &[phone]),
            ],
        ),
        (
            "the same, though the revoked one revoked itself before",
            vec![
                added(),
                add(laptop, &thief, &thiefs),
                keeping(laptop, laptop, &[phone, &thief]),
                keeping(phone, laptop, &[phone]),
            ],
        ),
    ];
    let row = |(name, list): &(&str, Vec<SignedStatement>)| {
        let pinned: Vec<DeviceBundle> = vec![world.phone_bundle.clone()];
        let mut trust = DeviceTrust::from_own_records(
            tenant(),
            alice(),
            pinned,
            std::collections::BTreeSet::new(),
        );
        trust.follow_all(list);
        let in_force = trust.in_force().iter().map(TrustedDevice::id);
        let in_force: Vec<_> = in_force.map(|id| id.to_string()).collect();
        let revoked: Vec<_> = trust.revoked().iter().map(ToString::to_string).collect();
        let list: Vec<_> = list
            .iter()
            .map(|signed| parsed(&signed.to_text()))
            .collect();
        json!({ "name": name, "list": list, "inForce": in_force, "revoked": revoked })
    };
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
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/vectors/refused.json"
    );
    if std::env::var_os("WRITE_VECTORS").is_some() {
        let text = serde_json::to_string_pretty(&computed).unwrap();
        std::fs::write(path, text + "\n").unwrap();
    }
    let published: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(computed, published);
}
