//! The answers of the tools, as the output schema describes them. Only `approved` permits anything.

use std::time::Duration;

use countersign::client::ClientError;
use countersign::client::enforcer::{AcceptedApproval, ApprovalDenial};
use serde_json::{Value, json};

use crate::commands::guard::{AskOutcome, AskReply};

/// Without the members that have no value.
fn answer(mut members: Value) -> Value {
    if let Some(members) = members.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    members
}

/// The reason is given as it was signed.
pub fn approved(id: &str, accepted: &AcceptedApproval) -> Value {
    let mut reply = AskReply::of_approval(id.to_owned(), accepted, None);
    reply.reason.clone_from(&accepted.approval.hints.reason);
    replied(reply)
}

pub fn denied(id: Option<&str>, denial: &ApprovalDenial) -> Value {
    let mut reply = AskReply::of_denial(id.map(str::to_owned), denial);
    if let ApprovalDenial::Rejected(rejection) = denial {
        reply.reason.clone_from(&rejection.hints.reason);
    }
    replied(reply)
}

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

/// It was withdrawn here, whether or not the gateway knows it yet.
pub fn withdrawn(id: Option<&str>, told: Result<(), ClientError>) -> Value {
    let message = match told {
        Ok(()) => "the request was withdrawn".to_owned(),
        Err(error) => format!(
            "the request was withdrawn here, so no decision counts anymore, but the gateway could not be told: {error}"
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

/// Something is wrong on this side, which must not pass for an approval.
pub fn failed(problem: &str) -> Value {
    json!({ "outcome": "denied", "cause": "error", "message": format!("denied: {problem}") })
}
