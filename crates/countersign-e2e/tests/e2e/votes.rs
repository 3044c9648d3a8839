//! Counting decisions by a rule.

use std::collections::BTreeSet;

use countersign_e2e::{
    ApproverVote, AskGap, CommentDuty, RuleAsk, RuleTerms, VoteChoice, VoteCount, VoteState,
};
use countersign_protocol::decision::Verdict;
use countersign_protocol::id::ApproverId;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::several::{ask, people, person, two_of_three};
use super::vote_cases::{
    VoteEvent, approve, choice, choose, counted, drop_out, reject, silently, vote, word,
};

#[test]
fn a_count_says_who_is_missing() {
    let events = [approve("alice"), silently("bob"), drop_out("carol")];
    let gap = AskGap {
        ask: 0,
        lacking: 1,
        open: people(["dave"]),
        absent: people(["bob", "carol"]),
    };
    let open = VoteState::Open(vec![gap.clone()]);
    assert_eq!(counted(&two_of_three(), &events), open);
    let impossible = VoteState::Impossible(vec![AskGap {
        open: [].into(),
        absent: people(["bob", "carol", "dave"]),
        ..gap
    }]);
    let events = [&events[..], &[drop_out("dave")]].concat();
    assert_eq!(counted(&two_of_three(), &events), impossible);
    let rejected = counted(&two_of_three(), &[reject("bob")]);
    assert_eq!(rejected, VoteState::Rejected(people(["bob"])));
    let chosen = counted(&two_of_three(), &[choose("alice", "a"), choose("bob", "a")]);
    assert_eq!(chosen, VoteState::Satisfied(choice(Some("a"))));
}

#[test]
fn different_answers_are_not_added_up() {
    let answer = |name, text: &str| ApproverVote {
        choice: VoteChoice {
            action_id: None,
            answers: Some(vec![vec![text.to_owned()]]),
        },
        ..vote(&approve(name), Verdict::Approve)
    };
    let mut count = VoteCount::new(two_of_three());
    count.count(answer("alice", "yes"));
    count.count(answer("bob", "no"));
    assert_eq!(word(&count.state()), "open");
    count.count(answer("carol", "no"));
    assert_eq!(word(&count.state()), "satisfied");
}

#[test]
fn terms_without_a_condition_allow_nothing() {
    let nothing = RuleTerms {
        asks: Vec::new(),
        ..two_of_three()
    };
    let zero = RuleTerms {
        asks: vec![ask(0, ["alice"])],
        ..two_of_three()
    };
    for terms in [nothing, zero] {
        for events in [vec![], vec![approve("bob")]] {
            assert_ne!(word(&counted(&terms, &events)), "satisfied");
        }
    }
}

const CROWD: [&str; 5] = ["alice", "bob", "carol", "dave", "erin"];

fn some_people(min: usize) -> impl Strategy<Value = BTreeSet<ApproverId>> {
    let names = subsequence(CROWD.to_vec(), min..=4);
    names.prop_map(|names| names.into_iter().map(person).collect())
}

fn any_terms() -> impl Strategy<Value = RuleTerms> {
    let any_ask = (1..4_u32, some_people(1)).prop_map(|(approvals, from)| RuleAsk {
        approvals,
        from,
        team: None,
        escalate: Vec::new(),
    });
    let asks = proptest::collection::vec(any_ask, 1..3);
    let duty = select(CommentDuty::ALL.to_vec());
    let not_by = prop_oneof![3 => Just(BTreeSet::new()), 1 => some_people(0)];
    (asks, 1..4_u32, duty, not_by).prop_map(|(asks, rejections, comment, not_by)| RuleTerms {
        asks,
        rejections,
        comment,
        not_by,
    })
}

fn any_events() -> impl Strategy<Value = Vec<VoteEvent>> {
    let verdict = prop_oneof![
        6 => Just(Some(Verdict::Approve)),
        1 => Just(Some(Verdict::Reject)),
        1 => Just(None),
    ];
    let action = select(vec![None, None, Some("a"), Some("b")]);
    let event = (
        select(CROWD.to_vec()),
        verdict,
        action,
        prop::bool::weighted(0.8),
    );
    let event = event.prop_map(|(name, verdict, action, has_comment)| VoteEvent {
        name,
        verdict,
        action,
        has_comment,
    });
    proptest::collection::vec(event, 0..10)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn never_satisfied_with_fewer_people(terms in any_terms(), events in any_events()) {
        let state = counted(&terms, &events);
        let rejecters: BTreeSet<_> = events
            .iter()
            .filter(|event| event.verdict == Some(Verdict::Reject))
            .map(|event| person(event.name))
            .filter(|name| terms.asks.iter().any(|ask| ask.from.contains(name)))
            .collect();
        let is_rejected = rejecters.len() >= terms.rejections as usize;
        prop_assert_eq!(is_rejected, matches!(state, VoteState::Rejected(_)));
        if let VoteState::Satisfied(choice) = state {
            let needs_comment = matches!(terms.comment, CommentDuty::Approve | CommentDuty::Always);
            for ask in &terms.asks {
                let approvers: BTreeSet<_> = events
                    .iter()
                    .filter(|event| event.verdict == Some(Verdict::Approve))
                    .filter(|event| event.action == choice.action_id.as_deref())
                    .filter(|event| event.has_comment || !needs_comment)
                    .map(|event| person(event.name))
                    .filter(|name| ask.from.contains(name) && !terms.not_by.contains(name))
                    .filter(|name| !rejecters.contains(name))
                    .collect();
                prop_assert!(approvers.len() >= ask.approvals as usize);
            }
        }
    }

    #[test]
    fn a_count_is_open_exactly_while_it_can_be_reached(terms in any_terms(), events in any_events()) {
        let actions = [None, Some("a"), Some("b")];
        let is_reachable = actions.into_iter().any(|action| {
            let rest = CROWD.map(|name| VoteEvent { action, ..approve(name) });
            let state = counted(&terms, &[&events[..], &rest].concat());
            matches!(state, VoteState::Satisfied(_))
        });
        match counted(&terms, &events) {
            VoteState::Open(_) | VoteState::Satisfied(_) => prop_assert!(is_reachable),
            VoteState::Impossible(_) | VoteState::Rejected(_) => prop_assert!(!is_reachable),
        }
    }

    #[test]
    fn a_joined_rule_is_never_weaker(one in any_terms(), other in any_terms(), events in any_events()) {
        let joined = counted(&one.clone().join(other.clone()), &events);
        for alone in [&one, &other] {
            let alone = counted(alone, &events);
            if matches!(joined, VoteState::Satisfied(_)) {
                prop_assert_eq!(word(&alone), "satisfied");
            }
            if matches!(alone, VoteState::Rejected(_)) {
                prop_assert_eq!(word(&joined), "rejected");
            }
        }
    }
}
