//! Teams: which state may follow which, and forks. `tests/vectors/team.json` is for other
//! implementers; after a deliberate change, run this once with `WRITE_VECTORS=1`.

use countersign_e2e::{
    CommentDuty, Error, SignedTeamState, TeamChain, TeamContent, TeamHead, TeamState,
};
use serde_json::{Value, json};

use super::people::{known, now, tenant};
use super::several::person;
use super::team_cases::{allowed, forbidden, unsound};
use super::team_consents::consent_vectors;
use super::team_rules::{approval_vectors, minimum_vectors};
use super::team_scene::{TeamScene, bundle, key, own, stand_in};
use super::texts::{check_published, parsed};

fn chain_vectors() -> Vec<Value> {
    let mut vectors = Vec::new();
    for (name, changes, by, change) in allowed() {
        let mut scene = TeamScene::new(changes);
        let signed = scene.next(by, change);
        assert_eq!(scene.follow(&signed), Ok(true), "{name}");
        assert_eq!(scene.follow(&signed), Ok(false), "{name}: once more");
        scene.states.pop();
        assert_eq!(scene.chain.head(), signed.state().head(), "{name}");
        vectors.push(scene.vector(name, None));
    }
    for (name, changes, by, change) in forbidden() {
        let mut scene = TeamScene::new(changes);
        let (before, signed) = (scene.chain.clone(), scene.next(by, change));
        let refused = scene.follow(&signed).unwrap_err();
        assert_ne!(refused, Error::TeamFork, "{name}");
        assert_eq!(scene.chain, before, "{name}");
        vectors.push(scene.vector(name, Some(&refused)));
    }
    vectors.extend(fork_vectors());
    vectors
}

fn fork_vectors() -> Vec<Value> {
    let raise = |it: &mut TeamContent| it.minimum.approvals = 2;
    let comment = |it: &mut TeamContent| it.minimum.comment = CommentDuty::Always;
    let refuse = |mut scene: TeamScene, name: &str, signed: &SignedTeamState, is_fork: bool| {
        let before = scene.chain.clone();
        let refused = scene.follow(signed).unwrap_err();
        assert_eq!(refused == Error::TeamFork, is_fork, "{name}: {refused}");
        assert_eq!(scene.chain, before, "{name}");
        scene.vector(name, Some(&refused))
    };
    let two_states = || {
        let mut scene = TeamScene::new(1);
        let other = scene.next(&["bob"], comment);
        scene.accept(&["alice"], raise);
        (scene, other)
    };
    let (scene, other) = two_states();
    let same_number = refuse(scene, "two states of one number", &other, true);
    let (scene, other) = two_states();
    let mut fork = TeamScene::new(1);
    fork.follow(&other).unwrap();
    let later = fork.next(&["bob"], raise);
    let other_prev = refuse(scene, "a state after another state", &later, true);
    let (mut scene, _) = two_states();
    scene.accept(&["alice"], |it| {
        it.seats.retain(|seat| seat.approver != person("bob"));
    });
    let by_removed = scene.next(&["alice"], comment);
    let by_removed = SignedTeamState::sign(by_removed.state().clone(), &key("bob")).unwrap();
    let removed = refuse(scene, "a state by a removed owner", &by_removed, false);
    let (mut scene, _) = two_states();
    let gap = scene.chain.clone();
    scene.accept(&["alice"], comment);
    let last = scene.next(&["alice"], |it| it.minimum.separate = true);
    scene.chain = gap;
    scene.states.pop();
    let gap = refuse(scene, "a state is missing", &last, false);
    let mut scene = TeamScene::new(1);
    scene.accept(&["carol"], |it| {
        own(it, "carol").stand_in = Some(stand_in("erin"));
    });
    let by_stand_in = scene.next(&["erin"], |it| own(it, "carol").devices.push(bundle("new")));
    let stand_in = refuse(scene, "a stand-in changes the seat", &by_stand_in, false);
    let mut other_team = TeamScene::new(2);
    other_team.accept(&["alice", "bob"], raise);
    let foreign = other_team.chain.newest().clone();
    let foreign = refuse(
        TeamScene::new(1),
        "a state of another team",
        &foreign,
        false,
    );
    vec![same_number, other_prev, removed, gap, stand_in, foreign]
}

#[test]
fn a_chain_grows_only_by_those_who_may_change_it_and_the_vectors_are_what_the_code_computes() {
    let unsound = unsound().into_iter().map(|(name, change)| {
        // Its text, which no program of ours makes: of a sound state, with the members exchanged.
        let mut content = TeamScene::new(1).content;
        change(&mut content);
        let refused = TeamState::first(&tenant(), &content, now(), &mut known("team"));
        assert!(refused.is_err(), "{name}");
        json!(name)
    });
    let unsound: Vec<_> = unsound.collect();
    let vectors = json!({
        "about": "Teams (docs/encryption.md, Teams). chains: signed states from 0 on; a reader follows all but the last \
            if there is a refusal (a fork, or else), and then is at head. states: texts of a state that must be refused. \
            consents: for an invitation, with the refusal. approvals: rules and what a device may approve at a time, with \
            the states that it knows. minimums: a rule, and the same with the team's minimum joined into it.",
        "chains": chain_vectors(),
        "states": malformed(),
        "consents": consent_vectors(),
        "approvals": approval_vectors(),
        "minimums": minimum_vectors(),
    });
    assert_eq!(unsound.len(), 17);
    check_published("team.json", &vectors);
}

