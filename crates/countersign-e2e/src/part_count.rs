//! The count of a receipt's decisions.

use std::collections::BTreeSet;

use super::outcome::{DenialCause, OutcomeEffect};
use super::part_proof::PartProof;
use super::rule::RuleTerms;
use super::votes::{VoteCount, VoteState};
use countersign_protocol::decision::Verdict;
use countersign_protocol::id::ApproverId;

/// The decisions of a receipt, counted anew.
pub(super) struct PartCount {
    /// By the proven decisions alone.
    pub(super) proven: VoteState,
    /// The people whose proven approvals satisfy the rule. Of a stand-in's, the one whose seat it is:
    /// a member alone says who stands in.
    pub(super) approvers: BTreeSet<ApproverId>,
    /// The same, with rejections by devices that are not proven.
    cautious: VoteState,
}

impl PartCount {
    pub(super) fn new(terms: &RuleTerms, parts: &[PartProof<'_>]) -> Self {
        let mut proven = VoteCount::new(terms.clone());
        let mut cautious = VoteCount::new(terms.clone());
        let (mut devices, mut people) = (BTreeSet::new(), BTreeSet::new());
        for part in parts {
            let Some(vote) = part.vote() else { continue };
            // The holder of a device is one person, also if two approvers have it. Nobody counts on
            // two seats.
            let approves = part.is_anchored && vote.verdict == Verdict::Approve;
            let (device, person) = (part.part.device.id(), &part.part.approver);
            let is_first = approves && people.insert(person);
            if approves && (!devices.insert(device) || !is_first) {
                continue;
            }
            if part.is_anchored {
                proven.count(vote.clone());
            }
            if part.is_anchored || vote.verdict == Verdict::Reject {
                cautious.count(vote);
            }
        }
        let (proven, approvers) = (proven.state(), proven.approvers());
        Self {
            proven,
            approvers,
            cautious: cautious.state(),
        }
    }

    pub(super) fn agrees(&self, effect: Option<OutcomeEffect>, is_complete: bool) -> bool {
        let is_satisfied = matches!(self.cautious, VoteState::Satisfied(_));
        let is_rejected = matches!(self.proven, VoteState::Rejected(_));
        match effect {
            Some(OutcomeEffect::Allowed) => is_satisfied && is_complete,
            Some(OutcomeEffect::Denied(DenialCause::Rejected)) => is_rejected,
            Some(OutcomeEffect::Denied(DenialCause::Missing)) => !is_satisfied,
            Some(OutcomeEffect::Denied(_)) => true,
            None => is_satisfied || is_rejected,
        }
    }
}
