//! Additions of a person to a decision: a reason, an action, the terms of a grant.

use super::judging::{approval, judge, members, sign_raw, signed};
use super::people::{known, ruling, world};
use countersign_e2e::{ArtifactHints, DecisionContent, Error, VerifiedDecision, sign_decision};
use countersign_protocol::decision::Verdict;
use serde_json::{Value, json};

#[test]
fn what_a_person_adds_reaches_the_enforcer_and_not_the_gateway() {
    let world = world();
    let hints = ArtifactHints {
        reason: Some("only in the build directory".to_owned()),
        action_id: Some("approve-once".to_owned()),
        grant: None,
    };
    let body = signed(
        &world,
        &world.phone,
        &DecisionContent {
            hints: hints.clone(),
            ..ruling(Verdict::Approve)
        },
    );
    assert!(
        !body.contains("only in") && !body.contains("approve-once"),
        "{body}"
    );
    assert_eq!(approval(&world, &body).hints, hints);
    assert!(
        !format!("{hints:?}").contains("only in"),
        "a reason is not printed"
    );
}

#[test]
fn hints_in_plain_are_read_and_unknown_ones_stop_an_approval() {
    let world = world();
    let with = |verdict, hints: Value| {
        let mut members = members(&world, &ruling(verdict));
        members["policyHints"] = hints;
        judge(&world, &sign_raw(&world.phone, &members))
    };
    let Ok(VerifiedDecision::Approved(approval)) =
        with(Verdict::Approve, json!({"reason": "fine"}))
    else {
        panic!("plain hints are read");
    };
    assert_eq!(approval.hints.reason.as_deref(), Some("fine"));
    for odd in [
        json!({"dryRun": true}),
        json!({"reason": 1}),
        json!({"sealed": {}}),
        json!({"sealed": {}, "reason": "x"}),
    ] {
        let refused = with(Verdict::Approve, odd.clone()).unwrap_err();
        assert!(matches!(refused, Error::Hints(_)), "{odd}: {refused}");
        assert!(matches!(
            with(Verdict::Reject, odd),
            Ok(VerifiedDecision::Rejected(_))
        ));
    }
}

#[test]
fn hints_are_for_one_decision_of_one_device() {
    let world = world();
    let with_hints = DecisionContent {
        hints: ArtifactHints {
            reason: Some("fine".to_owned()),
            ..ArtifactHints::default()
        },
        ..ruling(Verdict::Approve)
    };
    let mut members = members(&world, &with_hints);
    members["signerKeyId"] = world.laptop.id().to_string().into();
    let refused = judge(&world, &sign_raw(&world.laptop, &members)).unwrap_err();
    assert_eq!(refused, Error::Hints(Box::new(Error::KeyNotOpened)));
}

#[test]
fn what_a_person_adds_is_bounded_as_it_is_read() {
    type MakeHints = fn(String) -> ArtifactHints;
    let world = world();
    let bounds: [(usize, MakeHints); 2] = [
        (4_000, |text| ArtifactHints {
            reason: Some(text),
            ..ArtifactHints::default()
        }),
        (1_024, |text| ArtifactHints {
            action_id: Some(text),
            ..ArtifactHints::default()
        }),
    ];
    for (chars, hints) in bounds {
        let decide = |length: usize| {
            let hints = hints("é".repeat(length));
            let ruling = DecisionContent {
                hints,
                ..ruling(Verdict::Approve)
            };
            let random = &mut known("decision");
            sign_decision(&world.opened(), &ruling, &world.phone, random)
        };
        let body = decide(chars).unwrap();
        let outcome = judge(&world, &body).unwrap();
        assert!(matches!(outcome, VerifiedDecision::Approved(_)), "{chars}");
        let refused = decide(chars + 1).unwrap_err();
        let expected = [
            Error::LongReason { limit: chars },
            Error::LongAction { limit: chars },
        ];
        assert!(expected.contains(&refused), "{refused}");
    }
}
