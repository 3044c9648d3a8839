//! The rules of a policy hold for `run`, `ask`, MCP, and through a guard.

use std::os::unix::fs::PermissionsExt as _;

use countersign::protocol::decision::Verdict;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use super::approver::prepared;
use super::enforcer::decide;
use super::guard::{own_name, socket, start_guard};
use super::mcp::agent::Agent;
use super::sets::{decided, path, scene};
use crate::client::people::{ClientScene, choice};
use crate::commands::approver::Ran;

pub fn policy(world: &ClientScene, text: &str) {
    let file = world.directory.path().join("countersign/policy.toml");
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_of_the_policy_holds_for_run_and_options_add_to_it() {
    let (world, people) = scene().await;
    let (ran_in, ran) = path(&world, "ran");
    let approve = || choice(Verdict::Approve);
    policy(
        &world,
        "[[rule]]\ncommands = [\"touch\"]\nfrom = [\"alice\", \"bob\"]\napprovals = 2\n",
    );
    let run = ["run", "--", "touch", &ran];
    let short = ["run", "--timeout", "20s", "--", "touch", &ran];
    let lacking = decided(&world, &short, &[(&people[0], approve())]).await;
    let lacking = lacking.expect(77).err;
    assert!(lacking.contains("lacks 1 (bob: did not"), "{lacking}");
    assert!(!ran_in.exists());
    let both = [(&people[0], approve()), (&people[1], approve())];
    let ended = decided(&world, &run, &both).await.expect(0);
    assert!(
        ended.err.contains("approved by alice, bob"),
        "{}",
        ended.err
    );
    assert!(ran_in.exists());

    // Carol as well, and not in place of the others.
    let all = [both[0].clone(), both[1].clone(), (&people[2], approve())];
    for option in [
        &["--approver", "carol"][..],
        &["--approvals", "1", "--from", "carol"],
    ] {
        let run = [&["run"], option, &["--", "touch", &ran]].concat();
        let ended = decided(&world, &run, &all).await.expect(0);
        assert!(ended.err.contains("alice, bob, carol"), "{}", ended.err);
    }
    // Other commands are as before, and a policy that makes no sense denies.
    let other = ["run", "--approver", "alice", "--", "true"];
    decided(&world, &other, &both[..1]).await.expect(0);
    policy(&world, "[[rule]]\nseparate = true\n");
    let refused = decided(&world, &other, &[]).await.expect(77).err;
    assert!(refused.contains("again with --operator"), "{refused}");
    policy(&world, "[[rule]]\nfrom = [\"team:x\"]\n");
    let refused = decided(&world, &other, &[]).await.expect(77).err;
    assert!(refused.contains("not paired with; pair it"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_over_mcp_can_demand_more_and_not_less() {
    let (world, people) = scene().await;
    let mut agent = Agent::start(&world).await;
    let plan = json!({ "type": "plan", "text": "Ship it.", "approvals": 2 });
    let id = agent.begin_call("request_approval", plan).await;
    let artifact = decide(&people[0], &choice(Verdict::Approve)).await;
    let asks = &artifact["extensions"]["countersign.rule"]["asks"];
    assert_eq!(asks[0]["approvals"], 2);
    decide(&people[2], &choice(Verdict::Approve)).await;
    let outcome = agent.outcome(id).await;
    assert_eq!(outcome["message"], "alice, carol approved it");

    policy(
        &world,
        "[[rule]]\ntools = [\"plan\"]\nfrom = [\"bob\", \"carol\"]\napprovals = 2\n",
    );
    let plan = json!({ "type": "plan", "text": "Ship it.", "approvals": 1, "wait": false });
    let pending = agent.call("request_approval", plan).await;
    let message = pending["message"].as_str().unwrap();
    assert!(message.contains("2 approvals from bob, carol"), "{message}");
    decide(&people[1], &choice(Verdict::Approve)).await;
    let known = json!({ "requestId": pending["requestId"], "wait_seconds": 3 });
    let pending = agent.call("check_approval", known.clone()).await;
    assert_eq!(pending["outcome"], "pending");
    let message = pending["message"].as_str().unwrap();
    assert!(message.contains("from carol (bob approved)"), "{message}");
    decide(&people[2], &choice(Verdict::Reject)).await;
    let ended = agent.call("check_approval", known).await;
    assert_eq!(
        (&ended["outcome"], &ended["cause"]),
        (&json!("denied"), &json!("rejected"))
    );
}

/// The message of the guard to a caller that names no rules.
async fn denied_by_guard(world: &ClientScene, command: &str) -> String {
    let call = json!({ "ask": {
        "artifactType": "command.review", "repository": "r", "members": {},
        "payload": { "kind": "command", "command": command },
        "mayBeGranted": true, "mayKeep": true, "timeoutMs": 600_000, "submitTimeoutMs": 60_000,
    } });
    let stream = tokio::net::UnixStream::connect(socket(world)).await;
    let (call, mut stream) = (format!("{call}\n"), stream.unwrap());
    stream.write_all(call.as_bytes()).await.unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).await.unwrap();
    let reply: Value = serde_json::from_str(&line).unwrap();
    let denied = &reply["answered"]["outcome"]["denied"]["message"];
    denied.as_str().unwrap_or(&line).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_applies_its_own_rules_also_if_its_caller_names_none() {
    let (world, people) = scene().await;
    policy(
        &world,
        "[[rule]]\ncommands = [\"ls\"]\nfrom = [\"alice\", \"dave\"]\napprovals = 2\n",
    );
    let _guard = start_guard(&world, &own_name());
    let denied = denied_by_guard(&world, "/bin/ls -l").await;
    assert!(denied.contains("dave: not paired"), "{denied}");
    policy(
        &world,
        "[[rule]]\npaths = [\"~/secrets\"]\nfrom = [\"alice\", \"dave\"]\napprovals = 2\n",
    );
    // The guard's own home is another one.
    let home = nix::unistd::User::from_name(&own_name()).unwrap().unwrap();
    let command = format!("cat {}/secrets/a", home.dir.display());
    let denied = denied_by_guard(&world, &command).await;
    assert!(denied.contains("dave: not paired"), "{denied}");
    assert!(
        people[0].find("").await.unwrap().is_empty(),
        "nobody was asked"
    );

    let address = format!("{}:{}", own_name(), socket(&world).display());
    let (ran_in, ran) = path(&world, "ran");
    let run = [
        "run",
        "--guard",
        &address,
        "--approvals",
        "2",
        "--",
        "touch",
        &ran,
    ];
    let both = [&people[0], &people[1]].map(|person| (person, choice(Verdict::Approve)));
    let ended = decided(&world, &run, &both).await.expect(0);
    assert!(
        ended.err.contains("approved by alice, bob"),
        "{}",
        ended.err
    );
    assert!(ran_in.exists());
    let save = [&["run", "--save", "x"], &run[1..]].concat();
    let refused: Ran = prepared(&world, "bot", &save).output().unwrap().into();
    assert!(refused.expect(77).err.contains("no receipt"));
}
