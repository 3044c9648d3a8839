//! The count of a set, and the explanation of a denial to people.

use std::collections::BTreeSet;

use super::approval_request::ApprovalDenial;
use super::set_part::{SetPart, signer_of};
use crate::visible::visible;
use countersign_e2e::{
    ApproverVote, AskGap, DenialCause, Error, RuleRefusal, RuleTerms, VerifiedDecision, VoteCount,
    VoteState,
};
use countersign_protocol::decision::Verdict;
use countersign_protocol::id::ApproverId;

/// Counts the decisions of all parts. Those who are neither asked nor waited for drop out.
pub(super) fn count_parts(terms: &RuleTerms, parts: &[SetPart]) -> VoteCount {
    let mut count = VoteCount::new(terms.clone());
    for part in parts {
        if part.decision.is_some() || part.loss.is_some() {
            count_part(&mut count, &part.people, part.vote());
        }
    }
    let asked: BTreeSet<_> = parts.iter().flat_map(|part| &part.people).collect();
    for person in terms.people() {
        if !asked.contains(person) {
            count.drop_out(person);
        }
    }
    count
}

/// Counts the decision of a part that has ended. Nobody else of its people can decide any more.
pub(super) fn count_part(count: &mut VoteCount, people: &[ApproverId], vote: Option<ApproverVote>) {
    let voter = vote.as_ref().map(|vote| vote.approver.clone());
    if let Some(vote) = vote {
        count.count(vote);
    }
    for person in people.iter().filter(|it| Some(*it) != voter.as_ref()) {
        count.drop_out(person);
    }
}

/// Lets a device count on one seat only, also if two approvers have it, and so a person who stands
/// in for several.
pub(super) fn refuse_second_seats(parts: &mut [SetPart]) {
    let (mut devices, mut people) = (BTreeSet::new(), BTreeSet::new());
    for part in parts {
        let Some(decision) = &mut part.decision else {
            continue;
        };
        if let Ok(verified @ VerifiedDecision::Approved(_)) = &decision.judged {
            let (person, device) = signer_of(verified);
            let is_second = !people.insert(person.clone());
            if !devices.insert(device) {
                decision.judged = Err(Error::DeviceIdTaken(device));
            } else if is_second {
                decision.judged = Err(Error::Rule(RuleRefusal::SecondSeat));
            }
        }
    }
}

/// The denial that follows from a count, and the cause that the approvers are told.
pub(super) fn denial_of(
    state: &VoteState,
    terms: &RuleTerms,
    parts: &[SetPart],
) -> (ApprovalDenial, DenialCause) {
    let verified = || parts.iter().filter_map(SetPart::verified);
    let rejection = verified().find_map(|decision| match decision {
        VerifiedDecision::Rejected(rejection) => Some(rejection.clone()),
        VerifiedDecision::Approved(_) => None,
    });
    let gaps = match (state, rejection) {
        (VoteState::Rejected(_), Some(rejection)) => {
            let denial = ApprovalDenial::Rejected(Box::new(rejection));
            return (denial, DenialCause::Rejected);
        }
        (VoteState::Open(gaps) | VoteState::Impossible(gaps), _) => gaps.as_slice(),
        (VoteState::Rejected(_) | VoteState::Satisfied(_), _) => &[],
    };
    let is_untrusted =
        |part: &SetPart| (part.decision.as_ref()).is_some_and(|it| it.judged.is_err());
    if parts.iter().any(is_untrusted) {
        return (too_few(gaps, terms, parts), DenialCause::Untrusted);
    }
    let is_late = |part: &SetPart| part.loss.as_ref().is_some_and(ApprovalDenial::is_timeout);
    let asked = |person: &ApproverId| parts.iter().find(|part| part.people.contains(person));
    let mut absent = gaps.iter().flat_map(|gap| &gap.absent).peekable();
    let is_silent = absent.peek().is_some() && absent.all(|it| asked(it).is_some_and(is_late));
    let denial = if is_silent && verified().next().is_none() {
        ApprovalDenial::TimedOut
    } else {
        too_few(gaps, terms, parts)
    };
    (denial, DenialCause::Missing)
}

/// The approvals that a set still waits for, as a phrase, with the decisions until now.
pub(super) fn still_needed(gaps: &[AskGap], decided: &[ApproverVote]) -> String {
    let needed = gaps.iter().map(|gap| {
        let noun = if gap.lacking == 1 {
            "approval"
        } else {
            "approvals"
        };
        let open: Vec<_> = gap.open.iter().map(|it| visible(it.as_str())).collect();
        format!("{} {noun} from {}", gap.lacking, open.join(", "))
    });
    let needed = needed.collect::<Vec<_>>().join(" and ");
    let decided = decided.iter().map(|vote| {
        let word = match vote.verdict {
            Verdict::Approve => "approved",
            Verdict::Reject => "rejected",
        };
        format!("{} {word}", visible(vote.approver.as_str()))
    });
    match decided.collect::<Vec<_>>().as_slice() {
        [] => needed,
        decided => format!("{needed} ({})", decided.join(", ")),
    }
}

/// Says how many approvals are lacking, and why.
pub(super) fn too_few(gaps: &[AskGap], terms: &RuleTerms, parts: &[SetPart]) -> ApprovalDenial {
    let explained = gaps.iter().filter_map(|gap| {
        let needed = terms.asks.get(gap.ask)?.approvals;
        let noun = if needed == 1 { "approval" } else { "approvals" };
        let absent = gap.absent.iter().map(|person| {
            let why = why_absent(terms, parts, person);
            format!("{}: {why}", visible(person.as_str()))
        });
        let absent: Vec<_> = absent.collect();
        let why = match absent.as_slice() {
            [] => format!("{} people are asked", gap.open.len()),
            absent => absent.join("; "),
        };
        let lacking = gap.lacking;
        Some(format!(
            "it needs {needed} {noun} and lacks {lacking} ({why})"
        ))
    });
    let explained: Vec<_> = explained.collect();
    ApprovalDenial::TooFew(explained.join("; "))
}

fn why_absent(terms: &RuleTerms, parts: &[SetPart], person: &ApproverId) -> String {
    if terms.not_by.contains(person) {
        return "may not approve this".to_owned();
    }
    let Some(part) = parts.iter().find(|part| part.people.contains(person)) else {
        return "not paired with this machine".to_owned();
    };
    match (&part.decision, &part.loss) {
        (Some(decision), _) => match &decision.judged {
            Ok(verified) if part.vote().is_some_and(|vote| vote.approver != *person) => {
                format!("{} decided", visible(signer_of(verified).0.as_str()))
            }
            Ok(VerifiedDecision::Rejected(_)) => "rejected it".to_owned(),
            Ok(verified)
                if terms.comment.covers_approval() && !ApproverVote::from(verified).has_comment =>
            {
                "approved it without the comment that is needed".to_owned()
            }
            Ok(VerifiedDecision::Approved(_)) => "made another choice".to_owned(),
            Err(error) => format!(
                "the decision is not trusted: {}",
                visible(&error.to_string())
            ),
        },
        (None, Some(loss)) if loss.is_timeout() => "did not decide in time".to_owned(),
        (None, Some(loss)) => loss.to_string(),
        (None, None) => "has not decided".to_owned(),
    }
}
