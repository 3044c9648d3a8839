//! Known answers for other implementers, in `tests/vectors/encryption.json`: inputs, intermediate
//! values and outputs. The test computes them again. After a deliberate change, run it once with
//! `WRITE_VECTORS=1`.

use super::people::{
    World, add, alice, bot, device, introduce, known, node, nonce, now, revoke, ruling, tenant,
    time, world,
};
use super::rfc9180::unhex;
use super::texts::{canon, check_published, hex, parsed, unbase};
use super::vectors_sealed::{artifact, explain, prompt};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_e2e::{
    ArtifactHints, AuthenticOffer, DecisionContent, DecisionScope, DeviceBundle, DeviceInvitation,
    DeviceLink, EndorsementRequest, EnforcerBundle, Fingerprint, GrantMatch, PairingAnswer,
    PairingClaims, PairingLink, PairingSecret, SignedStatement, VerifiedDecision, accept,
    answer_by_code, answer_by_link, sign_decision,
};
use countersign_protocol::decision::Verdict;
use countersign_protocol::pairing::PairingCode;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

fn keys(world: &World) -> Value {
    let device = |keys: &countersign_e2e::DeviceKeys, bundle: &DeviceBundle| {
        let (signing, decryption) = keys.secrets();
        let (ed25519, x25519) = (bundle.signing_key(), bundle.encryption_key());
        let hashed = [
            b"countersign device v1",
            ed25519.as_bytes().as_slice(),
            x25519.as_bytes(),
        ]
        .concat();
        let text = bundle.to_text().unwrap();
        let id = URL_SAFE_NO_PAD.encode(&Sha256::digest(&hashed)[..16]);
        assert_eq!(id, bundle.id().to_string());
        json!({
            "ed25519Seed": hex(&*signing),
            "x25519Private": hex(&*decryption),
            "ed25519Public": hex(ed25519.as_bytes()),
            "x25519Public": hex(x25519.as_bytes()),
            "deviceIdHashed": hex(&hashed),
            "deviceId": id,
            "bundleCanonical": String::from_utf8(unbase(&json!(text))).unwrap(),
            "bundle": text,
        })
    };
    json!({
        "phone": device(&world.phone, &world.phone_bundle),
        "laptop": device(&world.laptop, &world.laptop_bundle),
        "enforcer": {
            "enforcerId": bot().as_str(),
            "x25519Private": hex(&*world.enforcer.secret()),
            "x25519Public": hex(world.enforcer.encryption_key().as_bytes()),
        },
    })
}

fn transcript(offer: &EnforcerBundle, answer: &PairingAnswer) -> String {
    let mut members: Value =
        serde_json::from_slice(&unbase(&json!(answer.to_text().unwrap()))).unwrap();
    members.as_object_mut().unwrap().remove("proof");
    canon(&json!({
        "nonce": nonce().as_str(),
        "approverId": "alice",
        "enforcer": offer.to_text().unwrap(),
        "approver": URL_SAFE_NO_PAD.encode(canon(&members)),
    }))
}

fn pairing(world: &World) -> Value {
    let offer = EnforcerBundle::new(&world.enforcer, bot(), &mut known("offer")).unwrap();
    let mut random = known("secret");
    let secret = PairingSecret::generate(&mut random).unwrap();
    let secret_bytes = random.drawn.concat();
    let fingerprint = Fingerprint::of(&offer).unwrap();
    let authentic = AuthenticOffer::check(offer.clone(), &fingerprint).unwrap();
    let (nonce, bundle) = (nonce(), &world.phone_bundle);
    let random = &mut known("answer");
    let (by_link, _) = answer_by_link(
        &authentic,
        &secret,
        &nonce,
        &alice(),
        bundle,
        &PairingClaims::default(),
        random,
    )
    .unwrap();
    let random = &mut known("answer by code");
    let (by_code, comparison) = answer_by_code(
        &offer,
        &nonce,
        &alice(),
        bundle,
        &PairingClaims::default(),
        random,
    )
    .unwrap();
    let link = PairingLink {
        code: PairingCode::parse("7K3M-9QRT").unwrap(),
        secret,
        fingerprint,
    };
    let offer_text = offer.to_text().unwrap();
    let proven = format!("countersign pairing v1{}", transcript(&offer, &by_link));
    let derived_from = format!("countersign digits v1{}", transcript(&offer, &by_code));
    json!({
        "enforcerBundleCanonical": String::from_utf8(unbase(&json!(offer_text))).unwrap(),
        "enforcerBundle": offer_text,
        "fingerprint": URL_SAFE_NO_PAD.encode(&Sha256::digest(&offer_text)[..16]),
        "nonce": nonce.as_str(),
        "approverId": "alice",
        "link": {
            "secret": hex(&secret_bytes),
            "link": *link.expose("https://gate.example"),
            "proofMessage": proven,
            "answer": by_link.to_text().unwrap(),
            "answerCanonical": String::from_utf8(unbase(&json!(by_link.to_text().unwrap()))).unwrap(),
        },
        "typedCode": {
            "pbkdf2Password": derived_from,
            "pbkdf2Salt": nonce.as_str(),
            "pbkdf2Iterations": 600_000,
            "answer": by_code.to_text().unwrap(),
            "digits": comparison.digits().to_string(),
        },
    })
}

