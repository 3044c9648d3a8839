//! The outcome of an enforcer, signed with the key that its artifact names.
//! `tests/vectors/outcome.json` is for other implementers; after a deliberate change, run this once
//! with `WRITE_VECTORS=1`.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use countersign_e2e::{
    DenialCause, Error, OUTCOME, OutcomeEffect, OutcomeKey, OutcomeStatement, PlainArtifact,
    decision_digest, sign_decision, verify_outcome,
};
use countersign_protocol::canonical::canonical;
use countersign_protocol::decision::Verdict;
use countersign_protocol::id::{EnforcerId, RequestId, TenantId, TextId as _};
use countersign_protocol::json;
use serde_json::{Map, Value, json};

use super::outcome_set::set_vectors;
use super::people::{ARTIFACT, known, now, ruling, tenant, world};
use super::several::check_vectors;

fn artifact(key: &OutcomeKey) -> PlainArtifact {
    let mut members: Map<String, Value> = serde_json::from_str(ARTIFACT).unwrap();
    key.name_in(&mut members);
    let text = Value::Object(members).to_string();
    PlainArtifact::complete(&text, &mut known("artifact")).unwrap()
}

struct Scene {
    key: OutcomeKey,
    artifact: PlainArtifact,
    enforcer: EnforcerId,
    decision: String,
}

impl Scene {
    fn new() -> Self {
        let world = world();
        let key = OutcomeKey::generate(&mut known("outcome")).unwrap();
        let decision = sign_decision(
            &world.opened(),
            &ruling(Verdict::Approve),
            &world.phone,
            &mut known("decision"),
        );
        Self {
            artifact: artifact(&key),
            enforcer: world.context().enforcer_id,
            decision: decision.unwrap(),
            key,
        }
    }

    fn statement(&self) -> OutcomeStatement {
        let decision = json::parse(self.decision.as_bytes()).unwrap();
        OutcomeStatement {
            request_id: self.artifact.request_id().clone(),
            artifact_hash: self.artifact.hash(),
            tenant: tenant(),
            enforcer: self.enforcer.clone(),
            effect: OutcomeEffect::Allowed,
            decisions: vec![decision_digest(&decision).unwrap()],
            at: now(),
        }
    }

    fn sign(&self, change: impl FnOnce(&mut OutcomeStatement)) -> String {
        let mut statement = self.statement();
        change(&mut statement);
        self.key.sign(&statement).unwrap()
    }

    fn verify(&self, envelope: &str) -> Result<OutcomeStatement, Error> {
        let decision = json::parse(self.decision.as_bytes()).unwrap();
        verify_outcome(
            envelope,
            &self.artifact,
            &tenant(),
            &self.enforcer,
            &decision,
        )
    }
}

/// An envelope around `payload`, truly signed.
fn signed(payload: &str) -> Value {
    let secret = *known_secret();
    let key = ed25519_dalek::SigningKey::from_bytes(&secret);
    let kind = "application/vnd.in-toto+json";
    let message = format!("DSSEv1 {} {kind} {} {payload}", kind.len(), payload.len());
    let signature = ed25519_dalek::Signer::sign(&key, message.as_bytes());
    json!({
        "payload": STANDARD.encode(payload), "payloadType": kind,
        "signatures": [{ "sig": STANDARD.encode(signature.to_bytes()) }],
    })
}

/// The seed of the key in these tests.
fn known_secret() -> zeroize::Zeroizing<[u8; 32]> {
    use countersign_e2e::RandomSource as _;
    let mut secret = zeroize::Zeroizing::new([0; 32]);
    known("outcome").fill(&mut *secret).unwrap();
    secret
}

fn canonical_of(value: &Value) -> String {
    canonical(&json::parse(value.to_string().as_bytes()).unwrap())
}

const EFFECTS: [OutcomeEffect; 6] = [
    OutcomeEffect::Allowed,
    OutcomeEffect::Denied(DenialCause::Rejected),
    OutcomeEffect::Denied(DenialCause::Missing),
    OutcomeEffect::Denied(DenialCause::Untrusted),
    OutcomeEffect::Denied(DenialCause::Interrupted),
    OutcomeEffect::Denied(DenialCause::Changed),
];

