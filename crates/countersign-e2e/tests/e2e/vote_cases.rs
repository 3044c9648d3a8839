//! Votes in their order, with the state after the last, for `votes` and `rule`.

use countersign_e2e::{ApproverVote, RuleTerms, VoteChoice, VoteCount, VoteState};
use countersign_protocol::decision::Verdict;
use serde_json::{Value, json};

use super::several::{ask, one_of, people, person, rule, rule_json, two_of_three};

/// A decision, or that a person will not decide any more.
#[derive(Debug, Clone)]
pub struct VoteEvent {
    pub name: &'static str,
    pub verdict: Option<Verdict>,
    pub action: Option<&'static str>,
    pub has_comment: bool,
}

pub fn approve(name: &'static str) -> VoteEvent {
    VoteEvent {
        name,
        verdict: Some(Verdict::Approve),
        action: None,
        has_comment: true,
    }
}

pub fn silently(name: &'static str) -> VoteEvent {
    VoteEvent {
        has_comment: false,
        ..approve(name)
    }
}

pub fn choose(name: &'static str, action: &'static str) -> VoteEvent {
    VoteEvent {
        action: Some(action),
        ..approve(name)
    }
}

pub fn reject(name: &'static str) -> VoteEvent {
    VoteEvent {
        verdict: Some(Verdict::Reject),
        ..silently(name)
    }
}

pub fn drop_out(name: &'static str) -> VoteEvent {
    VoteEvent {
        verdict: None,
        ..silently(name)
    }
}

pub fn choice(action: Option<&str>) -> VoteChoice {
    VoteChoice {
        action_id: action.map(str::to_owned),
        answers: None,
    }
}

pub fn vote(event: &VoteEvent, verdict: Verdict) -> ApproverVote {
    ApproverVote {
        approver: person(event.name),
        verdict,
        choice: choice(event.action),
        has_comment: event.has_comment,
    }
}

pub fn counted(terms: &RuleTerms, events: &[VoteEvent]) -> VoteState {
    let mut count = VoteCount::new(terms.clone());
    for event in events {
        match event.verdict {
            Some(verdict) => count.count(vote(event, verdict)),
            None => count.drop_out(&person(event.name)),
        }
    }
    count.state()
}

