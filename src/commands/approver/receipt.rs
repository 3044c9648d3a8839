//! `verify` of a receipt: every fact that it proves, and every one that it does not.

use clap::Args;
use countersign::client::approver::requested_actions;
use countersign::client::{ClientError, visible};
use countersign::e2e::{
    ArtifactHints, OutcomeEffect, PartReport, PlainArtifact, ProofGap, Receipt, ReceiptAnchors,
    ReceiptCheck, ReceiptFact, ReceiptPart, ReceiptReport, VoteChoice, VoteState,
};
use countersign::protocol::decision::Verdict;
use countersign::protocol::id::ApproverId;
use serde_json::{Value, json};

use super::artifact::members_of;
use super::rule_text::{TeamNames, rule_sentence};
use super::view::render_artifact;
use crate::commands::exit_action::{DENIED, ExitAction};
use crate::commands::output::{print_json, print_line};
use crate::commands::terminal::{Colour, TerminalScreen, output_has_colour, paint};

/// Without one of these, nobody should rely on the receipt.
const NEEDED: [ReceiptFact; 5] = [
    ReceiptFact::Artifact,
    ReceiptFact::Decision,
    ReceiptFact::Device,
    ReceiptFact::Outcome,
    ReceiptFact::Count,
];

/// The demands of a verifier. The rule in a receipt is that of its writer, and may demand less.
#[derive(Args)]
pub struct ReceiptDemands {
    /// Trust a receipt only if at least this many different people have approved the same.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    approvals: Option<u32>,
    /// Count only the approvals of these people for --approvals, with commas between them.
    #[arg(
        long,
        value_name = "IDS",
        value_delimiter = ',',
        requires = "approvals"
    )]
    from: Vec<String>,
    /// Trust a receipt only if the approved request names this enforcer.
    #[arg(long, value_name = "ID")]
    enforcer: Option<String>,
}

impl ReceiptDemands {
    pub fn is_empty(&self) -> bool {
        self.approvals.is_none() && self.enforcer.is_none()
    }

    /// The demand that a receipt does not meet.
    fn problem(&self, receipt: &Receipt, report: &ReceiptReport) -> Option<String> {
        let is_named = |id: &ApproverId| {
            self.from.is_empty() || self.from.iter().any(|it| it.trim() == id.as_str())
        };
        let (wanted, found) = (
            self.approvals.unwrap_or_default() as usize,
            report.approvers.iter().filter(|id| is_named(id)).count(),
        );
        if found < wanted {
            return Some(format!("it proves {found} of {wanted} approvals"));
        }
        let enforcer = self.enforcer.as_ref()?;
        let is_own = *enforcer == receipt.enforcer.as_str();
        let is_proven = is_own && report.is_proven(ReceiptFact::Enforcer);
        (!is_proven).then(|| format!("the request is not proven to name {}", visible(enforcer)))
    }
}

/// Whether the file claims to be a receipt, which is record version 2.
pub fn is_receipt(text: &[u8]) -> bool {
    let value = serde_json::from_slice::<Value>(text);
    value.is_ok_and(|value| value["v"] == 2)
}

pub fn verify_receipt(
    text: &[u8],
    anchors: &ReceiptAnchors,
    demands: &ReceiptDemands,
    json: bool,
    screen: &mut TerminalScreen,
) -> anyhow::Result<ExitAction> {
    let receipt = Receipt::parse(text);
    let receipt = receipt.map_err(|error| ClientError::Record(visible(&error.to_string())))?;
    let report = receipt.verify(anchors);
    let problem = demands.problem(&receipt, &report);
    let problem = unproven(&receipt, &report).or(problem);
    if json {
        print_json(&report_json(&receipt, &report, problem.as_deref()))?;
    } else {
        print_line(&report_text(&receipt, &report))?;
    }
    let Some(problem) = problem else {
        return Ok(ExitAction::DONE);
    };
    let word = screen.paint(Colour::Red, "not trusted");
    screen.remark(&format!("{word}: {problem}"));
    Ok(ExitAction::code(DENIED))
}

