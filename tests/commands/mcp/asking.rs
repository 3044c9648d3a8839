//! Questions and their answers.

use countersign::client::approver::{Approver, InboxRequest};
use countersign::protocol::decision::Verdict;
use serde_json::{Value, json};

use super::agent::Agent;
use crate::client::people::{PATIENCE, because, choice};
use crate::commands::enforcer::{decide, paired};
use crate::support::{Cluster, until};

async fn inbox(approver: &Approver) -> Vec<InboxRequest> {
    let mut items = Vec::new();
    approver.inbox(|item| items.push(item)).await.unwrap();
    items
}

fn artifact(item: &InboxRequest) -> Value {
    serde_json::from_str(item.content.as_ref().unwrap().artifact().text()).unwrap()
}

/// Everything that waits, once it is so many.
async fn waiting(approver: &Approver, count: usize) -> Vec<InboxRequest> {
    until("all wait", PATIENCE, async || {
        inbox(approver).await.len() == count
    })
    .await;
    inbox(approver).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_comes_with_what_the_person_said() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let mut agent = Agent::start(&world).await;
    let arguments = json!({
        "type": "plan",
        "text": "# Plan\n\nShip it.",
        "title": "Release",
        "timeout_seconds": 120.0,
        "approver": "alice",
        "actions": [
            { "id": "staging", "caption": "To staging", "decision": "approve" },
            { "id": "no", "caption": "Not today", "decision": "reject" },
        ],
        "wait": null,
    });
    let id = agent.begin_call("request_approval", arguments).await;
    let mut chosen = because(Verdict::Approve, "Fine.");
    chosen.hints.action_id = Some("staging".to_owned());
    let artifact = decide(&alice, &chosen).await;
    assert_eq!(artifact["artifactType"], "plan.review");
    let payload = json!({ "kind": "plan", "text": "# Plan\n\nShip it.", "title": "Release" });
    assert_eq!(artifact["payload"], payload);
    let expected = json!({
        "outcome": "approved",
        "message": "alice approved it",
        "requestId": artifact["requestId"],
        "approverId": "alice",
        "reason": "Fine.",
        "actionId": "staging",
    });
    assert_eq!(agent.outcome(id).await, expected);
    let known = json!({ "requestId": artifact["requestId"] });
    assert_eq!(agent.call("check_approval", known).await, expected);
    assert!(!agent.remarks().contains("Ship it"), "{}", agent.remarks());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_is_an_answer_with_its_signed_reason() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let mut agent = Agent::start(&world).await;
    let arguments = json!({ "type": "command", "text": "rm -rf build" });
    let id = agent.begin_call("request_approval", arguments).await;
    let artifact = decide(&alice, &because(Verdict::Reject, "Not on a Friday.")).await;
    let expected = json!({
        "outcome": "denied",
        "cause": "rejected",
        "message": "alice rejected it: Not on a Friday.",
        "requestId": artifact["requestId"],
        "approverId": "alice",
        "reason": "Not on a Friday.",
    });
    assert_eq!(agent.outcome(id).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_type_reaches_the_approver_as_what_it_is() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let mut agent = Agent::start(&world).await;
    let here = std::env::current_dir().unwrap();
    let here = here.to_str().unwrap();
    let object = json!({ "tool": "pay", "amount": 7 });
    let cases = [
        (
            json!({ "type": "task", "text": "t" }),
            "task.review",
            json!({ "kind": "plan", "text": "t" }),
        ),
        (
            json!({ "type": "checkpoint", "text": "{\"a\": 1}" }),
            "checkpoint.review",
            json!({ "kind": "plan", "text": "{\"a\": 1}" }),
        ),
        (
            json!({ "type": "patch", "text": "+new", "title": "One line" }),
            "patch.review",
            json!({ "kind": "patch", "patch": "+new", "title": "One line" }),
        ),
        (
            json!({ "type": "command", "text": "make" }),
            "command.review",
            json!({ "kind": "command", "command": "make", "directory": here }),
        ),
        (
            json!({ "type": "command", "text": "make", "directory": "/srv/x" }),
            "command.review",
            json!({ "kind": "command", "command": "make", "directory": "/srv/x" }),
        ),
        (
            json!({ "type": "plan", "content": object }),
            "plan.review",
            object.clone(),
        ),
    ];
    for (mut arguments, artifact_type, payload) in cases {
        arguments["wait"] = false.into();
        let pending = agent.call("request_approval", arguments).await;
        assert_eq!(pending["outcome"], "pending", "{pending}");
        let artifact = artifact(&waiting(&alice, 1).await[0]);
        assert_eq!(artifact["artifactType"], artifact_type);
        assert_eq!(artifact["payload"], payload);
        let known = json!({ "requestId": pending["requestId"] });
        let withdrawn = agent.call("withdraw_approval", known).await;
        assert_eq!(withdrawn["cause"], "withdrawn", "{withdrawn}");
        waiting(&alice, 0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_can_be_left_and_looked_for_later() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let mut agent = Agent::start(&world).await;
    let id = agent.ask("later").await;
    let known = json!({ "requestId": id });
    let pending = agent.call("check_approval", known.clone()).await;
    assert_eq!(pending["outcome"], "pending");
    assert_eq!(pending["message"], "waiting for alice");
    let left = pending["secondsLeft"].as_u64().unwrap();
    assert!((1..=600).contains(&left), "{left}");
    let patient = json!({ "requestId": id, "wait_seconds": 600 });
    let checking = agent.begin_call("check_approval", patient).await;
    let impatient = json!({ "requestId": id, "wait_seconds": 1 });
    let pending = agent.call("check_approval", impatient).await;
    assert_eq!(pending["outcome"], "pending");
    assert!(!agent.has_answered(checking));
    decide(&alice, &choice(Verdict::Approve)).await;
    let approved = agent.outcome(checking).await;
    assert_eq!(approved["outcome"], "approved");
    assert_eq!(approved["requestId"], id);
    // A decision stays a decision.
    assert_eq!(agent.call("withdraw_approval", known).await, approved);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_withdrawn_is_gone_and_stays_denied() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let mut agent = Agent::start(&world).await;
    let arguments = json!({ "type": "plan", "text": "x" });
    let waits = agent.begin_call("request_approval", arguments).await;
    let artifact = artifact(&waiting(&alice, 1).await[0]);
    let known = json!({ "requestId": artifact["requestId"] });
    let withdrawn = agent.call("withdraw_approval", known.clone()).await;
    assert_eq!(withdrawn["outcome"], "denied");
    assert_eq!(withdrawn["cause"], "withdrawn");
    assert_eq!(withdrawn["message"], "the request was withdrawn");
    assert_eq!(agent.outcome(waits).await, withdrawn, "the first call ends");
    assert!(alice.find("").await.unwrap().is_empty());
    assert_eq!(agent.call("check_approval", known).await, withdrawn);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_decides_in_time() {
    let (world, _alice) = paired(Cluster::start(1).await).await;
    let mut agent = Agent::start(&world).await;
    let arguments = json!({ "type": "plan", "text": "x", "timeout_seconds": 1 });
    let denied = agent.call("request_approval", arguments).await;
    assert_eq!(denied["outcome"], "denied");
    assert_eq!(denied["cause"], "timeout", "{denied}");
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_reported_to_a_caller_who_wants_it() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let mut agent = Agent::start(&world).await;
    let params = json!({
        "name": "request_approval",
        "arguments": { "type": "plan", "text": "x", "timeout_seconds": 90 },
        "_meta": { "progressToken": "a token" },
    });
    let id = agent.begin("tools/call", params).await;
    let progress = |agent: &Agent| {
        let lines = agent.lines().into_iter();
        let reports = lines.filter(|line| line["method"] == "notifications/progress");
        reports
            .map(|line| line["params"].clone())
            .collect::<Vec<_>>()
    };
    let told = |report: &Value| report["message"] == "waiting for alice";
    until("progress", PATIENCE, async || {
        progress(&agent)
            .iter()
            .filter(|report| told(report))
            .count()
            >= 2
    })
    .await;
    decide(&alice, &choice(Verdict::Approve)).await;
    assert_eq!(agent.outcome(id).await["outcome"], "approved");
    let reports = progress(&agent);
    let passed = |report: &Value| report["progress"].as_f64().unwrap();
    assert!(reports.is_sorted_by(|one, next| passed(one) < passed(next)));
    for report in &reports {
        assert_eq!(report["progressToken"], "a token");
        assert_eq!(report["total"], 90.0);
    }
    assert_eq!(agent.lines().last().unwrap()["id"], id, "none follows");
    // Without a token there is no progress report.
    let arguments = json!({ "type": "plan", "text": "x", "timeout_seconds": 3 });
    agent.call("request_approval", arguments).await;
    assert_eq!(progress(&agent).len(), reports.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_at_once_each_get_their_own_answer() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let mut agent = Agent::start(&world).await;
    let mut calls = Vec::new();
    for number in 0..20 {
        let arguments = json!({ "type": "plan", "text": format!("number {number}") });
        calls.push(agent.begin_call("request_approval", arguments).await);
    }
    for item in waiting(&alice, 20).await.iter().rev() {
        let artifact = artifact(item);
        let text = artifact["payload"]["text"].as_str().unwrap();
        let number: u32 = text.strip_prefix("number ").unwrap().parse().unwrap();
        let verdict = match number % 2 {
            0 => Verdict::Approve,
            _ => Verdict::Reject,
        };
        alice.decide(item, &because(verdict, text)).await.unwrap();
    }
    for (number, id) in calls.into_iter().enumerate() {
        let answer = agent.outcome(id).await;
        let expected = ["approved", "denied"][number % 2];
        assert_eq!(answer["outcome"], expected, "{answer}");
        assert_eq!(answer["reason"], format!("number {number}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn so_many_may_wait_and_no_more() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let mut agent = Agent::start(&world).await;
    let first = agent.ask("first").await;
    for _ in 1..64 {
        agent.ask("another").await;
    }
    let arguments = json!({ "type": "plan", "text": "one more", "wait": false });
    let refused = agent.failure("request_approval", arguments).await;
    assert!(
        refused.contains("64 requests are already waiting"),
        "{refused}"
    );
    assert_eq!(inbox(&alice).await.len(), 64);
    let known = json!({ "requestId": first });
    agent.call("withdraw_approval", known).await;
    agent.ask("one more").await;
}
