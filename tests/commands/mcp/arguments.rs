//! Arguments that make no sense.

use serde_json::json;

use super::agent::Agent;
use crate::commands::enforcer::paired;
use crate::support::Cluster;

#[tokio::test(flavor = "multi_thread")]
async fn wrong_arguments_are_named_with_what_was_expected() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let mut agent = Agent::start(&world).await;
    let action = |id: &str| json!({ "id": id, "caption": "c", "decision": "approve" });
    let six: Vec<_> = (0..6).map(|id| action(&id.to_string())).collect();
    let long = "x".repeat(2_000);
    let cases = [
        (json!({}), "type: expected one of plan, task, patch"),
        (
            json!({ "type": "poem", "text": "x" }),
            "type: expected one of",
        ),
        (json!({ "type": 7, "text": "x" }), "type: expected one of"),
        (json!({ "type": "plan" }), "text: expected the full text"),
        (
            json!({ "type": "plan", "text": " \n" }),
            "text: expected a non-empty text",
        ),
        (
            json!({ "type": "plan", "text": ["x"] }),
            "text: expected a non-empty text",
        ),
        (
            json!({ "type": "plan", "content": "x" }),
            "content: expected an object",
        ),
        (
            json!({ "type": "plan", "content": {} }),
            "content: expected a non-empty object",
        ),
        (
            json!({ "type": "plan", "text": "x", "content": { "a": 1 } }),
            "content: expected nothing",
        ),
        (
            json!({ "type": "plan", "content": { "a": 1 }, "title": "t" }),
            "title: expected it inside",
        ),
        (
            json!({ "type": "plan", "text": "x", "title": 7 }),
            "title: expected a non-empty text",
        ),
        (
            json!({ "type": "plan", "text": "x", "title": long }),
            "title: expected at most 1024 bytes",
        ),
        (
            json!({ "type": "plan", "text": "x", "directory": "/x" }),
            "directory: expected nothing",
        ),
        (
            json!({ "type": "command", "text": "x", "directory": "x" }),
            "directory: expected an absolute",
        ),
        (
            json!({ "type": "plan", "text": "x", "approver": "" }),
            "approver: expected a non-empty text",
        ),
        (
            json!({ "type": "plan", "text": "x", "wait": "no" }),
            "wait: expected true or false",
        ),
        (
            json!({ "type": "plan", "text": "x", "timeout_seconds": 0 }),
            "timeout_seconds: expected a whole number from 1 to 86400",
        ),
        (
            json!({ "type": "plan", "text": "x", "timeout_seconds": 1.5 }),
            "timeout_seconds: expected a whole",
        ),
        (
            json!({ "type": "plan", "text": "x", "timeout_seconds": -1 }),
            "timeout_seconds: expected a whole",
        ),
        (
            json!({ "type": "plan", "text": "x", "timeout_seconds": 1e300 }),
            "timeout_seconds: expected a whole",
        ),
        (
            json!({ "type": "plan", "text": "x", "timeout_seconds": "10m" }),
            "timeout_seconds: expected a whole",
        ),
        (
            json!({ "type": "plan", "text": "x", "timeout": 10 }),
            "timeout: unknown argument; expected one of type, text",
        ),
        (
            json!({ "type": "plan", "text": "x", "actions": [] }),
            "actions: expected a list of 1 to 5",
        ),
        (
            json!({ "type": "plan", "text": "x", "actions": {} }),
            "actions: expected a list",
        ),
        (
            json!({ "type": "plan", "text": "x", "actions": six }),
            "actions: expected a list",
        ),
        (
            json!({ "type": "plan", "text": "x", "actions": ["yes"] }),
            "actions[0]: expected an object",
        ),
        (
            json!({ "type": "plan", "text": "x", "actions": [action("a"), { "id": "b" }] }),
            "actions[1].caption: expected",
        ),
        (
            json!({ "type": "plan", "text": "x", "actions": [{ "id": "b", "caption": "c", "decision": "maybe" }] }),
            "actions[0].decision: expected approve or reject",
        ),
        (
            json!({ "type": "plan", "text": "x", "actions": [action("a"), action("A")] }),
            "actions[1].id: expected an id that no other",
        ),
        (
            json!({ "type": "plan", "text": "x", "actions": [{ "id": "b", "caption": "c", "decision": "approve", "colour": 1 }] }),
            "actions[0].colour: unknown argument",
        ),
    ];
    for (arguments, expected) in cases {
        let refused = agent.failure("request_approval", arguments.clone()).await;
        assert!(refused.contains(expected), "{expected} in {refused}");
    }
    for (tool, arguments, expected) in [
        ("check_approval", json!({}), "requestId: expected the id"),
        (
            "check_approval",
            json!({ "requestId": 7 }),
            "requestId: expected a non-empty text",
        ),
        (
            "check_approval",
            json!({ "requestId": "x" }),
            "unknown request",
        ),
        (
            "check_approval",
            json!({ "requestId": "x", "wait_seconds": 3_601 }),
            "wait_seconds: expected a whole number from 0 to 3600",
        ),
        (
            "check_approval",
            json!({ "requestId": "x", "wait": 1 }),
            "wait: unknown argument",
        ),
        ("withdraw_approval", json!({}), "requestId: expected the id"),
        (
            "withdraw_approval",
            json!({ "requestId": "x" }),
            "unknown request",
        ),
        (
            "withdraw_approval",
            json!({ "requestId": "x", "reason": "y" }),
            "reason: unknown argument",
        ),
    ] {
        let refused = agent.failure(tool, arguments).await;
        assert!(refused.contains(expected), "{expected} in {refused}");
    }
    assert!(alice.find("").await.unwrap().is_empty());
}
