//! Calls that are cancelled, and servers that end: nobody is left with a question that no agent
//! waits for.

use std::process::Stdio;

use countersign::client::approver::Approver;
use countersign::client::profile::{Profile, ProfileError};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;

use super::agent::Agent;
use crate::client::people::{ClientScene, PATIENCE};
use crate::commands::enforcer::paired;
use crate::hostile::meddler::Meddler;
use crate::support::process::{Signal, countersign, signal};
use crate::support::{Cluster, until};

async fn waits(approver: &Approver, count: usize) {
    until("the inbox has so many", PATIENCE, async || {
        approver.find("").await.unwrap().len() == count
    })
    .await;
}

fn plan() -> Value {
    json!({ "type": "plan", "text": "x" })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_withdraws_its_request_and_no_other() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let mut agent = Agent::start(&world).await;
    let cancelled = agent.begin_call("request_approval", plan()).await;
    waits(&alice, 1).await;
    let other = agent.begin_call("request_approval", plan()).await;
    waits(&alice, 2).await;
    let oldest = alice.find("").await.unwrap().remove(0);
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": cancelled, "reason": "the user pressed escape" },
    });
    agent.send(&cancel).await;
    waits(&alice, 1).await;
    let left = alice.find("").await.unwrap().remove(0);
    assert_ne!(left.request_id, oldest.request_id);
    // It is known as withdrawn, and the call itself gets no answer.
    let known = json!({ "requestId": oldest.request_id });
    let checked = agent.call("check_approval", known).await;
    assert_eq!(checked["cause"], "withdrawn", "{checked}");
    assert!(!agent.has_answered(cancelled));
    assert!(!agent.has_answered(other));
    let bot = world.cluster.enforcer("bot").await;
    let state = bot.state(oldest.request_id.as_str()).await;
    assert_eq!(state, "withdrawn");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_is_in_use_is_refused_and_its_call_can_still_be_cancelled() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let mut agent = Agent::start(&world).await;
    let id = agent.begin_call("request_approval", plan()).await;
    waits(&alice, 1).await;
    let params = json!({ "name": "request_approval", "arguments": plan() });
    let again = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
    agent.send(&again).await;
    let refused = agent.answer(id).await;
    assert_eq!(refused["error"]["code"], -32_600, "{refused}");
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id },
    });
    agent.send(&cancel).await;
    waits(&alice, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_input_is_noticed_though_no_answer_is_read() {
    let world = ClientScene::start().await;
    let mut command = Command::from(countersign());
    command
        .env("XDG_CONFIG_HOME", world.directory.path())
        .args(["mcp", "--profile", "bot"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let mut server = command.spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    let begin = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "a test", "version": "1" },
        },
    });
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let text = format!("{begin}\n{}", format!("{list}\n").repeat(400));
    input.write_all(text.as_bytes()).await.unwrap();
    drop(input);
    timeout(PATIENCE, server.wait()).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_look_withdraws_nothing() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let mut agent = Agent::start(&world).await;
    let asked = agent.ask("x").await;
    let patient = json!({ "requestId": asked, "wait_seconds": 600 });
    let looking = agent.begin_call("check_approval", patient).await;
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": looking },
    });
    agent.send(&cancel).await;
    let known = json!({ "requestId": asked });
    let pending = agent.call("check_approval", known).await;
    assert_eq!(pending["outcome"], "pending");
    waits(&alice, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_input_withdraws_everything() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let mut agent = Agent::start(&world).await;
    agent.begin_call("request_approval", plan()).await;
    agent.ask("left alone").await;
    waits(&alice, 2).await;
    agent.close_input();
    let (status, remarks) = agent.ended().await;
    assert_eq!(status.code(), Some(0), "{remarks}");
    assert!(alice.find("").await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_withdraw_everything() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    for (sent, code) in [
        (Signal::SIGTERM, 143),
        (Signal::SIGINT, 130),
        (Signal::SIGHUP, 129),
    ] {
        let mut agent = Agent::start(&world).await;
        agent.begin_call("request_approval", plan()).await;
        agent.ask("left alone").await;
        waits(&alice, 2).await;
        signal(agent.pid(), sent);
        let (status, remarks) = agent.ended().await;
        assert_eq!(status.code(), Some(code), "{remarks}");
        assert!(alice.find("").await.unwrap().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_does_not_answer_keeps_no_server_from_ending() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let node = world.cluster.urls()[0].clone();
    let silent = Meddler::start(&node, |call, gateway| async move {
        if call.path.ends_with("/withdraw") {
            std::future::pending::<()>().await;
        }
        gateway.pass(&call).await
    })
    .await;
    let urls = vec![silent.url.clone()];
    (world.file("bot"))
        .update(|profile: &mut Profile| {
            profile.enforcer.as_mut().unwrap().gateway.urls = urls;
            Ok::<_, ProfileError>(())
        })
        .unwrap();
    for by_signal in [false, true] {
        let mut agent = Agent::start(&world).await;
        let before = alice.find("").await.unwrap().len();
        agent.begin_call("request_approval", plan()).await;
        waits(&alice, before + 1).await;
        if by_signal {
            signal(agent.pid(), Signal::SIGTERM);
        } else {
            agent.close_input();
        }
        agent.ended().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_says_nothing_or_goes_at_once_is_no_failure() {
    let (world, _alice) = paired(Cluster::start(1).await).await;
    let mut silent = Agent::spawn(&world, "bot");
    silent.close_input();
    let (status, remarks) = silent.ended().await;
    assert_eq!((status.code(), remarks.as_str()), (Some(0), ""));
    let mut brief = Agent::spawn(&world, "bot");
    brief.initialize("2025-06-18").await;
    brief.close_input();
    let (status, remarks) = brief.ended().await;
    assert_eq!((status.code(), remarks.as_str()), (Some(0), ""));
}
