//! Requests that outlive `run`, `ask`, a call over MCP and a guard, and `sets`.

use countersign::protocol::decision::Verdict;
use serde_json::{Value, json};

use super::approver::{Ran, prepared};
use super::enforcer::decide;
use super::guard::{own_name, socket, start_guard};
use super::mcp::agent::Agent;
use super::rules::policy;
use super::sets::{decided, path, scene};
use crate::client::people::{ClientScene, choice};

const RULE: &str = "[[rule]]\nfrom = [\"alice\", \"bob\"]\napprovals = 2\npark = \"4h\"\n";

fn sets(world: &ClientScene, arguments: &[&str]) -> Ran {
    let arguments = [&["sets"], arguments].concat();
    let mut command = prepared(world, "bot", &arguments);
    command.output().unwrap().into()
}

#[tokio::test(flavor = "multi_thread")]
async fn run_and_ask_go_on_with_what_was_not_decided_in_time() {
    let (world, people) = scene().await;
    let (ran_in, ran) = path(&world, "ran");
    policy(&world, RULE);
    let run = ["run", "--timeout", "4s", "--", "touch", &ran];
    let parked = decided(&world, &run, &[]).await.expect(77).err;
    assert!(parked.contains("not decided yet"), "{parked}");
    let both = [&people[0], &people[1]].map(|person| (person, choice(Verdict::Approve)));
    for (person, choice) in &both {
        decide(person, choice).await;
    }
    let again = ["run", "--", "touch", &ran];
    let ended = decided(&world, &again, &[]).await.expect(0).err;
    assert!(ended.contains("approved by alice, bob"), "{ended}");
    assert!(ran_in.exists());

    let (plan, file) = path(&world, "PLAN.md");
    std::fs::write(plan, "Ship it.").unwrap();
    let asked = decided(&world, &["ask", "--timeout", "4s", &file], &[]).await;
    let asked: Value = serde_json::from_str(&asked.expect(75).out).unwrap();
    assert_eq!(asked["cause"], "parked");
    let (_, receipt) = path(&world, "receipt.json");
    let save = ["ask", "--save", &receipt, &file];
    decided(&world, &save, &both).await.expect(0);
    let mut verify = prepared(&world, "bot", &["verify", &receipt]);
    Ran::from(verify.output().unwrap()).expect(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_over_mcp_asks_the_same_again() {
    let (world, people) = scene().await;
    policy(&world, RULE);
    let mut agent = Agent::start(&world).await;
    let plan =
        |seconds: u64| json!({ "type": "plan", "text": "Ship it.", "timeout_seconds": seconds });
    let parked = agent.call("request_approval", plan(10)).await;
    assert_eq!(parked["cause"], "parked", "{parked}");
    for person in &people[..2] {
        decide(person, &choice(Verdict::Approve)).await;
    }
    let outcome = agent.call("request_approval", plan(60)).await;
    assert_eq!(outcome["message"], "alice, bob approved it");
}

#[tokio::test(flavor = "multi_thread")]
async fn through_a_guard_a_call_goes_on_too_with_the_sets_of_the_guard() {
    let (world, people) = scene().await;
    policy(&world, RULE);
    let _guard = start_guard(&world, &own_name());
    let address = format!("{}:{}", own_name(), socket(&world).display());
    let (ran_in, ran) = path(&world, "ran");
    let run = [
        "run",
        "--guard",
        &address,
        "--timeout",
        "5s",
        "--",
        "touch",
        &ran,
    ];
    let parked = decided(&world, &run, &[]).await.expect(77).err;
    assert!(parked.contains("the same call, unchanged"), "{parked}");
    for person in &people[..2] {
        decide(person, &choice(Verdict::Approve)).await;
    }
    decided(&world, &run, &[]).await.expect(0);
    assert!(ran_in.exists());
    decided(&world, &run, &[]).await.expect(77);
}

#[tokio::test(flavor = "multi_thread")]
async fn sets_are_listed_and_withdrawn() {
    let (world, people) = scene().await;
    assert!(
        sets(&world, &[])
            .expect(0)
            .err
            .contains("nothing stays open")
    );
    policy(&world, RULE);
    for word in ["one", "two"] {
        let run = ["run", "--timeout", "4s", "--", "echo", word];
        decided(&world, &run, &[]).await.expect(77);
    }
    let listed = sets(&world, &[]).expect(0).out;
    for expected in [
        "echo one",
        "echo two",
        "2 approvals, from alice and bob",
        "no call waits",
    ] {
        assert!(listed.contains(expected), "{listed}");
    }
    let listed: Value = serde_json::from_str(&sets(&world, &["--json"]).expect(0).out).unwrap();
    assert_eq!(listed[0]["awaited"], false);
    let id = listed[0]["requestId"].as_str().unwrap();
    sets(&world, &["withdraw", "zzz"]).expect(77);
    sets(&world, &["withdraw", &id[id.len() - 8..]]).expect(0);
    assert_eq!(people[1].find("").await.unwrap().len(), 1);
    sets(&world, &["withdraw", "--all"]).expect(0);
    assert!(people[1].find("").await.unwrap().is_empty());
    assert_eq!(sets(&world, &["--json"]).expect(0).out.trim(), "[]");
}
