//! The outcome of a set, as the device of one of its people reads it. The cases are the member
//! `set` of `tests/vectors/outcome.json`.

use countersign_e2e::{
    ArtifactHints, DenialCause, Error, OutcomeEffect, OutcomeStatement, OutcomeSubject, SetId,
    verify_outcome,
};
use countersign_protocol::canonical::Sha256Hex;
use countersign_protocol::decision::Verdict;
use countersign_protocol::id::{RequestId, TextId as _};
use serde_json::{Value, json};

use super::people::{bot, known, node, tenant};
use super::several::{
    PartDecision, SetScene, comment, outcome_statement, set_id, subjects, two_of_three,
};

fn decided(scene: &SetScene) -> Vec<PartDecision> {
    vec![
        scene.decide("alice", Verdict::Approve, comment("fine")),
        scene.decide("bob", Verdict::Approve, comment("go")),
        scene.decide("carol", Verdict::Reject, ArtifactHints::default()),
    ]
}

/// As the device of the person at `place` reads it.
fn verify(envelope: &str, own: &PartDecision) -> Result<OutcomeStatement, Error> {
    let decision = node(&own.part.decision);
    verify_outcome(envelope, &own.artifact, &tenant(), &bot(), &decision)
}

fn refused(scene: &SetScene, decided: &[PartDecision]) -> Vec<(&'static str, String)> {
    let statement = outcome_statement(decided, OutcomeEffect::Allowed);
    let further = subjects(&decided[1..]);
    let own = &subjects(decided)[1];
    let sign = |statement: &OutcomeStatement, set, further: &[OutcomeSubject]| {
        scene.key.sign_set(statement, set, further).unwrap()
    };
    let mut swapped = statement.clone();
    swapped.decisions.swap(1, 2);
    let mut replaced = statement.clone();
    replaced.decisions[1] = Sha256Hex::of(b"another");
    let fewer = OutcomeStatement {
        decisions: vec![statement.decisions[0], statement.decisions[2]],
        ..statement.clone()
    };
    let other_set = SetId::generate(&mut known("another")).unwrap();
    let other_hash = OutcomeSubject {
        artifact_hash: Sha256Hex::of(b"another"),
        ..own.clone()
    };
    let other_request = OutcomeSubject {
        request_id: RequestId::parse("another").unwrap(),
        ..own.clone()
    };
    let last = further[1].clone();
    let alone = OutcomeStatement {
        request_id: own.request_id.clone(),
        artifact_hash: own.artifact_hash,
        decisions: vec![statement.decisions[1]],
        ..statement.clone()
    };
    vec![
        ("of another set", sign(&statement, other_set, &further)),
        ("without the set", scene.key.sign(&alone).unwrap()),
        (
            "without the own part",
            sign(&fewer, set_id(), &further[1..]),
        ),
        (
            "with another artifact of the own part",
            sign(&statement, set_id(), &[other_hash, last.clone()]),
        ),
        (
            "with another request in the own place",
            sign(&statement, set_id(), &[other_request, last]),
        ),
        (
            "with the digests in another order",
            sign(&swapped, set_id(), &further),
        ),
        (
            "about another decision",
            sign(&replaced, set_id(), &further),
        ),
    ]
}

/// The cases as vectors, after they were checked.
pub fn set_vectors() -> Value {
    let scene = SetScene::new(Some(two_of_three()));
    let decided = decided(&scene);
    let effects = [
        OutcomeEffect::Allowed,
        OutcomeEffect::Denied(DenialCause::Rejected),
        OutcomeEffect::Denied(DenialCause::Missing),
    ];
    let accepted = effects.map(|effect| {
        let envelope = scene.outcome(&decided, effect);
        for own in &decided {
            let read = verify(&envelope, own).unwrap();
            assert_eq!((read.effect, read.decisions.len()), (effect, 3));
            assert_eq!(read.request_id, *own.artifact.request_id());
        }
        json!({ "outcome": effect.to_string().rsplit(' ').next(), "envelope": envelope })
    });
    let refused = refused(&scene, &decided)
        .into_iter()
        .map(|(name, envelope)| {
            let result = verify(&envelope, &decided[1]);
            assert!(
                matches!(result, Err(Error::OtherOutcome { .. })),
                "{name}: {result:?}"
            );
            json!({ "name": name, "envelope": envelope })
        });
    json!({
        "artifact": decided[1].artifact.text(),
        "tenantId": tenant().as_str(),
        "enforcerId": bot().as_str(),
        "decision": decided[1].part.decision,
        "accepted": accepted,
        "refused": refused.collect::<Value>(),
    })
}

#[test]
fn an_outcome_of_a_set_that_nobody_could_read_is_not_signed() {
    let scene = SetScene::new(Some(two_of_three()));
    let decided = decided(&scene);
    let statement = outcome_statement(&decided, OutcomeEffect::Allowed);
    let further = subjects(&decided[1..]);
    let twice = [further[0].clone(), further[0].clone()];
    let sign = |further: &[OutcomeSubject]| scene.key.sign_set(&statement, set_id(), further);
    assert!(sign(&further).is_ok());
    assert!(matches!(sign(&further[..1]), Err(Error::Member(_))));
    assert!(matches!(sign(&twice), Err(Error::Member(_))));
}

/// The gateway takes no longer outcome, so there must be an error before it is sent.
#[test]
fn an_outcome_is_as_long_as_a_gateway_takes_or_is_refused() {
    let scene = SetScene::new(Some(two_of_three()));
    let decided = decided(&scene);
    let sign = |count: usize| {
        let mut statement = outcome_statement(&decided, OutcomeEffect::Allowed);
        statement.decisions = vec![statement.decisions[0]; count];
        let further = (1..count).map(|place| OutcomeSubject {
            request_id: RequestId::parse(&format!("01J2V8V3K6B2Z9X6G1V7Y2Q{place:03}")).unwrap(),
            artifact_hash: decided[0].artifact.hash(),
        });
        let further: Vec<_> = further.collect();
        scene.key.sign_set(&statement, set_id(), &further)
    };
    assert!(sign(56).unwrap().len() <= 16 << 10);
    assert_eq!(sign(64), Err(Error::LongOutcome { limit: 16 << 10 }));
}

#[test]
fn an_artifact_without_a_rule_has_no_outcome_of_a_set() {
    let scene = SetScene::new(None);
    let own = scene.decide("alice", Verdict::Approve, ArtifactHints::default());
    let decided = [own];
    let statement = outcome_statement(&decided, OutcomeEffect::Allowed);
    let single = scene.key.sign(&statement).unwrap();
    assert!(verify(&single, &decided[0]).is_ok());
    let of_set = scene.key.sign_set(&statement, set_id(), &[]).unwrap();
    let refused = verify(&of_set, &decided[0]);
    assert_eq!(refused, Err(Error::OtherOutcome { what: "set" }));
}
