//! Grants: permissions of a signature beyond the one request.

use super::judging::{approval, members, sign_raw, signed};
use super::people::{World, node, now, revoke, ruling, time, world};
use countersign_e2e::{
    ArtifactHints, DecisionContent, DecisionScope, Error, Grant, GrantMatch, GrantOutcome,
    WordPattern, accept_again,
};
use countersign_protocol::decision::Verdict;
use countersign_protocol::timestamp::Timestamp;
use serde_json::json;

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
fn words_may_be_free_and_edits_are_for_a_session_only() {
    let world = world();
    let soon = "2026-02-21T13:00:00Z";
    let words = vec![Some("git".to_owned()), Some("commit".to_owned()), None];
    let given = |matches: &GrantMatch, session_only| {
        GrantOutcome::Given(Grant {
            matches: matches.clone(),
            until: time(soon),
            session_only,
        })
    };
    for more in [false, true] {
        let pattern = WordPattern::new(words.clone(), more).unwrap();
        let matches = GrantMatch::Words(pattern);
        for (scope, session_only) in [
            (DecisionScope::Timebox, false),
            (DecisionScope::Session, true),
        ] {
            let found = grant(&world, scope, soon, Some(matches.clone()));
            assert_eq!(found, given(&matches, session_only));
        }
    }
    for matches in [GrantMatch::File, GrantMatch::Project] {
        let found = grant(&world, DecisionScope::Session, soon, Some(matches.clone()));
        assert_eq!(found, given(&matches, true));
        let found = grant(&world, DecisionScope::Timebox, soon, Some(matches));
        let refused = GrantOutcome::NotGiven("edits are permitted for a session only");
        assert_eq!(found, refused);
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
        json!({"match": "file", "argv": ["git"]}),
        json!({"match": "project", "path": "/"}),
        json!({"match": "words"}),
        json!({"match": "words", "argv": []}),
        json!({"match": "words", "argv": [null, "commit"]}),
        json!({"match": "words", "argv": ["git", 1]}),
        json!({"match": "words", "argv": ["git", ""]}),
        json!({"match": "words", "argv": ["git"], "more": "yes"}),
        json!({"match": "words", "argv": ["git"], "less": true}),
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