fn statements(world: &World) -> Value {
    let (phone, bundle) = device("phone");
    let row = |name: &str, signed: &SignedStatement| {
        let text = signed.to_text();
        json!({
            "name": name,
            "signable": signed.statement().text(),
            "signed": parsed(&text),
        })
    };
    json!([
        row("the first device, by itself", &add(&phone, &phone, &bundle)),
        row(
            "the phone adds the laptop",
            &add(&world.phone, &world.laptop, &world.laptop_bundle)
        ),
        row(
            "the laptop adds the phone in turn",
            &add(&world.laptop, &world.phone, &world.phone_bundle)
        ),
        row(
            "the phone revokes the laptop",
            &revoke(&world.phone, &world.laptop)
        ),
    ])
}

fn introduction(world: &World) -> Value {
    let signed = introduce(world, &world.phone);
    json!({
        "signable": signed.introduction().text(),
        "signed": parsed(&signed.to_text()),
    })
}

fn decisions(world: &World) -> Value {
    let plain = ruling(Verdict::Reject);
    let words = GrantMatch::prefix(vec!["git".to_owned(), "commit".to_owned()]);
    let hinted = DecisionContent {
        verdict: Verdict::Approve,
        scope: DecisionScope::Timebox,
        expires_at: time("2026-02-21T13:00:00Z"),
        hints: ArtifactHints {
            reason: Some("fine".to_owned()),
            grant: words,
            ..ArtifactHints::default()
        },
    };
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let answered = DecisionContent {
        hints: ArtifactHints {
            answers: Some(vec![texts(&["PostgreSQL"]), texts(&["Auth", "été"])]),
            ..ArtifactHints::default()
        },
        ..ruling(Verdict::Approve)
    };
    let row = |name: &str, ruling: &DecisionContent, plaintext: &str| {
        let mut random = known("decision");
        let body = sign_decision(&world.opened(), ruling, &world.phone, &mut random).unwrap();
        let trusts = [&world.trust];
        let outcome = accept(
            &node(&body),
            &world.request(),
            &world.enforcer,
            &trusts,
            now(),
        );
        assert_eq!(
            matches!(outcome.unwrap(), VerifiedDecision::Approved(_)),
            ruling.verdict == Verdict::Approve
        );
        let mut signable = parsed(&body);
        signable.as_object_mut().unwrap().remove("signature");
        let hints = (random.drawn.len() > 1).then(|| {
            let context = json!({
                "v": 1,
                "requestId": "01J2V8V3K6B2Z9X6G1V7Y2QK8H",
                "artifactHash": world.artifact.hash().to_string(),
                "enforcerId": "build-bot",
                "deviceId": world.phone.id().to_string(),
            });
            explain(
                &random.drawn[1..],
                "countersign hints v1",
                &context,
                &signable["policyHints"]["sealed"],
                (
                    world.phone.encryption_key().as_bytes(),
                    &[*world.enforcer.secret()],
                ),
                plaintext,
            )
        });
        json!({
            "name": name,
            "signable": canon(&signable),
            "sealedHints": hints,
            "body": parsed(&body),
        })
    };
    json!([
        row("a rejection without hints", &plain, ""),
        row(
            "an approval for a while, with a reason and a grant",
            &hinted,
            r#"{"grant":{"argv":["git","commit"],"match":"prefix"},"reason":"fine"}"#,
        ),
        row(
            "answers to two questions",
            &answered,
            r#"{"answers":[["PostgreSQL"],["Auth","été"]]}"#,
        ),
    ])
}

