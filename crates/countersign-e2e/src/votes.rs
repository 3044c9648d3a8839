//! Counts the decisions about one call by its rule. Only decisions that `accept` has verified, each
//! against the devices of its own seat, may be counted.

use std::collections::{BTreeMap, BTreeSet};

use super::accept::VerifiedDecision;
use super::comment_duty::has_comment;
use super::hints::ArtifactHints;
use super::rule::{RuleAsk, RuleTerms};
use countersign_protocol::decision::Verdict;
use countersign_protocol::id::ApproverId;

/// The choice within an approval. Approvals of different choices approve different things, and so
/// are never added up.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct VoteChoice {
    pub action_id: Option<String>,
    pub answers: Option<Vec<Vec<String>>>,
}

/// A verified decision, as far as it matters for the count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApproverVote {
    pub approver: ApproverId,
    pub verdict: Verdict,
    pub choice: VoteChoice,
    pub has_comment: bool,
}

impl ApproverVote {
    /// A decision on this seat, by its member or a stand-in. It counts for the seat.
    pub fn on_seat(seat: &ApproverId, decision: &VerifiedDecision) -> Self {
        Self {
            approver: seat.clone(),
            ..Self::from(decision)
        }
    }

    pub(super) fn new(approver: &ApproverId, verdict: Verdict, hints: &ArtifactHints) -> Self {
        Self {
            approver: approver.clone(),
            verdict,
            choice: VoteChoice {
                action_id: hints.action_id.clone(),
                answers: hints.answers.clone(),
            },
            has_comment: has_comment(hints.reason.as_deref()),
        }
    }
}

impl From<&VerifiedDecision> for ApproverVote {
    fn from(decision: &VerifiedDecision) -> Self {
        match decision {
            VerifiedDecision::Approved(it) => Self::new(&it.approver, Verdict::Approve, &it.hints),
            VerifiedDecision::Rejected(it) => Self::new(&it.approver, Verdict::Reject, &it.hints),
        }
    }
}

/// An ask that lacks approvals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskGap {
    /// The place of the ask in the rule.
    pub ask: usize,
    /// The number of approvals that are still needed.
    pub lacking: usize,
    /// The people whose approval would still count.
    pub open: BTreeSet<ApproverId>,
    /// The people whose approval can no longer be had.
    pub absent: BTreeSet<ApproverId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VoteState {
    /// Every ask has its approvals, all of this choice.
    Satisfied(VoteChoice),
    /// Enough people have rejected. Approvals do not matter any more.
    Rejected(BTreeSet<ApproverId>),
    /// Not yet satisfied, and still possible.
    Open(Vec<AskGap>),
    /// Too few people are left.
    Impossible(Vec<AskGap>),
}

#[derive(Debug, Clone)]
enum PersonState {
    Approved(VoteChoice),
    Rejected,
    /// Unreachable, expired, or approved without the comment that the rule requires.
    Absent,
}

/// The count of one set. A person has one vote: the first approval stays, and a rejection replaces
/// it.
#[derive(Debug, Clone)]
pub struct VoteCount {
    terms: RuleTerms,
    people: BTreeMap<ApproverId, PersonState>,
}

impl VoteCount {
    pub fn new(terms: RuleTerms) -> Self {
        let people = BTreeMap::new();
        Self { terms, people }
    }

    /// Counts a decision. One by somebody whom the rule does not name changes nothing.
    pub fn count(&mut self, vote: ApproverVote) {
        if !self.terms.people().contains(&vote.approver) {
            return;
        }
        match vote.verdict {
            // Also by somebody in `notBy`: a further rule must not take away a rejection.
            Verdict::Reject => {
                self.people.insert(vote.approver, PersonState::Rejected);
            }
            Verdict::Approve => {
                let is_short = self.terms.comment.covers_approval() && !vote.has_comment;
                let counts = !is_short && !self.terms.not_by.contains(&vote.approver);
                let state = if counts {
                    PersonState::Approved(vote.choice)
                } else {
                    PersonState::Absent
                };
                self.people.entry(vote.approver).or_insert(state);
            }
        }
    }

    /// Notes that a person will not decide any more. A decision that was counted stays.
    pub fn drop_out(&mut self, approver: &ApproverId) {
        let person = self.people.entry(approver.clone());
        person.or_insert(PersonState::Absent);
    }

    pub fn state(&self) -> VoteState {
        let rejected = self.people.iter();
        let rejected = rejected.filter(|(_, state)| matches!(state, PersonState::Rejected));
        let rejected: BTreeSet<_> = rejected.map(|(person, _)| person.clone()).collect();
        if rejected.len() >= self.terms.rejections as usize {
            return VoteState::Rejected(rejected);
        }
        let choices = self.people.values().filter_map(|state| match state {
            PersonState::Approved(choice) => Some(Some(choice)),
            PersonState::Rejected | PersonState::Absent => None,
        });
        // None is a choice that nobody has approved yet.
        let choices: BTreeSet<_> = choices.chain([None]).collect();
        let mut counts: Vec<_> = choices.iter().map(|it| (*it, self.gaps(*it))).collect();
        let satisfied = counts.iter().find(|(_, gaps)| gaps.is_empty());
        if let Some((Some(choice), _)) = satisfied {
            return VoteState::Satisfied((*choice).clone());
        }
        let is_possible = |gaps: &Vec<AskGap>| gaps.iter().all(|gap| gap.lacking <= gap.open.len());
        // Of choices that are equally far, the one that somebody has approved.
        counts.sort_by_key(|(choice, gaps)| {
            let lacking: usize = gaps.iter().map(|gap| gap.lacking).sum();
            (!is_possible(gaps), lacking, choice.is_none())
        });
        let nearest = counts.into_iter().next().map(|(_, gaps)| gaps);
        let gaps = nearest.unwrap_or_default();
        if is_possible(&gaps) {
            VoteState::Open(gaps)
        } else {
            VoteState::Impossible(gaps)
        }
    }

    /// The people whose approvals are counted for the choice that satisfies the rule. Empty if it is
    /// not satisfied.
    pub fn approvers(&self) -> BTreeSet<ApproverId> {
        let VoteState::Satisfied(choice) = self.state() else {
            return BTreeSet::new();
        };
        let people = self.people.iter();
        let people = people
            .filter(|(_, state)| matches!(state, PersonState::Approved(own) if *own == choice));
        people.map(|(person, _)| person.clone()).collect()
    }

    /// The asks that lack approvals of this choice.
    fn gaps(&self, choice: Option<&VoteChoice>) -> Vec<AskGap> {
        let gap = |(place, ask): (usize, &RuleAsk)| {
            let mut approved = BTreeSet::new();
            let (mut open, mut absent) = (BTreeSet::new(), BTreeSet::new());
            for person in ask.people() {
                let side = match self.people.get(person) {
                    Some(PersonState::Approved(other)) if Some(other) == choice => &mut approved,
                    None if !self.terms.not_by.contains(person) => &mut open,
                    Some(_) | None => &mut absent,
                };
                side.insert(person.clone());
            }
            let lacking = (ask.approvals as usize).saturating_sub(approved.len());
            (lacking > 0).then_some(AskGap {
                ask: place,
                lacking,
                open,
                absent,
            })
        };
        self.terms.asks.iter().enumerate().filter_map(gap).collect()
    }
}
