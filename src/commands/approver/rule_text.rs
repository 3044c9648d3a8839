//! The rule of a request, in one sentence.

use std::collections::{BTreeMap, BTreeSet};

use countersign::client::visible;
use countersign::e2e::{
    ArtifactRule, CommentDuty, EscalationStep, RuleAsk, RuleTerms, TeamHead, TeamId,
};
use countersign::protocol::id::ApproverId;

/// The names of the teams that a profile knows.
pub type TeamNames = BTreeMap<TeamId, String>;

pub fn rule_sentence(rule: &ArtifactRule, names: &TeamNames) -> String {
    match rule {
        ArtifactRule::Known(rule) => terms_sentence(&rule.terms, names),
        ArtifactRule::Unknown => {
            "This program does not know the rule. You can only reject the request.".to_owned()
        }
    }
}

fn terms_sentence(terms: &RuleTerms, names: &TeamNames) -> String {
    let asks = terms.asks.iter().map(|ask| ask_text(ask, names));
    let asks: Vec<_> = asks.collect();
    let mut parts = vec![asks.join(", and one of ")];
    parts.push(match terms.rejections {
        1 => "one rejection ends it".to_owned(),
        count => format!("{count} rejections end it"),
    });
    let comment = match terms.comment {
        CommentDuty::None => None,
        CommentDuty::Reject => Some("a rejection needs a comment"),
        CommentDuty::Approve => Some("an approval needs a comment"),
        CommentDuty::Always => Some("every decision needs a comment"),
    };
    parts.extend(comment.map(str::to_owned));
    if !terms.not_by.is_empty() {
        parts.push(format!("not by {}", people(&terms.not_by)));
    }
    format!("One of {}.", parts.join("; "))
}

fn ask_text(ask: &RuleAsk, names: &TeamNames) -> String {
    let noun = match ask.approvals {
        1 => "approval",
        _ => "approvals",
    };
    let later = ask.escalate.iter().map(|step| step_text(step, names));
    let later: String = later.collect();
    let from = source(ask.team, &ask.from, names);
    format!("{} {noun}, from {from}{later}", ask.approvals)
}

fn step_text(step: &EscalationStep, names: &TeamNames) -> String {
    let from = source(step.team, &step.from, names);
    format!(", after {} seconds also from {from}", step.after_seconds)
}

fn source(team: Option<TeamHead>, ids: &BTreeSet<ApproverId>, names: &TeamNames) -> String {
    let Some(TeamHead { team, .. }) = team else {
        return people(ids);
    };
    match names.get(&team) {
        Some(name) => format!("the team {}", visible(name)),
        None => format!("another team ({team})"),
    }
}

fn people(ids: &BTreeSet<ApproverId>) -> String {
    let names: Vec<_> = ids.iter().map(|id| visible(id.as_str())).collect();
    match names.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
