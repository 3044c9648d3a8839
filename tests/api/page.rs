//! The page for people: it stands alone, lists every call, and its messages are those that travel.

use serde_json::{Value, json};

use super::Everyone;
use crate::support::push::{Socket, Stream};
use crate::support::{Cluster, Contract, now};

/// The examples on the page, by the name of their schema.
fn examples(page: &str) -> Vec<(String, Value)> {
    page.split("<pre data-message=\"")
        .skip(1)
        .map(|rest| {
            let (name, rest) = rest.split_once("\"><code>").unwrap();
            let text = rest.split("</code>").next().unwrap();
            let text = text
                .replace("&lt;", "<")
                .replace("&gt;", ">")
                .replace("&quot;", "\"")
                .replace("&amp;", "&");
            (name.to_owned(), serde_json::from_str(&text).unwrap())
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_stands_alone_and_lists_every_call() {
    let cluster = Cluster::start(1).await;
    let nobody = cluster.client(None);
    let contract = Contract::of(&nobody).await;
    let page = nobody.get("/docs").await.expect(200);
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe"));
    for banned in [
        "<script", "src=", "http:", "https:", "@import", "url(", " style=",
    ] {
        assert!(!page.text.contains(banned), "{banned}");
    }
    assert!(page.text.contains("prefers-color-scheme: dark"));
    assert!(page.text.contains("href=\"/openapi.json\""));
    for operation in contract.operations() {
        let line = format!("<code>{} {}</code>", operation.method, operation.path);
        assert!(page.text.contains(&line), "{line}");
    }
    for code in ["1001", "1008", "1009", "1013"] {
        assert!(
            page.text.contains(&format!("<code>{code}</code>")),
            "{code}"
        );
    }
    // What is opened is closed.
    for tag in [
        "table", "section", "h2", "h3", "p", "pre", "code", "tr", "td", "div", "main",
    ] {
        let opened = page.text.matches(&format!("<{tag}>")).count()
            + page.text.matches(&format!("<{tag} ")).count();
        assert_eq!(
            opened,
            page.text.matches(&format!("</{tag}>")).count(),
            "{tag}"
        );
    }
    let shown = examples(&page.text);
    assert_eq!(shown.len(), 15);
    for (name, example) in &shown {
        let schema = &contract.document["components"]["schemas"][name];
        assert!(schema.is_object(), "{name}");
        assert_eq!(contract.faults(schema, example), None, "{name}");
    }
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
    let page = everyone.nobody.get("/docs").await.expect(200);
    let shown = examples(&page.text);
    let example = |name: &str| {
        let found = shown.iter().find(|(one, _)| one == name);
        found.unwrap_or_else(|| panic!("{name}")).1.clone()
    };
    let url = cluster.urls().remove(0);
    let agent = Socket::connect(&url, "enforcer", "build-bot", everyone.enforcer.key());
    let mut agent = agent.await.expect("a channel");
    let human = Socket::connect(&url, "approver", "alice", everyone.approver.key());
    let mut human = human.await.expect("a channel");
    let mut seen = Vec::new();
    // A real message keeps to the schema, and the example has the same members.
    let mut met = |real: &Value| {
        let name = format!("printed.{}", real["msgType"].as_str().unwrap());
        let schema = &contract.document["components"]["schemas"][&name];
        assert_eq!(contract.faults(schema, real), None, "{real}");
        assert_eq!(shape(real), shape(&example(&name)), "{name}");
        seen.push(name);
    };
    let frame = |name: &str| {
        let mut frame = example(name);
        if name != "sent.hello" {
            frame["msgId"] = json!("frame-1");
        }
        frame
    };
    agent.send(&frame("sent.hello")).await;
    agent.send(&frame("sent.artifact.submit")).await;
    met(&agent.expect_type("artifact.accepted").await);
    met(&human.expect_type("approval.request").await);
    human.send(&frame("sent.decision.submit")).await;
    met(&human.expect_type("decision.accepted").await);
    let delivered = agent.expect_type("decision.deliver").await;
    met(&delivered);
    let mut ack = frame("sent.ack.submit");
    agent.send(&ack).await;
    let unknown = agent.expect_type("error").await;
    assert_eq!(
        unknown["body"]["code"], "PROTO_ERR_NOT_FOUND",
        "it was read"
    );
    ack["body"]["msgId"] = delivered["msgId"].clone();
    agent.send(&ack).await;
    met(&agent.expect_type("ack.accepted").await);
    // What is refused twice has the members of the example.
    let mut again = frame("sent.decision.submit");
    again["body"]["nonce"] = json!("another");
    human.send(&again).await;
    met(&human.expect_type("error").await);

    let prompt = contract.operations();
    let prompt = prompt.iter().find(|one| one.id() == "sendPrompt").unwrap();
    let (_, prompt) = &prompt.bodies()[0];
    everyone
        .approver
        .post("/v1/prompt", prompt)
        .await
        .expect(202);
    met(&agent.expect_type("prompt.send").await);
    agent.send(&frame("sent.prompt.ack")).await;
    met(&agent.expect_type("prompt.ack").await);

    for (operation, kind) in [
        ("refreshExchange", "refresh.request"),
        ("withdrawExchange", "exchange.withdrawn"),
    ] {
        let submit = contract.operations();
        let find = |id: &str| submit.iter().find(|one| one.id() == id).unwrap().clone();
        let (call, any) = (find(operation), find("submitAnyArtifact"));
        for (_, body) in any.bodies() {
            everyone
                .enforcer
                .post("/v1/artifact", &body)
                .await
                .expect(202);
        }
        let client = if kind == "refresh.request" {
            &everyone.approver
        } else {
            &everyone.enforcer
        };
        let answer = client.post(&call.example_path(), &call.bodies()[0].1).await;
        assert!(answer.status < 300, "{answer:?}");
        let socket = if kind == "refresh.request" {
            &mut agent
        } else {
            &mut human
        };
        met(&socket.expect_type(kind).await);
    }
    seen.sort_unstable();
    let mut printed: Vec<_> = shown.iter().map(|(name, _)| name.clone()).collect();
    printed.retain(|name| name.starts_with("printed."));
    printed.sort_unstable();
    assert_eq!(seen, printed, "every message was met");

    // Over an event stream it is the same message.
    let key = everyone.approver.key();
    let mut stream = Stream::connect(&url, "approvers", "alice", key, None)
        .await
        .unwrap();
    let (event, pushed) = stream.expect().await;
    assert_eq!(event.kind, "approval.request");
    let schema = &contract.document["components"]["schemas"]["printed.approval.request"];
    assert_eq!(contract.faults(schema, &pushed), None);
    assert!(pushed["createdAt"].as_str().unwrap() < now().as_str());
}