/// The laptop asks the phone to add it.
fn endorsement(world: &World) -> Value {
    let (laptop, bundle) = (&world.laptop, &world.laptop_bundle);
    let phone = std::slice::from_ref(&world.phone_bundle);
    let asked =
        EndorsementRequest::new(&tenant(), &alice(), (laptop, bundle), now(), phone).unwrap();
    let own = (&world.phone, &world.phone_bundle);
    let statements = asked.endorse(&tenant(), &alice(), own).unwrap();
    let text = asked.to_text().unwrap();
    let link = asked.link("https://gateway.example.org").unwrap();
    assert!(link.ends_with(&format!("/#/device/{text}")));
    json!({
        "link": link,
        "canonical": String::from_utf8(unbase(&json!(text))).unwrap(),
        "statements": statements.iter().map(|it| parsed(&it.to_text())).collect::<Vec<_>>(),
    })
}

/// The phone invites the laptop.
fn invitation(world: &World) -> Value {
    let by = world.phone_bundle.id();
    let at = now();
    let asked = DeviceInvitation::new(&tenant(), &alice(), at, by).unwrap();
    let signed = asked.sign(&world.phone).unwrap();
    let link = DeviceLink::generate(nonce(), by, &mut known("device secret")).unwrap();
    let listed = [world.phone_bundle.clone(), device("foreign").1];
    let own = (&world.laptop, &world.laptop_bundle);
    let answer = link.request(&tenant(), &alice(), own, now(), &listed);
    let answer = answer.unwrap();
    let received = link.receive(&answer.request, &answer.proof).unwrap();
    assert_eq!(received.digits(), answer.digits);
    json!({
        "signable": signed.invitation().text(),
        "signed": parsed(&signed.to_text()),
        "link": link.expose("https://gateway.example.org").as_str(),
        "request": answer.request,
        "proofMessage": hex(format!("countersign new device v1{}", answer.request).as_bytes()),
        "proof": answer.proof,
        "digits": answer.digits.to_string(),
    })
}

/// Bundles that must be refused.
fn refusals(world: &World) -> Value {
    let text = world.phone_bundle.to_text().unwrap();
    let json = String::from_utf8(unbase(&json!(text))).unwrap();
    let key = |name: &str, bytes: &str| {
        let mut members = parsed(&json);
        members[name] = URL_SAFE_NO_PAD.encode(unhex(bytes)).into();
        URL_SAFE_NO_PAD.encode(canon(&members))
    };
    let rows = [
        ("padding", format!("{text}=")),
        (
            "white space in the JSON",
            URL_SAFE_NO_PAD.encode(json.replace(':', ": ")),
        ),
        (
            "a version that is not known",
            URL_SAFE_NO_PAD.encode(json.replace("\"v\":1", "\"v\":2")),
        ),
        (
            "an unknown member",
            URL_SAFE_NO_PAD.encode(json.replace("\"v\":1", "\"v\":1,\"w\":1")),
        ),
        (
            "an invisible character in the name",
            URL_SAFE_NO_PAD.encode(json.replace("phone", "phone\u{202e}")),
        ),
        (
            "an Ed25519 key of small order",
            key("ed25519", &format!("01{}", "00".repeat(31))),
        ),
        (
            "an X25519 key of small order",
            key("x25519", &"00".repeat(32)),
        ),
        (
            "an X25519 key of order 8",
            key(
                "x25519",
                "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
            ),
        ),
        (
            "an X25519 key with the unused bit set",
            key("x25519", &format!("09{}80", "00".repeat(30))),
        ),
        (
            "an X25519 key not below the prime",
            key("x25519", &format!("f6{}7f", "ff".repeat(30))),
        ),
    ];
    for (what, bundle) in &rows {
        assert!(DeviceBundle::parse(bundle).is_err(), "{what}");
    }
    rows.iter()
        .map(|(what, bundle)| json!({"name": what, "deviceBundle": bundle}))
        .collect()
}

#[test]
fn the_published_vectors_are_what_the_code_computes() {
    let world = world();
    let computed = json!({
        "source": "Countersign's own known answers; docs/encryption.md says how to read them. Hexadecimal for raw bytes, base64url where the protocol has it",
        "tenantId": tenant().as_str(),
        "keys": keys(&world),
        "pairing": pairing(&world),
        "statements": statements(&world),
        "endorsement": endorsement(&world),
        "introduction": introduction(&world),
        "invitation": invitation(&world),
        "artifact": artifact(&world),
        "prompt": prompt(&world),
        "decisions": decisions(&world),
        "refusals": refusals(&world),
    });
    check_published("encryption.json", &computed);
}
