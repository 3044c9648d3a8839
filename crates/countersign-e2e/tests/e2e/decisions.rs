//! An enforcer acts only on the approval of a pinned device for this request.

use super::judging::{approval, judge, members, sign_raw, signed};
use super::people::{device, known, node, now, revoke, ruling, time, world};
use countersign_e2e::{
    ArtifactHints, DecisionContent, Error, GrantOutcome, VerifiedDecision, accept, reject_unopened,
};
use countersign_protocol::canonical::Sha256Hex;
use countersign_protocol::decision::Verdict;
use countersign_protocol::id::{RequestId, TextId as _};

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
