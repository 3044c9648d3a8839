//! `/asyncapi.json` tells the truth: its messages are those that travel, in both directions, and
//! their examples work.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Everyone;
use crate::support::described::messages;
use crate::support::push::{PATIENCE, Socket, Stream};
use crate::support::{Client, Cluster, Contract, http, now};

fn example(contract: &Contract, id: &str) -> Value {
    contract.messages["components"]["messages"][id]["examples"][0]["payload"].clone()
}

fn name<'c>(contract: &'c Contract, id: &str) -> &'c str {
    let message = &contract.messages["components"]["messages"][id];
    message["name"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_message_is_used_named_once_for_each_direction_and_has_a_good_example() {
    let cluster = Cluster::start(1).await;
    let contract = Contract::of(&cluster.client(None)).await;
    let described = contract.messages["components"]["messages"]
        .as_object()
        .unwrap();
    assert_eq!(described.len(), 16);
    let mut used = BTreeSet::new();
    for action in ["send", "receive"] {
        let mut ids = BTreeSet::new();
        for channel in ["approverStream", "enforcerStream", "webSocket"] {
            let listed = &contract.messages["channels"][channel]["messages"];
            let over = messages(&contract.messages, channel, action);
            for id in &over {
                let path = format!("#/components/messages/{id}");
                assert_eq!(listed[id]["$ref"], path.as_str());
            }
            ids.extend(over);
        }
        let names: BTreeSet<_> = ids.iter().map(|id| name(&contract, id)).collect();
        assert_eq!(names.len(), ids.len(), "{ids:?}");
        used.extend(ids);
    }
    assert!(used.iter().eq(described.keys()), "{used:?}");
    for (id, message) in described {
        let faults = contract.message_faults(id, &example(&contract, id));
        assert_eq!(faults, None, "{id}");
        for member in ["title", "summary", "description"] {
            assert!(message[member].is_string(), "{id} {member}");
        }
        if id != "ping" {
            assert_eq!(example(&contract, id)["msgType"], message["name"], "{id}");
        }
    }
    let socket = &contract.messages["channels"]["webSocket"];
    let codes = socket["x-close-codes"].as_object().unwrap();
    assert!(codes.keys().eq(["1001", "1008", "1009", "1013"]));
    assert_eq!(socket["x-subprotocols"], json!(["countersign"]));
    for (_, channel) in contract.messages["channels"].as_object().unwrap() {
        let path = &contract.document["paths"][channel["address"].as_str().unwrap()];
        assert!(path["get"].is_object(), "{channel}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_takes_the_messages_that_are_described_and_no_others() {
    let cluster = Cluster::start(1).await;
    let everyone = Everyone::of(&cluster).await;
    let contract = Contract::of(&everyone.nobody).await;
    let url = cluster.urls().remove(0);
    let agent = Socket::connect(&url, "enforcer", "build-bot", everyone.enforcer.key());
    let mut agent = agent.await.expect("a channel");
    agent.send(&json!({ "msgType": "unheard.of" })).await;
    let refused = agent.expect_type("error").await;
    let expected = refused["body"]["details"]["expected"].as_str().unwrap();
    let taken: BTreeSet<_> = expected
        .split(", ")
        .flat_map(|one| one.split(" or "))
        .collect();
    let described = messages(&contract.messages, "webSocket", "receive");
    let described: BTreeSet<_> = described.iter().map(|id| name(&contract, id)).collect();
    assert_eq!(taken, described);
}

/// Makes a call with its first example, which must be accepted.
async fn made(contract: &Contract, client: &Client, id: &str) {
    let call = contract.operation(id);
    let (_, body) = &call.bodies()[0];
    let answer = client.post(&call.example_path(), body).await;
    assert!(answer.status < 300, "{answer:?}");
}

/// The names of an object's members, of its body's too.
fn shape(message: &Value) -> Vec<String> {
    let names = |value: &Value, under: &str| -> Vec<String> {
        let members = value.as_object().into_iter().flatten();
        members.map(|(name, _)| format!("{under}{name}")).collect()
    };
    let mut shape = names(message, "");
    shape.extend(names(&message["sender"], "sender/"));
    shape.extend(names(&message["body"], "body/"));
    shape.sort_unstable();
    shape
}

#[tokio::test(flavor = "multi_thread")]
async fn each_example_is_taken_or_looks_like_what_a_node_sends() {
    let cluster = Cluster::start(1).await;
    let everyone = Everyone::of(&cluster).await;
    let contract = Contract::of(&everyone.nobody).await;
    let url = cluster.urls().remove(0);
    let agent = Socket::connect(&url, "enforcer", "build-bot", everyone.enforcer.key());
    let mut agent = agent.await.expect("a channel");
    let human = Socket::connect(&url, "approver", "alice", everyone.approver.key());
    let mut human = human.await.expect("a channel");
    let sent = messages(&contract.messages, "webSocket", "send");
    let mut seen = BTreeSet::new();
    // A real message keeps to the schema, and the example has the same members.
    let mut met = |real: &Value| {
        let is = |id: &&String| real["msgType"] == name(&contract, id);
        let id = sent.iter().find(is).unwrap_or_else(|| panic!("{real}"));
        assert_eq!(contract.message_faults(id, real), None, "{real}");
        assert_eq!(shape(real), shape(&example(&contract, id)), "{id}");
        seen.insert(id.clone());
    };
    let frame = |id: &str| {
        let mut frame = example(&contract, id);
        if id != "hello" {
            frame["msgId"] = json!("frame-1");
        }
        frame
    };
    agent.send(&frame("hello")).await;
    agent.send(&frame("artifactSubmit")).await;
    met(&agent.expect_type("artifact.accepted").await);
    met(&human.expect_type("approval.request").await);
    human.send(&frame("decisionSubmit")).await;
    met(&human.expect_type("decision.accepted").await);
    let delivered = agent.expect_type("decision.deliver").await;
    met(&delivered);
    let mut ack = frame("ackSubmit");
    agent.send(&ack).await;
    let unknown = agent.expect_type("error").await;
    assert_eq!(
        unknown["body"]["code"], "PROTO_ERR_NOT_FOUND",
        "it was read"
    );
    ack["body"]["msgId"] = delivered["msgId"].clone();
    agent.send(&ack).await;
    met(&agent.expect_type("ack.accepted").await);
    // The second refusal has the members of the example.
    let mut again = frame("decisionSubmit");
    again["body"]["nonce"] = json!("another");
    human.send(&again).await;
    met(&human.expect_type("error").await);

    made(&contract, &everyone.approver, "sendPrompt").await;
    met(&agent.expect_type("prompt.send").await);
    agent.send(&frame("promptAckSubmit")).await;
    met(&agent.expect_type("prompt.ack").await);

    for (_, body) in contract.operation("submitAnyArtifact").bodies() {
        let submitted = everyone.enforcer.post("/v1/artifact", &body).await;
        submitted.expect(202);
    }
    for (client, operation, socket, kind) in [
        (
            &everyone.approver,
            "refreshExchange",
            &mut agent,
            "refresh.request",
        ),
        (
            &everyone.enforcer,
            "withdrawExchange",
            &mut human,
            "exchange.withdrawn",
        ),
    ] {
        made(&contract, client, operation).await;
        met(&socket.expect_type(kind).await);
    }
    assert_eq!(seen, sent, "every message was met");
}

#[tokio::test(flavor = "multi_thread")]
async fn event_streams_carry_the_messages_that_are_described() {
    let cluster = Cluster::with(1, |config| config.push.sse_ping_seconds = 1).await;
    let everyone = Everyone::of(&cluster).await;
    let contract = Contract::of(&everyone.nobody).await;
    let url = cluster.urls().remove(0);
    made(&contract, &everyone.enforcer, "submitArtifact").await;
    for (_, body) in contract.operation("submitAnyArtifact").bodies() {
        let submitted = everyone.enforcer.post("/v1/artifact", &body).await;
        submitted.expect(202);
    }
    let key = everyone.approver.key();
    let mut stream = Stream::connect(&url, "approvers", "alice", key, None)
        .await
        .unwrap();
    let (event, pushed) = stream.expect().await;
    assert_eq!(event.kind, "approval.request");
    assert_eq!(contract.message_faults("approvalRequest", &pushed), None);
    assert!(pushed["createdAt"].as_str().unwrap() < now().as_str());

    for id in ["submitDecision", "sendPrompt", "refreshExchange"] {
        made(&contract, &everyone.approver, id).await;
    }
    let key = everyone.enforcer.key();
    let mut stream = Stream::connect(&url, "enforcers", "build-bot", key, None)
        .await
        .unwrap();
    let mut expected = messages(&contract.messages, "enforcerStream", "send");
    assert!(expected.remove("ping"));
    while !expected.is_empty() {
        let (event, pushed) = stream.expect().await;
        let is = |id: &&String| event.kind == name(&contract, id);
        let id = expected.iter().find(is).expect("one of them, once").clone();
        assert_eq!(contract.message_faults(&id, &pushed), None, "{pushed}");
        expected.remove(&id);
    }
    // A ping is an event too, without an id.
    let http = http().build().unwrap();
    let request = http.get(format!("{url}/v1/sse/enforcers/build-bot"));
    let mut response = request.bearer_auth(key).send().await.unwrap();
    let mut text = String::new();
    while !text.contains("event: ping\ndata:\n\n") {
        let chunk = tokio::time::timeout(PATIENCE, response.chunk()).await;
        text += std::str::from_utf8(&chunk.expect("in time").unwrap().unwrap()).unwrap();
    }
    assert_eq!(contract.message_faults("ping", &json!("")), None);
}
