//! An enforcer acts on what a pinned device approved for this request, and on nothing else.

use countersign_e2e::{
    ArtifactHints, DecisionContent, DecisionScope, DeviceKeys, Error, Grant, GrantMatch,
    GrantOutcome, VerifiedApproval, VerifiedDecision, accept, accept_again, reject_unopened,
    sign_decision,
};
use countersign_protocol::canonical::Sha256Hex;
use countersign_protocol::decision::Verdict;
use countersign_protocol::id::{RequestId, TextId as _};
use countersign_protocol::timestamp::Timestamp;
use serde_json::{Value, json};

use super::people::{World, device, known, node, now, revoke, ruling, time, world};

fn signed(world: &World, keys: &DeviceKeys, ruling: &DecisionContent) -> String {
    sign_decision(&world.opened(), ruling, keys, &mut known("decision")).unwrap()
}

fn judge(world: &World, body: &str) -> Result<VerifiedDecision, Error> {
    accept(
        &node(body),
        &world.request(),
        &world.enforcer,
        &[&world.trust],
        now(),
    )
}

fn approval(world: &World, body: &str) -> VerifiedApproval {
    match judge(world, body).unwrap() {
        VerifiedDecision::Approved(approval) => approval,
        VerifiedDecision::Rejected(_) => panic!("it was approved"),
    }
}

/// Signs whatever members it is given, as a device could that is not ours.
fn sign_raw(keys: &DeviceKeys, members: &Value) -> String {
    use base64::Engine as _;
    use ed25519_dalek::Signer as _;
    let key = ed25519_dalek::SigningKey::from_bytes(&keys.secrets().0);
    let signature = key.sign(super::vectors::canon(members).as_bytes());
    let mut members = members.clone();
    let text = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(signature.to_bytes());
    members["signature"] = text.into();
    members.to_string()
}

fn members(world: &World, ruling: &DecisionContent) -> Value {
    let mut members: Value = serde_json::from_str(&signed(world, &world.phone, ruling)).unwrap();
    members.as_object_mut().unwrap().remove("signature");
    members
}

#[test]
fn either_device_approves_and_the_enforcer_knows_who_did() {
    let world = world();
    for keys in [&world.phone, &world.laptop] {
        let body = signed(&world, keys, &ruling(Verdict::Approve));
        let approval = approval(&world, &body);
        assert_eq!(approval.device, keys.id());
        assert_eq!(approval.approver.as_str(), "alice");
        assert_eq!(
            approval.grant,
            GrantOutcome::NotGiven("it is for one request only")
        );
    }
    let body = signed(&world, &world.phone, &ruling(Verdict::Reject));
    assert!(matches!(
        judge(&world, &body).unwrap(),
        VerifiedDecision::Rejected(_)
    ));
}

#[test]
fn unknown_and_revoked_devices_decide_nothing() {
    let mut world = world();
    let (stranger, _) = device("stranger");
    let body = signed(&world, &stranger, &ruling(Verdict::Approve));
    assert_eq!(
        judge(&world, &body).unwrap_err(),
        Error::UnknownDevice(stranger.id())
    );
    let body = signed(&world, &world.laptop, &ruling(Verdict::Approve));
    world
        .trust
        .follow(&revoke(&world.phone, &world.laptop))
        .unwrap();
    assert_eq!(
        judge(&world, &body).unwrap_err(),
        Error::RevokedDevice(world.laptop.id())
    );
}

#[test]
fn a_rejection_cannot_be_turned_into_an_approval() {
    let world = world();
    let body = signed(&world, &world.phone, &ruling(Verdict::Reject));
    let flipped = body.replace("\"reject\"", "\"approve\"");
    assert_eq!(
        judge(&world, &flipped).unwrap_err(),
        Error::DecisionSignature
    );
    // Nor by naming a device that did not sign.
    let lent = body.replace(
        &world.phone.id().to_string(),
        &world.laptop.id().to_string(),
    );
    assert_eq!(judge(&world, &lent).unwrap_err(), Error::DecisionSignature);
}

#[test]
fn a_decision_is_for_one_request_one_artifact_and_one_repository() {
    let world = world();
    let body = signed(&world, &world.phone, &ruling(Verdict::Approve));
    let asked = [&world.trust];
    let judge = |change: &dyn Fn(&mut countersign_e2e::OwnRequest)| {
        let mut request = world.request();
        change(&mut request);
        accept(&node(&body), &request, &world.enforcer, &asked, now())
    };
    let other = RequestId::parse("01J2V8V3K6B2Z9X6G1V7Y2QK8J").unwrap();
    for (what, outcome) in [
        (
            "request",
            judge(&|request| request.request_id = other.clone()),
        ),
        (
            "artifact",
            judge(&|request| request.artifact_hash = Sha256Hex::of(b"other")),
        ),
        (
            "repository",
            judge(&|request| request.repo_ref = "repo:other".to_owned()),
        ),
        (
            "repository",
            judge(&|request| request.repo_ref = String::new()),
        ),
    ] {
        assert_eq!(outcome.unwrap_err(), Error::OtherSubject { what });
    }
}

