//! Never a yes: no gateway, a gateway that lies, no profile, nobody who is paired.

use std::sync::{Arc, Mutex};

use countersign::client::profile::{Profile, ProfileError};
use countersign::protocol::decision::Verdict;
use serde_json::{Value, json};

use super::agent::Agent;
use crate::client::people::{ClientScene, because, refusing};
use crate::client::tamper::Tamper;
use crate::commands::enforcer::{decide, paired};
use crate::hostile::meddler::{Meddler, Reply, Route};
use crate::support::Cluster;

fn lead_to(world: &ClientScene, url: &str) {
    let urls = vec![url.to_owned()];
    (world.file("bot"))
        .update(|profile: &mut Profile| {
            profile.enforcer.as_mut().unwrap().gateway.urls = urls;
            Ok::<_, ProfileError>(())
        })
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_gateway_it_is_denied() {
    let (world, _alice) = paired(Cluster::start(1).await).await;
    let (_held, nowhere) = refusing();
    lead_to(&world, &nowhere);
    let mut agent = Agent::start(&world).await;
    for wait in [true, false] {
        let arguments = json!({ "type": "plan", "text": "x", "timeout_seconds": 2, "wait": wait });
        let denied = agent.call("request_approval", arguments).await;
        assert_eq!(denied["outcome"], "denied", "{denied}");
        assert_eq!(denied["cause"], "unavailable", "{denied}");
        let message = denied["message"].as_str().unwrap();
        assert!(message.contains(&nowhere), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_turns_a_rejection_into_an_approval_is_not_believed() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let node = world.cluster.urls()[0].clone();
    let liar = Tamper::start(&node, |path, answer| {
        if path.contains("/wait") {
            answer["body"]["decision"] = "approve".into();
        }
    })
    .await;
    lead_to(&world, &liar.url);
    let mut agent = Agent::start(&world).await;
    let arguments = json!({ "type": "plan", "text": "x" });
    let id = agent.begin_call("request_approval", arguments).await;
    let artifact = decide(&alice, &because(Verdict::Reject, "No.")).await;
    let denied = agent.outcome(id).await;
    assert_eq!(denied["outcome"], "denied");
    assert_eq!(denied["cause"], "untrusted");
    let message = denied["message"].as_str().unwrap();
    assert!(message.contains("signature does not verify"), "{message}");
    assert_eq!(denied["reason"], Value::Null, "nothing unsigned is told");
    let known = json!({ "requestId": artifact["requestId"] });
    assert_eq!(agent.call("check_approval", known).await, denied);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_only_says_approved_is_not_believed() {
    let (world, _alice) = paired(Cluster::start(1).await).await;
    let node = world.cluster.urls()[0].clone();
    let unsigned = json!({
        "msgId": "m", "msgType": "decision.deliver", "requestId": "r",
        "body": { "decision": "approve", "outcome": "approved" },
    });
    let state = |text: &'static str| Reply::new(204, "").with("exchange-state", text);
    for (what, reply, cause) in [
        ("a state", state("approved"), "ended"),
        (
            "an unsigned decision",
            Reply::new(200, unsigned.to_string()),
            "untrusted",
        ),
        (
            "an answer of its own",
            Reply::new(200, r#"{"outcome":"approved"}"#),
            "refused",
        ),
    ] {
        let reply = Arc::new(Mutex::new(Some(reply)));
        let liar = Meddler::start(&node, move |call, gateway| {
            let reply = Arc::clone(&reply);
            async move {
                let lie = match call.route() {
                    Route::Wait => reply.lock().unwrap().take(),
                    _ => None,
                };
                match lie {
                    Some(lie) => lie,
                    None => gateway.pass(&call).await,
                }
            }
        })
        .await;
        lead_to(&world, &liar.url);
        let mut agent = Agent::start(&world).await;
        let arguments = json!({ "type": "plan", "text": "x" });
        let denied = agent.call("request_approval", arguments).await;
        assert_eq!(denied["outcome"], "denied", "{what}: {denied}");
        assert_eq!(denied["cause"], cause, "{what}: {denied}");
        let known = json!({ "requestId": denied["requestId"] });
        let still = agent.call("check_approval", known).await;
        assert_eq!(still, denied, "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_that_is_unusable_is_told_to_whoever_asks_until_it_is_repaired() {
    let (world, alice) = paired(Cluster::start(1).await).await;
    let path = world.file("bot").path().to_owned();
    let arguments = || json!({ "type": "plan", "text": "x", "wait": false });
    for (what, expected) in [
        ("missing", "there is no profile"),
        ("damaged", "is damaged in line"),
    ] {
        let moved = path.with_extension("moved");
        std::fs::rename(&path, &moved).unwrap();
        if what == "damaged" {
            std::fs::copy(&moved, &path).unwrap();
            std::fs::write(&path, "[enforcer]\nid = 7").unwrap();
        }
        let mut agent = Agent::start(&world).await;
        let denied = agent.failure("request_approval", arguments()).await;
        assert!(denied.contains(expected), "{denied}");
        assert!(denied.contains("bot.toml"), "{denied}");
        let remarks = agent.remarks();
        assert!(remarks.contains("every request is denied"), "{remarks}");
        assert!(alice.find("").await.unwrap().is_empty());
        std::fs::rename(&moved, &path).unwrap();
        let asked = agent.ask("it works again").await;
        let known = json!({ "requestId": asked });
        agent.call("withdraw_approval", known).await;
    }
    let mut agent = Agent::start_with(&world, "../bot").await;
    let denied = agent.failure("request_approval", arguments()).await;
    assert!(denied.contains("a profile's name"), "{denied}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_anybody_to_ask_it_is_denied() {
    let (world, _alice) = paired(Cluster::start(1).await).await;
    world.enforcer("alone").await;
    for (profile, approver) in [("alone", None), ("bot", Some("bob"))] {
        let mut agent = Agent::start_with(&world, profile).await;
        let arguments = json!({ "type": "plan", "text": "x", "approver": approver });
        let denied = agent.call("request_approval", arguments).await;
        assert_eq!(denied["outcome"], "denied", "{denied}");
        assert_eq!(denied["cause"], "unpaired", "{denied}");
        let message = denied["message"].as_str().unwrap();
        assert!(message.contains("countersign pair"), "{message}");
        assert_eq!(denied["requestId"], Value::Null);
    }
}
