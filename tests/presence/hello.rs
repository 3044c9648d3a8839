//! `hello`: what an enforcer's client says of itself, and where it is shown.

use std::time::Duration;

use serde_json::{Value, json};

use super::{channels, record, scene, socket};
use crate::support::push::{Socket, Stream};
use crate::support::{Cluster, Enforcer, open, request_id, sealed, sealed_for};

/// Says hello, and returns the answer to it, if there was one.
pub async fn say(socket: &mut Socket, hello: &Value) -> Option<Value> {
    let mut hello = hello.clone();
    hello["msgType"] = json!("hello");
    socket.send(&hello).await;
    // Frames are taken in turn: once this one is refused, the hello has been taken.
    socket.send(&json!({ "msgType": "end" })).await;
    let first = socket.expect_type("error").await;
    if first["body"]["details"]["pointer"] == "/msgType" {
        return None;
    }
    let second = socket.expect_type("error").await;
    assert_eq!(second["body"]["details"]["pointer"], "/msgType");
    Some(first)
}

/// The record without what hello does not fill.
async fn said(cluster: &Cluster) -> Value {
    let mut record = record(&cluster.admin().await).await;
    for other in ["enforcerDeviceId", "status", "lastSeenAt", "transport"] {
        record.as_object_mut().unwrap().remove(other);
    }
    record
}