/// Signed states of a right form but for one thing.
fn malformed() -> Vec<Value> {
    let good = parsed(&TeamScene::new(1).states[0]);
    let carol = bundle("carol").to_text().unwrap();
    let with = |pointer: &str, value: Value| (pointer.to_owned(), value);
    let cases = [
        ("a later version", with("/statement/v", json!(2))),
        (
            "another statement",
            with("/statement/statement", json!("team.consent")),
        ),
        ("a number as text", with("/statement/seq", json!("0"))),
        (
            "a first state with a later number",
            with("/statement/seq", json!(1)),
        ),
        (
            "a short random value",
            with("/statement/random", json!("AAAA")),
        ),
        ("an unknown member", with("/statement/extra", json!(1))),
        (
            "an unknown comment",
            with("/statement/minimum/comment", json!("often")),
        ),
        (
            "a device twice",
            with("/statement/seats/3/devices", json!([carol])),
        ),
        (
            "somebody twice",
            with("/statement/seats/3/approverId", json!("carol")),
        ),
        (
            "a seat without a device",
            with("/statement/seats/3/devices", json!([])),
        ),
        ("too few owners", with("/statement/changes", json!(3))),
        ("no signature", with("/signatures", json!([]))),
        (
            "a signature twice",
            with("/signatures/1", good["signatures"][0].clone()),
        ),
    ];
    let refused = cases.into_iter().map(|(name, (pointer, value))| {
        let mut state = good.clone();
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        match state.pointer_mut(parent).unwrap() {
            Value::Array(list) => list.push(value),
            parent => parent[member] = value,
        }
        assert!(
            SignedTeamState::parse_text(&state.to_string()).is_err(),
            "{name}"
        );
        json!({ "name": name, "state": state })
    });
    refused.collect()
}

#[test]
fn a_first_state_counts_only_with_its_owners_signatures() {
    let scene = TeamScene::new(2);
    let state = scene.chain.state().clone();
    let begin = |by: &[&'static str]| {
        let mut signed = SignedTeamState::sign(state.clone(), &key(by[0])).unwrap();
        for name in &by[1..] {
            signed.countersign(&key(name)).unwrap();
        }
        TeamChain::begin(signed)
    };
    assert!(begin(&["alice", "bob"]).is_ok());
    for by in [
        &["alice"][..],
        &["alice", "carol"],
        &["carol"],
        &["erin"],
        &["alice", "bob", "erin"],
    ] {
        assert!(begin(by).is_err(), "{by:?}");
    }
    let mut forged = parsed(&scene.states[0]);
    forged["statement"]["at"] = json!("2026-02-21T12:01:01Z");
    let forged = SignedTeamState::parse_text(&forged.to_string()).unwrap();
    assert_ne!(forged.state().head().team, state.head().team);
    assert_eq!(TeamChain::begin(forged), Err(Error::StatementSignature));
}

#[test]
fn only_owners_may_fill_the_second_half_of_a_chain() {
    let mut scene = TeamScene::new(1);
    let mut is_new = false;
    let mut toggle = |it: &mut TeamContent| {
        is_new = !is_new;
        let extra = bundle(if is_new { "new" } else { "newer" });
        own(it, "carol").devices = vec![bundle("carol"), extra];
    };
    for _ in 1..1_024 {
        let signed = scene.next(&["carol"], &mut toggle);
        scene.chain.follow(signed).unwrap();
    }
    let by_member = scene.next(&["carol"], &mut toggle);
    assert!(scene.chain.follow(by_member).is_err());
    let by_owner = scene.next(&["alice"], &mut toggle);
    assert_eq!(scene.chain.follow(by_owner), Ok(true));
    assert_eq!(scene.chain.digests().len(), 1_025);
    let (newest, digests) = (scene.chain.newest().clone(), scene.chain.digests().to_vec());
    let stored = TeamChain::from_own_records(newest.clone(), digests.clone());
    assert_eq!(stored, Some(scene.chain));
    assert_eq!(
        TeamChain::from_own_records(newest, digests[1..].to_vec()),
        None
    );
}

#[test]
fn a_head_shows_whether_there_is_more_to_read_or_a_fork() {
    let mut scene = TeamScene::new(1);
    let first = scene.chain.head();
    scene.accept(&["alice"], |it| it.minimum.approvals = 2);
    let head = scene.chain.head();
    assert_eq!(scene.chain.knows(&first), Ok(true));
    assert_eq!(scene.chain.knows(&TeamHead { seq: 2, ..head }), Ok(false));
    let other = TeamHead { seq: 1, ..first };
    assert_eq!(scene.chain.knows(&other), Err(Error::TeamFork));
    let foreign = TeamScene::new(2).chain.head();
    assert!(matches!(scene.chain.knows(&foreign), Err(Error::Team(_))));
}
