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
        answers: Some(vec![vec!["in secret".to_owned()]]),
        teams: Vec::new(),
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
        ["only in", "approve-once", "in secret"]
            .iter()
            .all(|it| !body.contains(it)),
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
    let most = vec![vec!["é".repeat(4_000)]; 16];
    let Ok(VerifiedDecision::Approved(approval)) =
        with(Verdict::Approve, json!({ "answers": most }))
    else {
        panic!("answers are read");
    };
    assert_eq!(approval.hints.answers, Some(most));
    for odd in [
        json!({"dryRun": true}),
        json!({"reason": 1}),
        json!({"answers": "yes"}),
        json!({"answers": []}),
        json!({"answers": [[]]}),
        json!({"answers": [["yes"], [""]]}),
        json!({"answers": [["yes"], [1]]}),
        json!({"answers": ["yes"]}),
        json!({"answers": vec![["yes"]; 17]}),
        json!({"answers": [vec!["yes"; 65]]}),
        json!({"answers": [["y".repeat(4_001)]]}),
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

#[test]
fn answers_that_no_enforcer_would_read_are_not_signed() {
    let world = world();
    let text = |chars: usize| "é".repeat(chars);
    for (answers, is_good) in [
        (vec![vec![text(4_000)]; 16], true),
        (vec![vec![text(1); 64]], true),
        (vec![vec![text(1); 65]], false),
        (vec![vec![text(1)]; 17], false),
        (vec![vec![text(4_001)]], false),
        (vec![vec![text(0)]], false),
        (vec![vec![]], false),
        (vec![], false),
    ] {
        let ruling = DecisionContent {
            hints: ArtifactHints {
                answers: Some(answers),
                ..ArtifactHints::default()
            },
            ..ruling(Verdict::Approve)
        };
        let random = &mut known("decision");
        let signed = sign_decision(&world.opened(), &ruling, &world.phone, random);
        assert_eq!(signed.is_ok(), is_good);
        assert!(is_good || signed == Err(Error::OddAnswers));
    }
}