#[tokio::test(flavor = "multi_thread")]
async fn hello_fills_the_record_and_a_later_one_replaces_it_whole() {
    let (cluster, enforcer) = scene(2).await;
    let mut sockets = [
        socket(&cluster, 0, &enforcer).await,
        socket(&cluster, 1, &enforcer).await,
    ];
    let longest = "ü".repeat(1_024);
    for (node, hello) in [
        (
            0,
            json!({ "enforcerLabel": "Build \"bot\"", "workspaceName": "monorepo",
                    "capabilities": { "push": true, "poll": false, "sse": true } }),
        ),
        (1, json!({ "enforcerLabel": longest })),
        (1, json!({ "capabilities": { "poll": true } })),
        (0, json!({ "workspaceName": "", "capabilities": {} })),
        (1, json!({ "workspaceName": longest })),
        (0, json!({})),
        (0, json!({ "enforcerLabel": "Build bot" })),
    ] {
        assert_eq!(say(&mut sockets[node], &hello).await, None);
        assert_eq!(said(&cluster).await, hello);
        assert_eq!(said(&cluster).await, hello, "on the other node too");
    }
    drop(sockets);
    channels(&cluster, 0).await;
    let left = record(&cluster.admin().await).await;
    assert_eq!(
        left["enforcerLabel"], "Build bot",
        "it outlives its channel"
    );
    assert_eq!(left["status"], "offline");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_hello_is_answered_with_an_error_and_changes_nothing() {
    let (cluster, enforcer) = scene(1).await;
    let mut socket = socket(&cluster, 0, &enforcer).await;
    let good = json!({ "enforcerLabel": "Build bot", "workspaceName": "w", "capabilities": { "push": true } });
    assert_eq!(say(&mut socket, &good).await, None);
    let mut bad = vec![
        ("/capabilities", json!({ "capabilities": true })),
        ("/capabilities", json!({ "capabilities": ["push"] })),
        ("/capabilities", json!({ "capabilities": null })),
        (
            "/capabilities/fly",
            json!({ "capabilities": { "fly": true } }),
        ),
        ("/label", json!({ "label": "unknown" })),
        ("/body", json!({ "enforcerLabel": "x", "body": {} })),
    ];
    for value in [json!(1), json!(true), json!(null), json!({}), json!(["a"])] {
        bad.push(("/enforcerLabel", json!({ "enforcerLabel": value })));
        bad.push(("/workspaceName", json!({ "workspaceName": value })));
    }
    for value in [json!(1), json!("true"), json!(null), json!({}), json!([])] {
        bad.push((
            "/capabilities/push",
            json!({ "capabilities": { "push": value } }),
        ));
        bad.push((
            "/capabilities/poll",
            json!({ "capabilities": { "poll": value } }),
        ));
        bad.push((
            "/capabilities/sse",
            json!({ "capabilities": { "sse": value } }),
        ));
    }
    let long = "x".repeat(1_025);
    bad.push(("/enforcerLabel", json!({ "enforcerLabel": long })));
    bad.push(("/workspaceName", json!({ "workspaceName": long })));
    for (pointer, hello) in bad {
        let answer = say(&mut socket, &hello).await.expect("an error");
        assert_eq!(answer["body"]["code"], "PROTO_ERR_VALIDATION", "{hello}");
        assert_eq!(answer["body"]["details"]["pointer"], pointer, "{hello}");
        assert_eq!(said(&cluster).await, good);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approvers_hello_is_ignored() {
    let (cluster, _) = scene(1).await;
    let approver = cluster.approver("alice").await;
    let url = &cluster.nodes[0].url;
    let mut socket = Socket::connect(url, "approver", "alice", approver.client.key())
        .await
        .unwrap();
    for hello in [
        json!({ "enforcerLabel": "Alice" }),
        json!({ "enforcerLabel": 1, "anything": [] }),
    ] {
        assert_eq!(say(&mut socket, &hello).await, None);
    }
    drop(socket);
    channels(&cluster, 0).await;
    let rows = "select count(*) from enforcers";
    assert_eq!(cluster.database.number(rows).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn approval_requests_name_the_enforcer_by_its_label() {
    let (cluster, enforcer) = scene(2).await;
    let approver = cluster.approver("alice").await;
    let url = &cluster.nodes[0].url;
    let mut stream = Stream::connect(url, "approvers", "alice", approver.client.key(), None)
        .await
        .unwrap();
    let mut human = Socket::connect(
        &cluster.nodes[1].url,
        "approver",
        "alice",
        approver.client.key(),
    )
    .await
    .unwrap();
    // One of the same id in another tenant, whose label is its own.
    let there = cluster
        .administration
        .create_tenant("others")
        .await
        .unwrap();
    let role = countersign::store::identity::credential::RoleName::Enforcer;
    let key = cluster.key(&there, role, Some("build-bot")).await;
    let stranger = Enforcer {
        client: cluster.client(Some(&key)),
        id: "build-bot".to_owned(),
    };
    let mut elsewhere = socket(&cluster, 0, &stranger).await;
    say(&mut elsewhere, &json!({ "enforcerLabel": "Stranger" })).await;

    let unnamed = request_id();
    enforcer
        .submit(&unnamed, "alice", sealed())
        .await
        .expect(202);
    let (_, streamed) = stream.expect().await;
    assert_eq!(streamed["body"]["enforcerLabel"], json!(null));
    assert_eq!(human.expect().await, streamed);

    let mut agent = socket(&cluster, 0, &enforcer).await;
    say(&mut agent, &json!({ "enforcerLabel": "Build \"bot\"" })).await;
    let (sealed, plain) = (request_id(), request_id());
    let short = sealed_for(Duration::from_secs(600));
    enforcer.submit(&sealed, "alice", short).await.expect(202);
    let (event, streamed) = stream.expect().await;
    let start = r#""body":{"enforcerId":"build-bot","enforcerLabel":"Build \"bot\"",""#;
    assert!(event.data.contains(start), "{}", event.data);
    assert_eq!(human.expect().await, streamed);
    enforcer
        .submit(&plain, "alice", open(&plain))
        .await
        .expect(202);
    let (event, _) = stream.expect().await;
    assert!(event.data.contains(start), "{}", event.data);

    let items = approver.inbox("").await.expect(200).body("/items");
    for item in items.as_array().unwrap() {
        assert_eq!(item["body"]["enforcerLabel"], "Build \"bot\"");
    }
    assert_eq!(items[1], streamed);
    cluster.pass(Duration::from_secs(900));
    let expired = approver.expired("").await.expect(200);
    assert_eq!(expired.body("/items/0/requestId"), sealed.as_str());
    let start =
        r#""body":{"enforcerId":"build-bot","enforcerLabel":"Build \"bot\"","state":"expired","#;
    assert!(expired.text.contains(start), "{expired:?}");
}
