//! Every example of the document: requests are taken as they stand, answers keep to their schemas.

use std::time::Duration;

use serde_json::Value;

use super::Everyone;
use crate::support::contract::Operation;
use crate::support::{Cluster, Contract, until};

/// Calls whose examples name what only a node can make up; as they stand, there is no such thing.
pub const MADE_UP: [&str; 24] = [
    "listTeamStates",
    "listTeamConsents",
    "listTeamIntroductions",
    "readOutcome",
    "acknowledge",
    "resolvePairing",
    "completePairing",
    "readPairing",
    "readPairingAlias",
    "revokePairing",
    "disableTenant",
    "revokeCredential",
    "issueCode",
    "withdrawInvitation",
    "readDeviceInvitation",
    "join",
    "removeNotification",
    "testNotification",
    "readLogCheckpoint",
    "readLogTile",
    "readPartialLogTile",
    "readPartialLaterLogTile",
    "readLogProof",
    "readLogConsistency",
];

/// Where a call stands in the order of the examples: what others are about comes first, and ends
/// come last.
pub fn order(operation: &Operation) -> (usize, String, usize) {
    let first = [
        "submitArtifact",
        "submitAnyArtifact",
        "resealExchange",
        "submitDecision",
        "submitAnyDecision",
    ];
    let rank = first.iter().position(|id| *id == operation.id());
    let methods = ["POST", "PUT", "GET", "DELETE"];
    let method = methods.iter().position(|one| operation.method == *one);
    (
        rank.unwrap_or(first.len()),
        operation.path.clone(),
        method.unwrap(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_example_is_answered_as_documented_when_sent_in_order() {
    let cluster = Cluster::with(1, |config| config.presence.write_seconds = 1).await;
    let everyone = Everyone::of(&cluster).await;
    let contract = Contract::of(&everyone.nobody).await;
    let mut operations = contract.operations();
    operations.sort_by_key(order);
    let mut sent = 0;
    for operation in &operations {
        // Streams do not end; a WebSocket needs its handshake, a certificate its connection. All
        // have tests of their own.
        let apart = ["/v1/ws", "/platform/v1/certificates"];
        // So does what a device has to sign or to begin.
        let signed = [
            "addDevice",
            "revokeDevice",
            "introduceEnforcer",
            "createTeam",
            "publishTeamState",
            "inviteToTeam",
            "consentToTeam",
            "introduceToTeam",
            "inviteDevice",
            "answerDeviceInvitation",
            "endDeviceInvitation",
        ];
        // And the calls that need a credential of another profile.
        let compat = [
            "checkConsent",
            "readPolicies",
            "sendHeartbeat",
            "offerPairing",
            "claimPairing",
        ];
        let signed = signed.contains(&operation.id()) || compat.contains(&operation.id());
        if signed || operation.path.contains("/sse/") || apart.contains(&operation.path.as_str()) {
            continue;
        }
        let bodies = operation.bodies();
        let bodies: Vec<_> = match bodies.as_slice() {
            [] => vec![None],
            some => some.iter().map(|(_, body)| Some(body)).collect(),
        };
        for body in bodies {
            let path = operation.example_path();
            let call = async |client| {
                let method = operation.method.clone();
                contract.call(client, method, &path, body).await.status
            };
            if operation.id() == "readPresence" {
                let soon = Duration::from_secs(10);
                let written = async || call(&everyone.admin).await == 200;
                until("presence is written down", soon, written).await;
            }
            let mut statuses = Vec::new();
            for client in everyone.all() {
                statuses.push(call(client).await);
            }
            let good = statuses.iter().any(|status| (200..300).contains(status));
            if MADE_UP.contains(&operation.id()) {
                assert!(statuses.contains(&404), "{} {statuses:?}", operation.id());
            } else {
                assert!(good, "{} {statuses:?}", operation.id());
            }
            sent += 1;
        }
    }
    assert!(sent > 45, "{sent}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_example_keeps_to_its_schema() {
    let cluster = Cluster::start(1).await;
    let contract = Contract::of(&cluster.client(None)).await;
    let mut seen = 0;
    let mut check = |content: &Value, about: &str| {
        for media in content.as_object().into_iter().flat_map(|all| all.values()) {
            for (name, example) in media["examples"].as_object().into_iter().flatten() {
                let faults = contract.faults(&media["schema"], &example["value"]);
                assert_eq!(faults, None, "{about} {name}");
                seen += 1;
            }
        }
    };
    for operation in contract.operations() {
        check(&operation.value["requestBody"]["content"], operation.id());
        for response in operation.value["responses"].as_object().unwrap().values() {
            check(&contract.resolve(response)["content"], operation.id());
        }
        for parameter in operation.parameters("path") {
            let faults = contract.faults(&parameter["schema"], &parameter["example"]);
            assert_eq!(faults, None, "{} {parameter}", operation.id());
        }
    }
    assert!(seen > 400, "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_has_an_example_and_every_refusal_its_codes() {
    let cluster = Cluster::start(1).await;
    let contract = Contract::of(&cluster.client(None)).await;
    for operation in contract.operations() {
        for (status, response) in operation.value["responses"].as_object().unwrap() {
            let response = contract.resolve(response);
            let about = format!("{} {status}", operation.id());
            for (kind, media) in response["content"].as_object().into_iter().flatten() {
                if kind.ends_with("json") {
                    let examples = media["examples"].as_object().expect(&about);
                    assert!(!examples.is_empty(), "{about}");
                }
            }
            if status.as_str() >= "400" && operation.id() != "ready" {
                let codes = response.to_string().matches("PROTO_ERR_").count();
                assert!(codes >= 2, "{about}");
            }
        }
    }
}