fn refused(scene: &Scene) -> Vec<(&'static str, Value)> {
    let good: Value = serde_json::from_str(&scene.sign(|_| {})).unwrap();
    let payload = STANDARD.decode(good["payload"].as_str().unwrap()).unwrap();
    let statement: Value = serde_json::from_slice(&payload).unwrap();
    let other_key = OutcomeKey::generate(&mut known("another")).unwrap();
    let with = |pointer: &str, value: Value| {
        let mut changed = statement.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        signed(&canonical_of(&changed))
    };
    let envelope = |name: &str, value: Value| {
        let mut changed = good.clone();
        changed[name] = value;
        changed
    };
    let parsed = |text: String| -> Value { serde_json::from_str(&text).unwrap() };
    let further = |pointer: &str| {
        let mut changed = statement.clone();
        changed.pointer_mut(pointer).unwrap()["more"] = json!(1);
        signed(&canonical_of(&changed))
    };
    let url_safe = URL_SAFE_NO_PAD.encode(&payload);
    vec![
        (
            "signed with another key",
            parsed(other_key.sign(&scene.statement()).unwrap()),
        ),
        (
            "a signature of another statement",
            envelope(
                "signatures",
                parsed(scene.sign(|it| it.effect = EFFECTS[1]))["signatures"].clone(),
            ),
        ),
        (
            "about another request",
            parsed(scene.sign(|it| it.request_id = RequestId::parse("another").unwrap())),
        ),
        (
            "about another artifact",
            with("/subject/0/digest/sha256", json!("0".repeat(64))),
        ),
        (
            "of another tenant",
            parsed(scene.sign(|it| it.tenant = TenantId::parse("another").unwrap())),
        ),
        (
            "of another enforcer",
            parsed(scene.sign(|it| it.enforcer = EnforcerId::parse("another").unwrap())),
        ),
        (
            "about another decision",
            with("/predicate/decisions/0", json!("0".repeat(64))),
        ),
        ("about no decision", with("/predicate/decisions", json!([]))),
        (
            "about too many decisions",
            with(
                "/predicate/decisions",
                vec![statement["predicate"]["decisions"][0].clone(); 65].into(),
            ),
        ),
        (
            "an unknown outcome",
            with("/predicate/outcome", json!("maybe")),
        ),
        (
            "allowed with a cause",
            with("/predicate/cause", json!("rejected")),
        ),
        (
            "denied without a cause",
            with("/predicate/outcome", json!("denied")),
        ),
        ("a later version", with("/predicate/v", json!(2))),
        (
            "another type",
            with("/_type", json!("https://in-toto.io/Statement/v2")),
        ),
        (
            "another predicate",
            with("/predicateType", json!("urn:countersign:outcome:v2")),
        ),
        (
            "two subjects",
            with(
                "/subject",
                json!([statement["subject"][0], statement["subject"][0]]),
            ),
        ),
        ("a further member", further("/predicate")),
        ("a further member of the statement", further("")),
        ("a further member of the subject", further("/subject/0")),
        (
            "not in canonical form",
            signed(&format!("{} ", canonical_of(&statement))),
        ),
        ("no time", with("/predicate/at", json!("yesterday"))),
        (
            "another payload type",
            envelope("payloadType", json!("text/plain")),
        ),
        ("base64url", envelope("payload", json!(url_safe))),
        ("no signature", envelope("signatures", json!([]))),
        (
            "two signatures",
            envelope(
                "signatures",
                json!([good["signatures"][0], good["signatures"][0]]),
            ),
        ),
        (
            "a short signature",
            envelope("signatures", json!([{ "sig": "AAAA" }])),
        ),
        (
            "two requests and no set",
            with("/subject", {
                let mut other = statement["subject"][0].clone();
                other["name"] = json!("another");
                json!([statement["subject"][0], other])
            }),
        ),
        (
            "a further member of the envelope",
            envelope("more", json!(1)),
        ),
    ]
}

#[test]
fn an_outcome_is_believed_only_as_the_enforcer_signed_it() {
    let scene = Scene::new();
    let accepted = EFFECTS.map(|effect| {
        let envelope = scene.sign(|statement| statement.effect = effect);
        assert_eq!(scene.verify(&envelope).unwrap().effect, effect);
        json!({ "outcome": effect.to_string().rsplit(' ').next(), "envelope": envelope })
    });
    let refused: Vec<_> = refused(&scene)
        .into_iter()
        .map(|(name, envelope)| {
            let text = envelope.to_string();
            let result = scene.verify(&text);
            assert!(result.is_err(), "{name}: {result:?}");
            json!({ "name": name, "envelope": text })
        })
        .collect();
    let vectors = json!({
        "artifact": scene.artifact.text(),
        "tenantId": tenant().as_str(),
        "enforcerId": scene.enforcer.as_str(),
        "decision": scene.decision,
        "accepted": accepted,
        "refused": refused,
        "set": set_vectors(),
    });
    check_vectors("outcome.json", &vectors);
}

#[test]
fn an_artifact_names_a_sound_key_or_none() {
    let read = |named: Value| {
        let mut members: Value = serde_json::from_str(ARTIFACT).unwrap();
        members["extensions"] = json!({ OUTCOME: named });
        let read = PlainArtifact::complete(&members.to_string(), &mut known("artifact"));
        read.map(|artifact| artifact.outcome_key().copied())
    };
    let key = OutcomeKey::generate(&mut known("outcome")).unwrap();
    let mut members = Map::new();
    key.name_in(&mut members);
    let named = members["extensions"][OUTCOME].clone();
    assert!(read(named.clone()).unwrap().is_some());
    assert_eq!(read(json!({ "v": 2, "other": [] })).unwrap(), None);
    let weak = URL_SAFE_NO_PAD.encode([0_u8; 32]);
    for wrong in [
        json!({ "v": 1 }),
        json!({ "key": named["key"] }),
        json!({ "v": 1, "key": weak }),
        json!({ "v": 1, "key": "AAAA" }),
        json!({ "v": 1, "key": named["key"], "more": 1 }),
        json!("key"),
    ] {
        let refused = read(wrong.clone()).unwrap_err();
        assert!(
            matches!(refused, Error::Member { .. }),
            "{wrong}: {refused:?}"
        );
    }
    let scene = Scene::new();
    let without = PlainArtifact::complete(ARTIFACT, &mut known("artifact")).unwrap();
    let decision = json::parse(scene.decision.as_bytes()).unwrap();
    let envelope = scene.sign(|_| {});
    let refused = verify_outcome(&envelope, &without, &tenant(), &scene.enforcer, &decision);
    assert!(matches!(refused, Err(Error::NoOutcomeKey)));
}