#[test]
fn time_is_judged_by_the_enforcers_clock_to_the_moment() {
    let world = world();
    let early = DecisionContent {
        expires_at: time("2026-02-21T12:05:00Z"),
        ..ruling(Verdict::Approve)
    };
    let late = DecisionContent {
        expires_at: time("2026-02-21T13:00:00Z"),
        ..ruling(Verdict::Approve)
    };
    let at = |ruling: &DecisionContent, now: &str| {
        let body = signed(&world, &world.phone, ruling);
        accept(
            &node(&body),
            &world.request(),
            &world.enforcer,
            &[&world.trust],
            time(now),
        )
    };
    assert!(at(&early, "2026-02-21T12:04:59.999999Z").is_ok());
    assert_eq!(
        at(&early, "2026-02-21T12:05:00Z").unwrap_err(),
        Error::DecisionExpired
    );
    assert!(at(&late, "2026-02-21T12:09:59.999999Z").is_ok());
    assert_eq!(
        at(&late, "2026-02-21T12:10:00Z").unwrap_err(),
        Error::RequestExpired
    );
}

#[test]
fn only_the_full_form_is_accepted_and_without_additions() {
    let world = world();
    let full = members(&world, &ruling(Verdict::Approve));
    let mut compact = full.clone();
    for name in [
        "sigAlg",
        "scope",
        "expiresAt",
        "repoRef",
        "requestId",
        "artifactHashAlg",
    ] {
        compact.as_object_mut().unwrap().remove(name);
    }
    let refused = judge(&world, &sign_raw(&world.phone, &compact)).unwrap_err();
    assert_eq!(refused, Error::CompactDecision);
    for name in [
        "scope",
        "expiresAt",
        "repoRef",
        "requestId",
        "artifactHash",
        "decision",
        "nonce",
    ] {
        let mut fewer = full.clone();
        fewer.as_object_mut().unwrap().remove(name);
        let refused = judge(&world, &sign_raw(&world.phone, &fewer)).unwrap_err();
        assert!(
            refused.to_string().contains(&format!("/{name}")),
            "{refused}"
        );
    }
    let mut more = full.clone();
    more["reason"] = "fine".into();
    let refused = judge(&world, &sign_raw(&world.phone, &more)).unwrap_err();
    assert!(refused.to_string().contains("/reason"), "{refused}");
    for (name, value) in [
        ("sigAlg", "ES256"),
        ("artifactHashAlg", "MD5"),
        ("decision", "allow"),
    ] {
        let mut other = full.clone();
        other[name] = value.into();
        let refused = judge(&world, &sign_raw(&world.phone, &other)).unwrap_err();
        assert!(
            refused.to_string().contains(&format!("/{name}")),
            "{refused}"
        );
    }
    assert!(judge(&world, "[]").is_err());
}

#[test]
fn a_statement_is_no_decision() {
    let world = world();
    let statement = revoke(&world.phone, &world.laptop);
    assert!(judge(&world, &statement.to_text()).is_err());
    assert!(judge(&world, statement.statement().text()).is_err());
}

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
fn what_was_not_opened_can_be_rejected() {
    let world = world();
    let random = &mut known("decision");
    let parties = (&world.phone, Some(&world.pinned_enforcer));
    let request = world.request();
    let (id, hash, until) = (
        &request.request_id,
        request.artifact_hash,
        request.expires_at,
    );
    let body = reject_unopened(
        (id, ""),
        hash,
        until,
        ArtifactHints::default(),
        parties,
        random,
    )
    .unwrap();
    assert!(matches!(
        judge(&world, &body).unwrap(),
        VerifiedDecision::Rejected(_)
    ));
    let stranger = (&world.phone, None);
    let body = reject_unopened(
        (id, ""),
        hash,
        until,
        ArtifactHints::default(),
        stranger,
        random,
    )
    .unwrap();
    assert!(matches!(
        judge(&world, &body).unwrap(),
        VerifiedDecision::Rejected(_)
    ));
    let reason = ArtifactHints {
        reason: Some("who are you?".to_owned()),
        ..ArtifactHints::default()
    };
    let refused = reject_unopened((id, ""), hash, until, reason, stranger, random).unwrap_err();
    assert_eq!(refused, Error::HintsForNobody);
    // The empty repository passes for a rejection alone.
    let mut members = members(&world, &ruling(Verdict::Approve));
    members["repoRef"] = "".into();
    let refused = judge(&world, &sign_raw(&world.phone, &members)).unwrap_err();
    assert_eq!(refused, Error::OtherSubject { what: "repository" });
}