/// The proof that a receipt lacks, for every verifier.
fn unproven(receipt: &Receipt, report: &ReceiptReport) -> Option<String> {
    let is_denied = (report.outcome.as_ref())
        .is_some_and(|outcome| matches!(outcome.effect, OutcomeEffect::Denied(_)));
    // The outcome of a denied call is also about decisions that failed a check, and no receipt has
    // those.
    let is_complete = is_denied || report.is_proven(ReceiptFact::Complete);
    let is_proven = is_complete && NEEDED.iter().all(|fact| report.is_proven(*fact));
    let is_proven = is_proven && report.is_consistent();
    let has_left =
        |check: &ReceiptCheck| check.fact == ReceiptFact::Current && check.result.is_err();
    let has_left = report.checks.iter().any(has_left);
    if is_proven && (!has_left || report.is_proven(ReceiptFact::Asked)) {
        return None;
    }
    let decided = [ReceiptFact::Decision, ReceiptFact::Device];
    let has_decisions = decided.iter().all(|fact| report.is_proven(*fact));
    if is_proven {
        let problem = "a device has left its seat since, or the time of a stand-in is over, and only a proof from the log tells its decisions from those of a later day (countersign receipt prove)";
        return Some(problem.to_owned());
    }
    let is_bare = receipt.artifact.is_none() && has_decisions && report.is_consistent();
    Some(if is_bare {
        "the request is not in the file, so only its decisions are proven: neither what was decided about, nor the rule, nor the outcome".to_owned()
    } else {
        "the receipt does not prove everything that it needs to".to_owned()
    })
}

fn report_json(receipt: &Receipt, report: &ReceiptReport, problem: Option<&str>) -> Value {
    let checks = report.checks.iter().map(|check| {
        json!({
            "fact": check.fact.as_str(),
            "part": check.part,
            "result": match &check.result {
                Ok(()) => "proven",
                Err(ProofGap::Absent) => "absent",
                Err(ProofGap::Failed(_)) => "failed",
            },
            "sentence": sentence(receipt, check),
        })
    });
    let parts = receipt
        .parts
        .iter()
        .zip(&report.parts)
        .map(|(part, shown)| {
            let hints = shown.hints.as_ref();
            json!({
                "approverId": part.approver,
                "seat": part.seat,
                "requestId": part.request_id,
                "deviceId": part.device.id().to_string(),
                "decision": shown.verdict.map(|it| it.verdict.as_str()),
                "actionId": hints.and_then(|hints| hints.action_id.as_deref()),
                "answers": hints.and_then(|hints| hints.answers.as_ref()),
                "reason": hints.and_then(|hints| hints.reason.as_deref()),
            })
        });
    let choice = match &report.votes {
        Some(VoteState::Satisfied(choice)) => choice,
        _ => &VoteChoice::default(),
    };
    json!({
        "trusted": problem.is_none(),
        "problem": problem,
        "approverIds": report.approvers,
        "actionId": choice.action_id,
        "answers": choice.answers,
        "outcome": report.outcome.as_ref().map(|it| it.effect.to_string()),
        "at": report.outcome.as_ref().map(|it| it.at),
        "tenantId": receipt.tenant,
        "enforcerId": receipt.enforcer,
        "parts": parts.collect::<Value>(),
        "checks": checks.collect::<Value>(),
        "artifact": report.artifact.as_ref().map(members_of),
    })
}

fn report_text(receipt: &Receipt, report: &ReceiptReport) -> String {
    let colour = output_has_colour();
    let mut lines = Vec::new();
    if let Some(outcome) = &report.outcome {
        let (word, shade) = match outcome.effect {
            OutcomeEffect::Allowed => ("allowed".to_owned(), Colour::Green),
            denied @ OutcomeEffect::Denied(_) => (denied.to_string(), Colour::Red),
        };
        let (word, at) = (paint(colour, shade, &word), outcome.at);
        let enforcer = visible(outcome.enforcer.as_str());
        lines.push(format!("{word} by {enforcer} at {at}"));
    }
    if let Some(rule) = report.artifact.as_ref().and_then(|it| it.rule()) {
        lines.push(rule_sentence(rule, &TeamNames::new()));
    }
    let parts = receipt.parts.iter().zip(&report.parts);
    lines.extend(parts.map(|(part, shown)| part_line(part, shown, report)));
    lines.push(String::new());
    for check in &report.checks {
        let (word, shade) = match check.result {
            Ok(()) => ("proven", Colour::Green),
            Err(ProofGap::Absent) => ("not proven", Colour::Yellow),
            Err(ProofGap::Failed(_)) => ("false", Colour::Red),
        };
        let word = paint(colour, shade, &format!("{word:<11}"));
        lines.push(format!("{word} {}", sentence(receipt, check)));
    }
    if let Some(artifact) = &report.artifact {
        lines.push(format!(
            "\n{}",
            render_artifact(artifact, &TeamNames::new(), colour)
        ));
    }
    lines.join("\n")
}

