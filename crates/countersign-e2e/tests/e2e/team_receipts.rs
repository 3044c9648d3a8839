//! Receipts of calls that the members of a team have decided. `tests/vectors/team_receipt.json` is
//! for other implementers; after a deliberate change, run this once with `WRITE_VECTORS=1`.

use std::sync::LazyLock;

use countersign_e2e::{
    Error, Receipt, ReceiptAnchors, ReceiptFact, ReceiptReport, SignedTeamState, TeamChain,
};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use super::people::now;
use super::receipt::gaps;
use super::several::{check_vectors, people, person};
use super::team_call::{TeamCall, call};
use super::team_receipt_cases::{TeamCase, consistent, false_claims, grown, rival, without_team};
use super::team_scene::{TeamScene, bundle, seat};

const LEFT_SINCE: [&str; 2] = ["current 1: absent", "asked: absent"];

fn checked(case: &TeamCase) -> Value {
    let text = case.receipt.to_text().unwrap();
    let read = Receipt::parse(text.as_bytes()).unwrap();
    assert_eq!(read, case.receipt, "{}", case.name);
    let report = read.verify(&case.call.anchors());
    let all = [case.gaps.as_slice(), &["asked: absent"]].concat();
    assert_eq!(gaps(&report), all, "{}: {:?}", case.name, report.checks);
    json!({
        "name": case.name,
        "teams": case.call.teams().map(|it| it.chain.head().team.to_string()).collect::<Value>(),
        "receipt": text,
        "unproven": all,
    })
}

#[test]
fn receipts_of_teams_prove_the_facts_of_the_vectors() {
    let vectors = json!({
        "about": "Receipts with teams (docs/encryption.md, Receipts), for a verifier that trusts these teams and \
            no device. unproven is as in receipt.json. later: the verifier also knows these states.",
        "consistent": consistent().iter().map(checked).collect::<Value>(),
        "false": false_claims().iter().map(checked).collect::<Value>(),
        "later": [{
            "name": "a device that has left its seat since",
            "teams": [call().team.chain.head().team.to_string()],
            "known": later().states,
            "receipt": call().good().to_text().unwrap(),
            "unproven": LEFT_SINCE,
        }],
    });
    check_vectors("team_receipt.json", &vectors);
}

/// A member alone says who stands in, and could name anybody.
#[test]
fn an_approval_by_a_stand_in_counts_for_the_one_whose_seat_it_is() {
    let call = TeamCall::deputized();
    let decided = [
        call.approve("alice", "alice"),
        call.approve("carol", "erin"),
    ];
    let report = call.allowed(&decided).verify(&call.anchors());
    assert_eq!(report.approvers, people(["alice", "carol"]));
}

#[test]
fn two_people_on_one_seat_count_once() {
    let call = TeamCall::deputized();
    let mut other = call.approve("bob", "erin");
    other.part.seat = Some(person("carol"));
    let seat = other.part.seat.as_ref();
    let artifact = call.set.artifact.for_part(&other.part.request_id, seat);
    other.artifact = artifact.unwrap();
    let parts = [call.approve("carol", "carol"), other];
    let report = call.allowed(&parts).verify(&call.anchors());
    assert!(report.approvers.is_empty());
}

fn continued(states: &[String], rest: &[SignedTeamState]) -> TeamChain {
    let first = SignedTeamState::parse_text(&states[0]).unwrap();
    let mut chain = TeamChain::begin(first).unwrap();
    for state in rest {
        assert_eq!(chain.follow(state.clone()), Ok(true));
    }
    chain
}

#[test]
fn a_team_is_trusted_by_its_id_or_by_what_is_known_of_it() {
    let call = grown();
    let receipt = call.good();
    let proven = ["asked: absent"];
    let none = ReceiptAnchors::default();
    let unknown = [without_team("teams: absent"), proven.to_vec()].concat();
    assert_eq!(gaps(&receipt.verify(&none)), unknown);
    let other = ReceiptAnchors::default().with_team(TeamScene::new(2).chain.head().team);
    assert_eq!(gaps(&receipt.verify(&other)), unknown);
    // A profile that knows only the first state, and one that knows as much.
    let first = ReceiptAnchors::default().with_chain(continued(&call.team.states, &[]));
    assert_eq!(gaps(&receipt.verify(&first)), proven);
    let same = ReceiptAnchors::default().with_chain(call.team.chain.clone());
    assert_eq!(gaps(&receipt.verify(&same)), proven);
    // One that knows another history.
    let forked = continued(&call.team.states, &[rival()]);
    let forked = call.anchors().with_chain(forked);
    let refused = [without_team("teams: failed"), proven.to_vec()].concat();
    let report = receipt.verify(&forked);
    assert_eq!(gaps(&report), refused);
    assert!(
        report
            .checks
            .iter()
            .any(|it| it.result == Err(Error::TeamFork.into()))
    );
}

/// The team without Bob, once the file was written.
fn later() -> TeamScene {
    let mut later = TeamScene::new(1);
    later.accept(&["alice"], |it| {
        it.seats.retain(|it| it.approver != person("bob"));
        it.seats.push(seat("erin", false, &[&bundle("erin")]));
    });
    later
}

#[test]
fn a_device_that_has_left_since_is_told() {
    let call = call();
    let receipt = call.good();
    let anchors = call.anchors().with_chain(later().chain);
    let report = receipt.verify(&anchors);
    assert_eq!(gaps(&report), LEFT_SINCE);
    assert!(report.is_proven(ReceiptFact::Count));
    let same = call.anchors().with_chain(call.team.chain.clone());
    let checks = receipt.verify(&same).checks;
    assert!(checks.iter().all(|it| it.fact != ReceiptFact::Current));
}

#[test]
fn the_time_of_a_stand_in_ends_for_receipts_too() {
    let (call, text, _) = &*GOOD;
    let receipt = Receipt::parse(text.as_bytes()).unwrap();
    let verify = |at| receipt.verify(&call.anchors().with_time(at));
    let content = call.team.chain.content();
    let until = content.seats.iter().find_map(|it| it.stand_in.as_ref());
    let until = until.unwrap().until;
    assert_eq!(gaps(&verify(now())), ["asked: absent"]);
    assert_eq!(gaps(&verify(until)), LEFT_SINCE);
}

#[test]
fn a_team_of_another_tenant_is_refused() {
    let call = call();
    let receipt = Receipt {
        tenant: countersign_protocol::id::TextId::parse("globex").unwrap(),
        ..call.good()
    };
    let report = receipt.verify(&call.anchors());
    assert!(gaps(&report).contains(&"teams: failed".to_owned()));
}

static GOOD: LazyLock<(TeamCall, String, ReceiptReport)> = LazyLock::new(|| {
    let call = TeamCall::deputized();
    let decided = [
        call.approve("alice", "alice"),
        call.approve("carol", "erin"),
    ];
    let receipt = call.allowed(&decided);
    let report = receipt.verify(&call.anchors());
    (call, receipt.to_text().unwrap(), report)
});

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_changed_bit_changes_what_a_team_has_approved(place: Index, bit in 0..7_u8) {
        let (call, text, report) = &*GOOD;
        let mut bytes = text.as_bytes().to_vec();
        let place = place.index(bytes.len());
        bytes[place] ^= 1 << bit;
        if let Ok(receipt) = Receipt::parse(&bytes) {
            let changed = receipt.verify(&call.anchors());
            if gaps(&changed) == ["asked: absent"] {
                prop_assert_eq!(&changed, report);
            }
        }
    }
}