fn grant(
    world: &World,
    scope: DecisionScope,
    until: &str,
    wanted: Option<GrantMatch>,
) -> GrantOutcome {
    let body = signed(
        world,
        &world.phone,
        &DecisionContent {
            scope,
            expires_at: time(until),
            hints: ArtifactHints {
                grant: wanted,
                ..ArtifactHints::default()
            },
            ..ruling(Verdict::Approve)
        },
    );
    approval(world, &body).grant
}

#[test]
fn a_grant_needs_a_scope_and_its_terms_and_ends_within_a_day() {
    let world = world();
    let prefix = GrantMatch::prefix(vec!["git".to_owned(), "commit".to_owned()]);
    let soon = "2026-02-21T13:00:00Z";
    let given = |matches, until: &str, session_only| {
        let until = time(until);
        GrantOutcome::Given(Grant {
            matches,
            until,
            session_only,
        })
    };
    let same = grant(&world, DecisionScope::Timebox, soon, Some(GrantMatch::Same));
    assert_eq!(same, given(GrantMatch::Same, soon, false));
    let words = grant(&world, DecisionScope::Session, soon, prefix.clone());
    assert_eq!(words, given(prefix.clone().unwrap(), soon, true));
    let long = grant(
        &world,
        DecisionScope::Timebox,
        "2026-03-21T12:00:00Z",
        prefix.clone(),
    );
    assert_eq!(
        long,
        given(prefix.clone().unwrap(), "2026-02-22T12:01:00Z", false)
    );
    let once = grant(&world, DecisionScope::Once, soon, Some(GrantMatch::Same));
    assert_eq!(once, GrantOutcome::NotGiven("it is for one request only"));
    let vague = grant(&world, DecisionScope::Timebox, soon, None);
    assert_eq!(
        vague,
        GrantOutcome::NotGiven("it does not say what else it permits")
    );
    for words in [vec![], vec![String::new()], vec!["a\nb".to_owned()]] {
        assert_eq!(GrantMatch::prefix(words), None);
    }
}

#[test]
fn a_grant_that_is_not_understood_permits_one_request() {
    let world = world();
    let timebox = DecisionContent {
        scope: DecisionScope::Timebox,
        ..ruling(Verdict::Approve)
    };
    for odd in [
        json!({"match": "any"}),
        json!({"match": "same", "argv": ["rm"]}),
        json!({"match": "prefix"}),
        json!({"match": "prefix", "argv": []}),
        json!({"match": "prefix", "argv": ["git", 1]}),
        json!("same"),
    ] {
        let mut members = members(&world, &timebox);
        members["policyHints"] = json!({"grant": odd});
        let approval = approval(&world, &sign_raw(&world.phone, &members));
        let refused = GrantOutcome::NotGiven("what else it permits is not understood");
        assert_eq!(approval.grant, refused, "{odd}");
    }
}

#[test]
fn a_stored_grant_is_judged_again_at_each_use() {
    let mut world = world();
    let body = signed(
        &world,
        &world.phone,
        &DecisionContent {
            scope: DecisionScope::Timebox,
            expires_at: time("2026-03-21T12:00:00Z"),
            hints: ArtifactHints {
                grant: Some(GrantMatch::Same),
                ..ArtifactHints::default()
            },
            ..ruling(Verdict::Approve)
        },
    );
    let again = |world: &World, body: &str, at: Timestamp| {
        let (request, asked) = (world.request(), [&world.trust]);
        accept_again(&node(body), &request, &world.enforcer, &asked, (now(), at))
    };
    let later = time("2026-02-21T20:00:00Z");
    assert_eq!(
        again(&world, &body, later).unwrap().matches,
        GrantMatch::Same
    );
    let after = time("2026-02-22T12:01:00Z");
    assert_eq!(
        again(&world, &body, after).unwrap_err(),
        Error::DecisionExpired
    );
    let once = signed(&world, &world.phone, &ruling(Verdict::Approve));
    assert!(matches!(
        again(&world, &once, now()).unwrap_err(),
        Error::NoGrant(_)
    ));
    let rejected = signed(&world, &world.phone, &ruling(Verdict::Reject));
    assert!(matches!(
        again(&world, &rejected, now()).unwrap_err(),
        Error::NoGrant(_)
    ));
    world
        .trust
        .follow(&revoke(&world.laptop, &world.phone))
        .unwrap();
    assert_eq!(
        again(&world, &body, later).unwrap_err(),
        Error::RevokedDevice(world.phone.id())
    );
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
