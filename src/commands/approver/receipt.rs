//! `verify` of a receipt: every fact that it proves, and every one that it does not.

use countersign::client::{ClientError, visible};
use countersign::e2e::{
    DeviceId, DeviceTrust, OutcomeEffect, PartReport, ProofGap, Receipt, ReceiptAnchors,
    ReceiptCheck, ReceiptFact, ReceiptPart, ReceiptReport,
};
use countersign::protocol::decision::Verdict;
use countersign::protocol::id::{ApproverId, TextId as _};
use serde_json::{Value, json};

use super::artifact::members_of;
use super::rule_text::rule_sentence;
use super::view::render_artifact;
use crate::commands::exit_action::{DENIED, ExitAction};
use crate::commands::output::{print_json, print_line};
use crate::commands::terminal::{Colour, TerminalScreen, output_has_colour, paint};

/// Without one of these, nobody should rely on the receipt.
const NEEDED: [ReceiptFact; 6] = [
    ReceiptFact::Artifact,
    ReceiptFact::Decision,
    ReceiptFact::Device,
    ReceiptFact::Outcome,
    ReceiptFact::Complete,
    ReceiptFact::Count,
];

/// Whether the file claims to be a receipt, which is record version 2.
pub fn is_receipt(text: &[u8]) -> bool {
    let value = serde_json::from_slice::<Value>(text);
    value.is_ok_and(|value| value["v"] == 2)
}

pub fn anchors_of(trusts: Vec<DeviceTrust>) -> ReceiptAnchors {
    let anchors = ReceiptAnchors::default();
    trusts.into_iter().fold(anchors, ReceiptAnchors::with_trust)
}

/// From texts like `alice=ID`. The approver must be named: one person's two devices could otherwise
/// count as two people.
pub fn named_anchors(texts: &[String]) -> anyhow::Result<ReceiptAnchors> {
    let mut anchors = ReceiptAnchors::default();
    for text in texts {
        let named = text.split_once('=').and_then(|(approver, id)| {
            Some((ApproverId::parse(approver)?, DeviceId::parse(id).ok()?))
        });
        let (approver, id) = named.ok_or(ClientError::Choice(
            "for a receipt, name each device with its approver: --device alice=ID",
        ))?;
        anchors = anchors.with_device(approver, id);
    }
    Ok(anchors)
}

pub fn verify_receipt(
    text: &[u8],
    anchors: &ReceiptAnchors,
    json: bool,
    screen: &mut TerminalScreen,
) -> anyhow::Result<ExitAction> {
    let receipt = Receipt::parse(text);
    let receipt = receipt.map_err(|error| ClientError::Record(visible(&error.to_string())))?;
    let report = receipt.verify(anchors);
    let is_proven = NEEDED.iter().all(|fact| report.is_proven(*fact));
    let is_trusted = is_proven && report.is_consistent();
    if json {
        print_json(&report_json(&receipt, &report, is_trusted))?;
    } else {
        print_line(&report_text(&receipt, &report))?;
    }
    if is_trusted {
        return Ok(ExitAction::DONE);
    }
    let word = screen.paint(Colour::Red, "not trusted");
    screen.remark(&format!(
        "{word}: the receipt does not prove everything that it needs to"
    ));
    Ok(ExitAction::code(DENIED))
}

fn report_json(receipt: &Receipt, report: &ReceiptReport, is_trusted: bool) -> Value {
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
            json!({
                "approverId": part.approver,
                "requestId": part.request_id,
                "deviceId": part.device.id().to_string(),
                "decision": shown.verdict.map(|it| it.verdict.as_str()),
                "reason": shown.hints.as_ref().and_then(|hints| hints.reason.as_deref()),
            })
        });
    json!({
        "trusted": is_trusted,
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
        lines.push(rule_sentence(rule));
    }
    let parts = receipt.parts.iter().zip(&report.parts);
    lines.extend(parts.map(|(part, shown)| part_line(part, shown)));
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
        lines.push(format!("\n{}", render_artifact(artifact, colour)));
    }
    lines.join("\n")
}

fn part_line(part: &ReceiptPart, shown: &PartReport) -> String {
    let who = visible(part.approver.as_str());
    let verb = match shown.verdict.map(|it| it.verdict) {
        Some(Verdict::Approve) => "approved",
        Some(Verdict::Reject) => "rejected",
        None => "signed nothing that can be verified",
    };
    let reason = shown.hints.as_ref().and_then(|hints| hints.reason.as_ref());
    let reason = reason.map(|reason| format!(": “{}”", visible(reason)));
    format!("{who} {verb}{}", reason.unwrap_or_default())
}

/// The claim of a check, and the reason if it is false.
fn sentence(receipt: &Receipt, check: &ReceiptCheck) -> String {
    let part = check.part.and_then(|place| receipt.parts.get(place));
    let who = part.map_or_else(String::new, |part| visible(part.approver.as_str()));
    let claim = match check.fact {
        ReceiptFact::Artifact => {
            "The request is in the file, and nobody has changed it.".to_owned()
        }
        ReceiptFact::Decision => {
            format!("The device of {who} signed the decision about exactly this request.")
        }
        ReceiptFact::Device => {
            let device = part.map_or_else(String::new, |part| part.device.id().to_string());
            format!("The device {device} belongs to {who}.")
        }
        ReceiptFact::Hints => format!("The comment of {who} is the one that was signed."),
        ReceiptFact::Enforcer => {
            let enforcer = visible(receipt.enforcer.as_str());
            format!("The request came from {enforcer}.")
        }
        ReceiptFact::Outcome => {
            "The agent's machine signed the outcome of these decisions.".to_owned()
        }
        ReceiptFact::Complete => "The file has every decision that counted.".to_owned(),
        ReceiptFact::Count => "The decisions, counted by the rule, lead to the outcome.".to_owned(),
        ReceiptFact::Asked => {
            "An agent's machine asked: the approvers did not make up the request together."
                .to_owned()
        }
    };
    match &check.result {
        Err(ProofGap::Failed(error)) => format!("{claim} ({})", visible(&error.to_string())),
        Ok(()) | Err(ProofGap::Absent) => claim,
    }
}
