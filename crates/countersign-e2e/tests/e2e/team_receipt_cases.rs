//! Receipts of teams with the gaps of their proofs, for `team_receipts`.

use countersign_e2e::{
    ArtifactHints, DenialCause, OutcomeEffect, Receipt, RuleTerms, SignedTeamState, StandIn,
    TeamMinimum,
};
use countersign_protocol::decision::Verdict;
use serde_json::Value;

use super::people::{device, time};
use super::receipt_cases::REJECTED;
use super::several::{ask, people, person};
use super::team_call::{TeamCall, call, holder, two_of};
use super::team_scene::{TeamScene, bundle, own, stand_in};

pub struct TeamCase {
    pub name: &'static str,
    pub receipt: Receipt,
    pub call: TeamCall,
    pub gaps: Vec<&'static str>,
}

fn case(
    name: &'static str,
    call: TeamCall,
    receipt: impl FnOnce(&TeamCall) -> Receipt,
    gaps: &[&'static str],
) -> TeamCase {
    TeamCase {
        name,
        receipt: receipt(&call),
        call,
        gaps: gaps.to_vec(),
    }
}

const NOT_ANCHORED: [&str; 6] = [
    "device 0: absent",
    "device 1: absent",
    "enforcer: absent",
    "outcome: absent",
    "complete: absent",
    "count: absent",
];

pub fn without_team(gap: &'static str) -> Vec<&'static str> {
    [&[gap], NOT_ANCHORED.as_slice()].concat()
}

/// Alice, and Erin in the place of Carol.
fn by_erin(call: &TeamCall) -> Receipt {
    call.allowed(&[
        call.approve("alice", "alice"),
        call.approve("carol", "erin"),
    ])
}

/// Its devices know a state that came after the rule.
fn renamed() -> TeamCall {
    let mut call = call();
    call.team
        .accept(&["alice"], |it| "payments 2".clone_into(&mut it.name));
    call
}

/// Bob is removed after the call has begun.
fn gone() -> TeamCall {
    let mut call = call();
    call.team.accept(&["alice"], |it| {
        it.seats.retain(|it| it.approver != person("bob"));
    });
    call
}

pub fn consistent() -> Vec<TeamCase> {
    let mut later = call();
    let (_, tablet) = device("tablet");
    later
        .team
        .accept(&["bob"], |it| own(it, "bob").devices.push(tablet));
    let mut both = TeamScene::new(1);
    both.accept(&["alice"], |it| it.minimum.approvals = 2);
    let terms = RuleTerms {
        asks: [
            &[ask(1, ["dave"])],
            two_of(both.chain.head()).asks.as_slice(),
        ]
        .concat(),
        ..two_of(both.chain.head())
    };
    let mut late = TeamScene::new(1);
    late.accept(&["carol"], |it| {
        let mut past = stand_in("erin");
        past.from = time("2026-02-20T12:00:00Z");
        past.until = time("2026-02-21T12:00:30Z");
        own(it, "carol").stand_in = Some(past);
    });
    let absent = ["device 1: absent", "count: absent"];
    let rejected = TeamCall::deputized();
    let rejection = rejected.decide("carol", ("erin", "erin"), Verdict::Reject);
    let denied = rejected.receipt(&[rejection], REJECTED);
    vec![
        case("two members", call(), TeamCall::good, &[]),
        case(
            "a stand-in",
            TeamCall::deputized(),
            |call| {
                call.allowed(&[
                    call.approve("alice", "alice"),
                    call.approve("carol", "erin"),
                ])
            },
            &[],
        ),
        case(
            "a device of a later state",
            later,
            |call| {
                let tablet = call.decide("bob", ("bob", "tablet"), Verdict::Approve);
                call.allowed(&[call.approve("alice", "alice"), tablet])
            },
            &[],
        ),
        case(
            "too few",
            call(),
            |call| {
                let missing = OutcomeEffect::Denied(DenialCause::Missing);
                call.receipt(&[call.approve("alice", "alice")], missing)
            },
            &[],
        ),
        case(
            "a rejection by a stand-in, at a time that nothing proves",
            rejected,
            |_| denied,
            &[
                "device 0: absent",
                "enforcer: absent",
                "outcome: absent",
                "complete: absent",
                "count: absent",
            ],
        ),
        case(
            "a member whom the rule also names by their id, and whom nobody knows",
            TeamCall::with(both, terms),
            |call| call.allowed(&[call.approve("alice", "alice"), call.approve("dave", "dave")]),
            &["device 1: absent", "count: absent"],
        ),
        case(
            "a stand-in after the time",
            TeamCall::new(late),
            by_erin,
            &absent,
        ),
        case(
            "somebody who has left before the outcome",
            gone(),
            |call| call.allowed(&[call.approve("alice", "alice"), call.approve("bob", "bob")]),
            &absent,
        ),
        case(
            "rejected by somebody who has left before the outcome",
            gone(),
            |call| {
                let rejection = call.decide("bob", ("bob", "bob"), Verdict::Reject);
                call.receipt(&[call.approve("alice", "alice"), rejection], REJECTED)
            },
            &[],
        ),
        case(
            "no states",
            call(),
            |call| Receipt {
                teams: Vec::new(),
                ..call.good()
            },
            &without_team("teams: absent"),
        ),
        case(
            "states of another team",
            call(),
            |call| Receipt {
                teams: TeamScene::new(2).states,
                ..call.good()
            },
            &without_team("teams: absent"),
        ),
    ]
}

pub fn rival() -> SignedTeamState {
    TeamScene::new(1).next(&["bob"], |it| it.changes = 2)
}

pub fn grown() -> TeamCall {
    let mut team = TeamScene::new(1);
    team.accept(&["alice"], |it| "payments 2".clone_into(&mut it.name));
    TeamCall::new(team)
}

/// Receipts with something false in them.
pub fn false_claims() -> Vec<TeamCase> {
    let states = |change: fn(&mut Vec<String>)| {
        move |call: &TeamCall| {
            let mut receipt = call.good();
            change(&mut receipt.teams);
            receipt
        }
    };
    let refused = without_team("teams: failed");
    let mut strict = TeamScene::new(1);
    strict.accept(&["alice"], |it| {
        it.minimum = TeamMinimum {
            approvals: 3,
            ..it.minimum
        }
    });
    let with = |mut team: TeamScene, member: &'static str, deputy| {
        team.accept(&[member], |it| {
            own(it, member).stand_in = Some(stand_in(deputy));
        });
        team
    };
    let crowded = TeamCall::between(
        with(TeamScene::pair("alice", "carol"), "carol", "erin"),
        with(TeamScene::pair("bob", "dave"), "dave", "erin"),
    );
    let mut tablet = TeamScene::pair("bob", "dave");
    tablet.accept(&["dave"], |it| {
        own(it, "dave").stand_in = Some(StandIn {
            devices: vec![bundle("tablet")],
            ..stand_in("erin")
        });
    });
    let owner_of_two = with(TeamScene::pair("alice", "carol"), "carol", "erin");
    let owner_of_two = TeamCall::between(owner_of_two, tablet);
    let seated = TeamCall::between(
        with(TeamScene::pair("alice", "carol"), "carol", "bob"),
        TeamScene::pair("bob", "dave"),
    );
    let mut later = TeamScene::new(1);
    let before = later.chain.head();
    later.accept(&["alice"], |it| "payments 2".clone_into(&mut it.name));
    let mut asks = two_of(before).asks;
    asks.extend(two_of(later.chain.head()).asks);
    let terms = RuleTerms {
        asks,
        ..two_of(before)
    };
    let doubled = TeamCall::with(later, terms);
    let mut stricter = call();
    stricter
        .team
        .accept(&["alice"], |it| it.minimum.approvals = 3);
    let without_bob = RuleTerms {
        not_by: people(["bob"]),
        ..two_of(TeamScene::new(1).chain.head())
    };
    let deputized = TeamCall::deputized().team;
    let both = two_of(deputized.chain.head());
    let named_twice = RuleTerms {
        asks: [&[ask(1, ["carol"])], both.asks.as_slice()].concat(),
        ..both
    };
    let named_twice = TeamCall::with(deputized, named_twice);
    let second = ["device 1: failed", "count: failed"];
    vec![
        case(
            "a state is missing",
            grown(),
            states(|it| drop(it.remove(0))),
            &refused,
        ),
        case(
            "the state of the rule is missing",
            grown(),
            states(|it| drop(it.pop())),
            &refused,
        ),
        case(
            "a state that is none",
            call(),
            states(|it| it.push("{}".to_owned())),
            &refused,
        ),
        case(
            "a fork",
            grown(),
            states(|it| it.push(rival().to_text())),
            &refused,
        ),
        case(
            "a state whose signer may not make it",
            call(),
            states(|it| {
                let state = TeamScene::new(1).next(&["carol"], |it| it.changes = 2);
                it.push(state.to_text());
            }),
            &refused,
        ),
        case(
            "fewer than the team demands",
            TeamCall::new(strict),
            TeamCall::good,
            &refused,
        ),
        case("two states of one team", doubled, TeamCall::good, &refused),
        case(
            "approvals by devices that know of a stricter minimum",
            stricter,
            TeamCall::good,
            &["count: failed"],
        ),
        case(
            "a device on another one's seat",
            call(),
            |call| {
                let other = call.decide("bob", ("bob", "carol"), Verdict::Approve);
                call.allowed(&[call.approve("alice", "alice"), other])
            },
            &second,
        ),
        case(
            "somebody without a seat",
            call(),
            |call| call.allowed(&[call.approve("alice", "alice"), call.approve("bob", "erin")]),
            &second,
        ),
        case(
            "a stand-in with a seat",
            seated,
            |call| call.allowed(&[call.approve("dave", "dave"), call.approve("carol", "bob")]),
            &second,
        ),
        case(
            "a stand-in on two seats",
            crowded,
            |call| call.allowed(&[call.approve("carol", "erin"), call.approve("dave", "erin")]),
            &["count: failed"],
        ),
        case(
            "a stand-in on two seats, with two devices",
            owner_of_two,
            |call| {
                let tablet = call.decide("dave", ("erin", "tablet"), Verdict::Approve);
                call.allowed(&[call.approve("carol", "erin"), tablet])
            },
            &["count: failed"],
        ),
        case(
            "an approval that names a state which the file lacks",
            renamed(),
            |call| {
                let mut receipt = call.good();
                receipt.teams.pop();
                receipt
            },
            &["count: failed"],
        ),
        case(
            "a member who is excluded",
            TeamCall::with(TeamScene::new(1), without_bob),
            TeamCall::good,
            &second,
        ),
        case(
            "a stand-in on a seat that the rule also names by its id",
            named_twice,
            by_erin,
            &second,
        ),
        case(
            "a state with another signature",
            grown(),
            states(|it| {
                let last = it.pop().unwrap();
                let own = serde_json::from_str::<Value>(&last).unwrap();
                let own = own["signatures"][0]["signature"]
                    .as_str()
                    .unwrap()
                    .to_owned();
                let first = serde_json::from_str::<Value>(&it[0]).unwrap();
                let other = first["signatures"][0]["signature"].as_str().unwrap();
                it.push(last.replace(&own, other));
            }),
            &refused,
        ),
        case(
            "an approval that names no state",
            call(),
            |call| {
                let holder = holder("bob", "bob");
                let hints = ArtifactHints::default();
                let bare = call.set.decide_by("bob", &holder, Verdict::Approve, hints);
                call.allowed(&[call.approve("alice", "alice"), bare])
            },
            &["count: failed"],
        ),
    ]
}
