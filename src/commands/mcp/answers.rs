//! What a tool answers, as the output schema describes it. `approved` alone says yes.

use std::time::Duration;

use countersign::client::enforcer::{AcceptedApproval, ApprovalDenial};
use countersign::client::{ClientError, visible};
use countersign::e2e::ArtifactHints;
use serde_json::{Value, json};

use crate::commands::enforcer::cause;
use crate::commands::guard::{AskOutcome, AskReply};

/// Without the members that have no value.
fn answer(mut members: Value) -> Value {
    if let Some(members) = members.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    members
}

pub fn approved(id: &str, accepted: &AcceptedApproval) -> Value {
    let approval = &accepted.approval;
    answer(json!({
        "outcome": "approved",
        "message": format!("{} approved it", visible(approval.approver.as_str())),
        "requestId": id,
        "approverId": approval.approver,
        "reason": approval.hints.reason,
        "actionId": approval.hints.action_id,
    }))
}

pub fn denied(id: Option<&str>, denial: &ApprovalDenial) -> Value {
    let none = ArtifactHints::default();
    let (approver, hints) = match denial {
        ApprovalDenial::Rejected(rejection) => (Some(&rejection.approver), &rejection.hints),
        _ => (None, &none),
    };
    answer(json!({
        "outcome": "denied",
        "cause": cause(denial),
        "message": denial.to_string(),
        "requestId": id,
        "approverId": approver,
        "reason": hints.reason,
        "actionId": hints.action_id,
    }))
}

/// The answer of a guard, as the output schema has it.
pub fn replied(reply: AskReply) -> Value {
    let (outcome, cause, message) = match reply.outcome {
        AskOutcome::Approved { .. } => {
            let who = reply.approver.as_deref().unwrap_or_default();
            ("approved", None, format!("{who} approved it"))
        }
        AskOutcome::Denied { cause, message } if cause == "interrupted" => {
            ("denied", Some("withdrawn".to_owned()), message)
        }
        AskOutcome::Denied { cause, message } => ("denied", Some(cause), message),
    };
    answer(json!({
        "outcome": outcome,
        "cause": cause,
        "message": message,
        "requestId": reply.request_id,
        "approverId": reply.approver,
        "reason": reply.reason,
        "actionId": reply.action_id,
    }))
}

/// It was taken back here, whether or not the gateway knows it yet.
pub fn withdrawn(id: Option<&str>, told: Result<(), ClientError>) -> Value {
    let message = match told {
        Ok(()) => "the request was withdrawn".to_owned(),
        Err(error) => format!(
            "the request was withdrawn here, so no decision counts any more, but the gateway could not be told: {error}"
        ),
    };
    answer(json!({
        "outcome": "denied",
        "cause": "withdrawn",
        "message": message,
        "requestId": id,
    }))
}

pub fn pending(id: Option<&str>, note: &str, left: Duration) -> Value {
    answer(json!({
        "outcome": "pending",
        "message": note,
        "requestId": id,
        "secondsLeft": left.as_secs(),
    }))
}

/// Something is wrong on this side. Nobody may take it for a yes.
pub fn failed(problem: &str) -> Value {
    json!({ "outcome": "denied", "cause": "error", "message": format!("denied: {problem}") })
}