fn cases() -> Vec<(&'static str, RuleTerms, Vec<VoteEvent>, &'static str)> {
    let two = two_of_three;
    let both = RuleTerms {
        asks: vec![ask(1, ["alice", "bob"]), ask(1, ["bob", "carol"])],
        ..two()
    };
    let tolerant = RuleTerms {
        rejections: 2,
        ..two()
    };
    let without_bob = RuleTerms {
        not_by: people(["bob"]),
        ..two()
    };
    vec![
        ("nobody yet", two(), vec![], "open"),
        ("one of two", two(), vec![approve("alice")], "open"),
        (
            "two of two",
            two(),
            vec![approve("alice"), approve("bob")],
            "satisfied",
        ),
        (
            "one person twice",
            two(),
            vec![approve("alice"), approve("alice")],
            "open",
        ),
        (
            "of an escalation step",
            two(),
            vec![approve("alice"), approve("dave")],
            "satisfied",
        ),
        (
            "by a stranger",
            two(),
            vec![approve("alice"), approve("frank")],
            "open",
        ),
        (
            "a rejection",
            two(),
            vec![approve("alice"), reject("bob"), approve("carol")],
            "rejected",
        ),
        (
            "a late rejection",
            two(),
            vec![approve("alice"), approve("bob"), reject("carol")],
            "rejected",
        ),
        (
            "a rejection by a stranger",
            two(),
            vec![reject("frank")],
            "open",
        ),
        (
            "a rejection after dropping out",
            two(),
            vec![drop_out("bob"), reject("bob")],
            "rejected",
        ),
        (
            "one of two rejections",
            tolerant.clone(),
            vec![reject("bob")],
            "open",
        ),
        (
            "the same rejection twice",
            tolerant.clone(),
            vec![reject("bob"), reject("bob")],
            "open",
        ),
        (
            "two rejections",
            tolerant.clone(),
            vec![reject("bob"), reject("carol")],
            "rejected",
        ),
        (
            "two approvals in spite of one rejection",
            tolerant.clone(),
            vec![reject("bob"), approve("alice"), approve("carol")],
            "satisfied",
        ),
        (
            "a rejection replaces the own approval",
            tolerant,
            vec![approve("alice"), approve("bob"), reject("bob")],
            "open",
        ),
        (
            "without the comment",
            two(),
            vec![approve("alice"), silently("bob")],
            "open",
        ),
        (
            "without the comment, then with it",
            two(),
            vec![approve("alice"), silently("bob"), approve("bob")],
            "open",
        ),
        (
            "too few are left",
            two(),
            vec![silently("alice"), drop_out("carol"), drop_out("dave")],
            "impossible",
        ),
        (
            "the last two are left",
            two(),
            vec![drop_out("carol"), drop_out("dave"), approve("alice")],
            "open",
        ),
        (
            "an approval after dropping out",
            two(),
            vec![drop_out("bob"), approve("alice"), approve("bob")],
            "open",
        ),
        (
            "by somebody in notBy",
            without_bob.clone(),
            vec![approve("alice"), approve("bob")],
            "open",
        ),
        (
            "rejected by somebody in notBy",
            without_bob.clone(),
            vec![reject("bob")],
            "rejected",
        ),
        (
            "only somebody in notBy is left",
            without_bob,
            vec![approve("alice"), drop_out("carol"), drop_out("dave")],
            "impossible",
        ),
        (
            "one person in both asks",
            both.clone(),
            vec![approve("bob")],
            "satisfied",
        ),
        (
            "one ask of two",
            both.clone(),
            vec![approve("alice")],
            "open",
        ),
        (
            "both asks",
            both.clone(),
            vec![approve("alice"), approve("carol")],
            "satisfied",
        ),
        (
            "one ask cannot be satisfied",
            both,
            vec![approve("alice"), drop_out("bob"), drop_out("carol")],
            "impossible",
        ),
        (
            "one choice",
            two(),
            vec![choose("alice", "a"), choose("bob", "a")],
            "satisfied",
        ),
        (
            "two choices",
            two(),
            vec![choose("alice", "a"), choose("bob", "b")],
            "open",
        ),
        (
            "a choice and none",
            two(),
            vec![choose("alice", "a"), approve("bob")],
            "open",
        ),
        (
            "two choices, and nobody is left",
            two(),
            vec![
                choose("alice", "a"),
                choose("bob", "b"),
                drop_out("carol"),
                drop_out("dave"),
            ],
            "impossible",
        ),
        (
            "one of three",
            one_of(two()),
            vec![approve("carol")],
            "satisfied",
        ),
    ]
}

pub fn word(state: &VoteState) -> &'static str {
    match state {
        VoteState::Satisfied(_) => "satisfied",
        VoteState::Rejected(_) => "rejected",
        VoteState::Open(_) => "open",
        VoteState::Impossible(_) => "impossible",
    }
}

/// The cases as vectors, after they were checked.
pub fn count_vectors() -> Value {
    let vectors = cases().into_iter().map(|(name, terms, events, expected)| {
        let state = counted(&terms, &events);
        assert_eq!(word(&state), expected, "{name}: {state:?}");
        let votes = events.iter().map(|event| {
            let verdict = event.verdict.map_or("dropOut", Verdict::as_str);
            json!({
                "approverId": event.name, "vote": verdict, "actionId": event.action,
                "comment": event.has_comment,
            })
        });
        let seat = terms.needs_seats().then_some("alice");
        let mut vector = json!({
            "name": name, "rule": rule_json(&rule(terms, seat)), "votes": votes.collect::<Value>(),
            "state": expected,
        });
        if let VoteState::Satisfied(choice) = state {
            vector["actionId"] = json!(choice.action_id);
        }
        vector
    });
    vectors.collect()
}