fn part_line(part: &ReceiptPart, shown: &PartReport, report: &ReceiptReport) -> String {
    let mut who = visible(part.approver.as_str());
    if let Some(seat) = part.seat.as_ref().filter(|_| !part.is_own()) {
        who = format!("{who} (for {})", visible(seat.as_str()));
    }
    let verb = match shown.verdict.map(|it| it.verdict) {
        Some(Verdict::Approve) => "approved",
        Some(Verdict::Reject) => "rejected",
        None => "signed nothing that can be verified",
    };
    let hints = shown.hints.clone().unwrap_or_default();
    let choice = choice_text(&hints, report.artifact.as_ref());
    let reason = hints
        .reason
        .map(|reason| format!(": “{}”", visible(&reason)));
    let approves = shown.verdict.map(|it| it.verdict) == Some(Verdict::Approve);
    let is_satisfied = matches!(report.votes, Some(VoteState::Satisfied(_)));
    let is_other = approves && is_satisfied && !report.approvers.contains(part.voter());
    let note = if is_other { " (does not count)" } else { "" };
    format!("{who} {verb}{choice}{}{note}", reason.unwrap_or_default())
}

/// The action that was chosen, by its caption and its id, and the answers to questions.
fn choice_text(hints: &ArtifactHints, artifact: Option<&PlainArtifact>) -> String {
    let mut text = String::new();
    if let Some(id) = &hints.action_id {
        let actions = artifact.map(requested_actions).unwrap_or_default();
        let action = actions.into_iter().find(|action| action.id == *id);
        let caption = action.map(|action| format!(" “{}”", visible(&action.caption)));
        let id = visible(id);
        text = format!("{} ({id})", caption.unwrap_or_default());
    }
    if let Some(answers) = &hints.answers {
        let answers = answers.iter().map(|texts| {
            let texts: Vec<_> = texts
                .iter()
                .map(|it| format!("“{}”", visible(it)))
                .collect();
            texts.join(", ")
        });
        let answers: Vec<_> = answers.collect();
        text = format!("{text}, with the answers {}", answers.join("; "));
    }
    text
}

/// The claim of a check, and the reason if it is false.
fn sentence(receipt: &Receipt, check: &ReceiptCheck) -> String {
    let part = check.part.and_then(|place| receipt.parts.get(place));
    let who = part.map_or_else(String::new, |part| visible(part.approver.as_str()));
    let claim = match check.fact {
        ReceiptFact::Artifact => {
            "The request is in the file, and nobody has changed it.".to_owned()
        }
        ReceiptFact::Teams => {
            "The states in the file are those of the teams in the rule.".to_owned()
        }
        ReceiptFact::Decision => {
            format!("The device of {who} signed the decision about exactly this request.")
        }
        ReceiptFact::Device => {
            let device = part.map_or_else(String::new, |part| part.device.id().to_string());
            let is_own = part.is_none_or(ReceiptPart::is_own);
            match part.and_then(|part| part.seat.as_ref()) {
                Some(seat) if !is_own => {
                    let seat = visible(seat.as_str());
                    format!("The device {device} belongs to {who}, who stood in for {seat}.")
                }
                Some(_) | None => format!("The device {device} belongs to {who}."),
            }
        }
        ReceiptFact::Current => {
            format!("In the newest state that is known here, {who} still decides with this device.")
        }
        ReceiptFact::Hints => format!("Comment and choice of {who} are those that were signed."),
        ReceiptFact::Enforcer => {
            let enforcer = visible(receipt.enforcer.as_str());
            format!("The approved request names {enforcer} as its sender.")
        }
        ReceiptFact::Outcome => {
            "The key that the approved request names signed the outcome of these decisions."
                .to_owned()
        }
        ReceiptFact::Complete => "The file has every decision that counted.".to_owned(),
        ReceiptFact::Count => "The decisions, counted by the rule, lead to the outcome.".to_owned(),
        ReceiptFact::Asked => {
            "An agent's machine asked: no approver made up the request and its rule.".to_owned()
        }
    };
    match &check.result {
        Err(ProofGap::Failed(error)) => format!("{claim} ({})", visible(&error.to_string())),
        Ok(()) | Err(ProofGap::Absent) => claim,
    }
}
