//! The rule of a request, in one sentence.

use std::collections::BTreeSet;

use countersign::client::visible;
use countersign::e2e::{ArtifactRule, CommentDuty, EscalationStep, RuleAsk, RuleTerms, TeamHead};
use countersign::protocol::id::ApproverId;

pub fn rule_sentence(rule: &ArtifactRule) -> String {
    match rule {
        ArtifactRule::Known(rule) => terms_sentence(&rule.terms),
        ArtifactRule::Unknown => {
            "This program does not know the rule. You can only reject the request.".to_owned()
        }
    }
}

fn terms_sentence(terms: &RuleTerms) -> String {
    let asks: Vec<_> = terms.asks.iter().map(ask_text).collect();
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

fn ask_text(ask: &RuleAsk) -> String {
    let noun = match ask.approvals {
        1 => "approval",
        _ => "approvals",
    };
    let later = ask.escalate.iter().map(step_text);
    let later: String = later.collect();
    let from = source(ask.team, &ask.from);
    format!("{} {noun}, from {from}{later}", ask.approvals)
}

fn step_text(step: &EscalationStep) -> String {
    let (from, after) = (source(step.team, &step.from), step.after_seconds);
    format!(", after {after} seconds also from {from}")
}

fn source(team: Option<TeamHead>, ids: &BTreeSet<ApproverId>) -> String {
    match team {
        Some(head) => format!("the team {}", head.team),
        None => people(ids),
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
