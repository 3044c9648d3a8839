//! Items as messages: each stays the same one, and is acknowledged by its approver.

use std::time::Duration;

use serde_json::{Value, json};

use super::{fill, parties};
use crate::support::{Cluster, compact, envelope, now, request_id, sealed_for, with, without};

#[tokio::test(flavor = "multi_thread")]
async fn an_item_is_the_same_message_on_every_read_and_its_ack_is_its_approvers() {
    let cluster = Cluster::start(2).await;
    let (enforcer, alice) = parties(&cluster).await;
    let bob = cluster.approver("bob").await;
    let request = request_id();
    let short = sealed_for(Duration::from_secs(600));
    enforcer.submit(&request, "alice", short).await.expect(202);
    let first = alice.inbox("").await.body("/items/0");
    for node in 0..2 {
        let page = alice.client.on(node).get("/v1/approvers/alice/inbox").await;
        assert_eq!(
            page.expect(200).body("/items/0"),
            first,
            "every member is as it was"
        );
    }
    let message = first["msgId"].as_str().unwrap();
    let acked = "select count(*) from inbox_items where acked_at is not null";
    bob.ack(&request, message).await.refused(404, "NOT_FOUND");
    enforcer
        .ack(&request, message)
        .await
        .refused(404, "NOT_FOUND");
    assert_eq!(cluster.database.number(acked).await, 0);
    let answer = alice.ack(&request, message).await.expect(200);
    assert_eq!(answer.json()["msgType"], "ack.accepted");
    assert_eq!(answer.json()["requestId"], request.as_str());
    assert_eq!(
        answer.json()["body"],
        json!({ "msgId": message, "status": "received" })
    );
    assert_eq!(cluster.database.number(acked).await, 1);
    alice.ack(&request, message).await.expect(200);
    assert_eq!(
        alice.inbox("").await.body("/items/0"),
        first,
        "an ack changes nothing here"
    );

    cluster.pass(Duration::from_secs(601));
    assert!(alice.inbox_ids().await.is_empty());
    let expired = alice.expired("").await.expect(200).body("/items/0");
    assert_eq!(expired["body"]["state"], "expired");
    assert_eq!(without(&expired, "/body/state"), first);
    alice.ack(&request, message).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_rule_of_an_ack_names_the_member_that_breaks_it() {
    let cluster = Cluster::start(1).await;
    let (enforcer, alice) = parties(&cluster).await;
    let request = fill(&enforcer, "alice", 1).await.remove(0);
    let message = alice.inbox("").await.body("/items/0/msgId");
    let body = json!({ "msgId": message, "status": "processed", "ackAt": now() });
    let good = envelope(
        "ack.submit",
        &request,
        json!({ "approverId": "alice" }),
        body,
    );
    let post = async |ack: Value| alice.client.post("/v1/acks", &ack).await;
    for name in ["msgId", "status", "ackAt"] {
        let pointer = format!("/body/{name}");
        let answer = post(without(&good, &pointer)).await;
        answer.refused_at(400, "VALIDATION", &pointer);
        let answer = post(with(&good, &pointer, json!(1))).await;
        answer.refused_at(400, "VALIDATION", &pointer);
    }
    for (pointer, value, code) in [
        ("/body/status", json!("read"), "VALIDATION"),
        ("/body/status", json!("Received"), "VALIDATION"),
        ("/body/msgId", json!(""), "VALIDATION"),
        ("/body/ackAt", json!("now"), "TIMESTAMP"),
        ("/body/surprise", json!(1), "VALIDATION"),
        ("/body/outcome", json!(""), "VALIDATION"),
        ("/body/outcome", json!("\u{e9}"), "VALIDATION"),
        ("/body/outcome", json!({ "signed": 1 }), "VALIDATION"),
        ("/body/outcome", json!("x".repeat(16_385)), "VALIDATION"),
        ("/msgType", json!("ack.accepted"), "VALIDATION"),
    ] {
        post(with(&good, pointer, value))
            .await
            .refused_at(400, code, pointer);
    }
    let (upper, simple) = (
        message.as_str().unwrap().to_uppercase(),
        message.as_str().unwrap().replace('-', ""),
    );
    for unknown in [
        "no uuid",
        "01890000-0000-7000-8000-000000000000",
        &upper,
        &simple,
    ] {
        let answer = post(with(&good, "/body/msgId", json!(unknown))).await;
        let answer = answer.refused(404, "NOT_FOUND");
        assert_eq!(answer.json()["requestId"], request.as_str());
    }
    let answer = post(with(&good, "/sender/approverId", json!("bob"))).await;
    answer.refused_at(403, "FORBIDDEN", "/sender/approverId");
    let acked = "select count(*) from inbox_items where acked_at is not null";
    assert_eq!(cluster.database.number(acked).await, 0);
    let answer = post(without(&good, "/sender/approverId")).await.expect(200);
    assert_eq!(answer.body("/status"), "processed");
    assert_eq!(cluster.database.number(acked).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_is_stored_with_the_ack_that_delivers_and_served_to_those_who_may_read() {
    let cluster = Cluster::start(2).await;
    let (enforcer, alice) = parties(&cluster).await;
    let (bob, admin) = (cluster.approver("bob").await, cluster.admin().await);
    let other = cluster.enforcer("other-bot").await;
    let request = fill(&enforcer, "alice", 1).await.remove(0);
    let path = format!("/v1/exchanges/{request}/outcome");
    alice.client.get(&path).await.refused(404, "NOT_FOUND");
    let ack = |sender: Value, message: &Value, outcome: &str| {
        let body =
            json!({ "msgId": message, "status": "processed", "ackAt": now(), "outcome": outcome });
        envelope("ack.submit", &request, sender, body)
    };
    // An approver's ack has nobody to tell it to.
    let item = alice.inbox("").await.body("/items/0/msgId");
    let own = ack(json!({ "approverId": "alice" }), &item, "mine");
    alice.client.post("/v1/acks", &own).await.expect(200);
    alice.decide(&request, compact("approve")).await.expect(200);
    alice.client.get(&path).await.refused(404, "NOT_FOUND");

    let message = enforcer.wait(&request, 5).await.expect(200).json()["msgId"].clone();
    let text = "{\"payload\": \"as it came\"}".to_owned() + &"x".repeat(16_000);
    let sender = json!({ "enforcerId": "build-bot" });
    let first = ack(sender.clone(), &message, &text);
    enforcer.client.post("/v1/acks", &first).await.expect(200);
    let second = ack(sender, &message, "another");
    enforcer.client.post("/v1/acks", &second).await.expect(200);
    for (node, reader) in [&alice.client, &enforcer.client, &admin]
        .into_iter()
        .enumerate()
    {
        let answer = reader.on(node % 2).get(&path).await.expect(200);
        assert_eq!(answer.json()["msgType"], "exchange.outcome");
        assert_eq!(answer.body("/outcome"), text.as_str(), "the first stands");
        assert_eq!(answer.body("/requestId"), request.as_str());
    }
    for stranger in [&bob.client, &other.client] {
        stranger.get(&path).await.refused(404, "NOT_FOUND");
    }
    let stored = "select count(*) from exchange_payloads where part = 'outcome'";
    assert_eq!(cluster.database.number(stored).await, 1);
}
