//! Messages over the pipes: the handshake, the tools, and every message that makes no sense.

use serde_json::{Value, json};

use super::agent::Agent;
use crate::client::people::{ClientScene, PATIENCE};
use crate::commands::enforcer::paired;
use crate::support::{Cluster, until};

#[tokio::test(flavor = "multi_thread")]
async fn every_version_of_the_protocol_is_spoken() {
    let world = ClientScene::start().await;
    for (asked, spoken) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let mut agent = Agent::spawn(&world, "bot");
        let answer = agent.initialize(asked).await;
        let result = &answer["result"];
        assert_eq!(result["protocolVersion"], spoken, "{answer}");
        assert_eq!(result["serverInfo"]["name"], "countersign");
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(result["serverInfo"]["version"], version);
        assert_eq!(result["capabilities"], json!({ "tools": {} }));
        let instructions = result["instructions"].as_str().unwrap();
        assert!(instructions.contains("request_approval"), "{instructions}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_none_is_refused_and_the_next_one_is_read() {
    let world = ClientScene::start().await;
    let mut agent = Agent::spawn(&world, "bot");
    agent.write("{\"jsonrpc\":\"2.0\"}\n").await;
    agent
        .write("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}\n")
        .await;
    let params = json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "_meta": null,
        "clientInfo": { "name": "a test", "version": "1" },
    });
    let answer = agent.request("initialize", params).await;
    assert_eq!(
        answer["result"]["protocolVersion"], "2025-06-18",
        "{answer}"
    );
    let lines = agent.lines();
    let refused = lines.iter().filter(|line| line["error"]["code"] == -32_600);
    assert_eq!(refused.count(), 2, "{lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_version_needs_no_handshake() {
    let (world, _alice) = paired(Cluster::start(1).await).await;
    let mut agent = Agent::spawn(&world, "bot");
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let found = agent
        .request("server/discover", json!({ "_meta": meta }))
        .await;
    let versions = found["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&"2026-07-28".into()), "{found}");
    let params = json!({
        "name": "request_approval",
        "arguments": { "type": "plan", "text": "x", "wait": false },
        "_meta": meta,
    });
    let answer = agent.request("tools/call", params).await;
    let outcome = &answer["result"]["structuredContent"]["outcome"];
    assert_eq!(*outcome, "pending", "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tools_describe_themselves() {
    let world = ClientScene::start().await;
    let mut agent = Agent::start(&world).await;
    let listed = agent.request("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(
        names,
        ["request_approval", "check_approval", "withdraw_approval"]
    );
    for tool in tools {
        assert!(tool["description"].as_str().unwrap().len() > 80, "{tool}");
        for schema in [&tool["inputSchema"], &tool["outputSchema"]] {
            jsonschema::draft202012::meta::validate(schema).unwrap();
            assert_eq!(schema["type"], "object");
            for (name, member) in schema["properties"].as_object().unwrap() {
                let plain = ["requestId", "decision"].contains(&name.as_str());
                assert!(plain || member["description"].is_string(), "{name}");
            }
            // Several agents refuse schemas that have these at the top.
            for word in ["oneOf", "anyOf", "allOf", "$ref"] {
                assert_eq!(schema[word], Value::Null);
            }
        }
    }
    let kinds = &tools[0]["inputSchema"]["properties"]["type"]["enum"];
    let all = json!(["plan", "task", "patch", "command", "checkpoint"]);
    assert_eq!(*kinds, all);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_of_another_server_is_unknown() {
    let (world, _alice) = paired(Cluster::start(1).await).await;
    let mut one = Agent::start(&world).await;
    let mut other = Agent::start(&world).await;
    let known = json!({ "requestId": one.ask("x").await });
    let refused = other.failure("check_approval", known.clone()).await;
    assert!(refused.contains("unknown request"), "{refused}");
    let refused = other.failure("withdraw_approval", known.clone()).await;
    assert!(refused.contains("unknown request"), "{refused}");
    let pending = one.call("check_approval", known).await;
    assert_eq!(pending["outcome"], "pending");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_are_none_are_refused_and_do_no_harm() {
    let (world, _alice) = paired(Cluster::start(1).await).await;
    let mut agent = Agent::start(&world).await;
    for (method, params, code) in [
        (
            "tools/call",
            json!({ "name": "approve_everything", "arguments": {} }),
            -32_602,
        ),
        (
            "tools/call",
            json!({ "name": "request_approval", "arguments": [] }),
            -32_602,
        ),
        ("tools/call", json!({ "name": 7 }), -32_602),
        ("tools/call", json!({}), -32_602),
        ("approve/everything", json!({}), -32_601),
        (
            "resources/read",
            json!({ "uri": "file:///etc/passwd" }),
            -32_601,
        ),
    ] {
        let answer = agent.request(method, params).await;
        assert_eq!(answer["error"]["code"], code, "{answer}");
    }
    // No arguments at all are no arguments.
    let answer = agent
        .request("tools/call", json!({ "name": "check_approval" }))
        .await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert_eq!(agent.ask("still there").await.len(), 36);
}

#[tokio::test(flavor = "multi_thread")]
async fn text_that_is_no_message_is_passed_over() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let mut agent = Agent::start(&world).await;
    let secret = "hush-hush";
    for text in [
        "\n",
        "not JSON\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1\n",
        "[]\n",
        "\u{0}\u{1}\n",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/unheard-of\"}\n",
        &format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":\"{secret}\n"
        ),
    ] {
        agent.write(text).await;
    }
    let asked = agent.ask(secret).await;
    until("it waits", PATIENCE, async || {
        alice.find(&asked).await.unwrap().len() == 1
    })
    .await;
    assert!(!agent.remarks().contains(secret), "{}", agent.remarks());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_refused_or_dropped() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let mut agent = Agent::start(&world).await;
    let large = "x".repeat(5 << 20);
    let refused = agent
        .failure("request_approval", json!({ "type": "plan", "text": large }))
        .await;
    assert!(
        refused.contains("text: expected at most 4194304 bytes"),
        "{refused}"
    );
    let object = json!({ "type": "plan", "content": { "a": large } });
    let refused = agent.failure("request_approval", object).await;
    assert!(
        refused.contains("content: expected at most 4194304 bytes"),
        "{refused}"
    );
    // Small enough for this server, and too large for the gateway.
    let large = "x".repeat(3 << 20);
    let denied = agent
        .call("request_approval", json!({ "type": "plan", "text": large }))
        .await;
    assert_eq!(denied["cause"], "refused", "{denied}");
    let arguments = json!({ "type": "plan", "text": "y".repeat(17 << 20) });
    let dropped = agent.begin_call("request_approval", arguments).await;
    agent.ask("still there").await;
    assert!(!agent.has_answered(dropped));
    assert!(
        agent.remarks().contains("maximum line length"),
        "{}",
        agent.remarks()
    );
    assert_eq!(alice.find("").await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_message_that_is_no_request_ends_it_with_a_reason() {
    let world = ClientScene::start().await;
    let mut agent = Agent::spawn(&world, "bot");
    let notification = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    agent.send(&notification).await;
    let (status, remarks) = agent.ended().await;
    assert_eq!(status.code(), Some(1));
    assert!(remarks.contains("initialize request"), "{remarks}");
}
