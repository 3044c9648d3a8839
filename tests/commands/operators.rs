//! `pair --operator`, and `run` and `ask` that want the approval of somebody else.

use countersign::client::enforcer::Enforcer;
use countersign::e2e::ReceivedAnswer;
use countersign::protocol::decision::Verdict;
use serde_json::{Value, json};

use super::approver::run;
use super::sets::{decided, path};
use crate::client::people::{ClientScene, choice};

/// This approver pairs in a terminal, with these options.
async fn pair_with(world: &ClientScene, enforcer: &mut Enforcer, name: &str, options: &[&str]) {
    let attempt = enforcer.begin_pairing(None, None).await.unwrap();
    let link = attempt.link("https://page.example.org").to_string();
    run(world, name, &[&["pair", &link], options].concat()).expect(0);
    let completed = enforcer.wait_for_answer(attempt).await.unwrap().unwrap();
    let (ReceivedAnswer::Proven(device), pairing) = completed.split() else {
        panic!("a link proves");
    };
    enforcer.pin(&device, pairing).unwrap();
}

fn listed(world: &ClientScene, profile: &str) -> Value {
    let listed = run(world, profile, &["pairings", "--json"]);
    listed.expect(0).json()[0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_are_neither_asked_nor_counted_where_somebody_else_must_approve() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let dave = world.approver("dave", "dave").await;
    let alice = world.approver("alice", "alice").await;
    pair_with(&world, &mut enforcer, "dave", &[]).await;
    pair_with(&world, &mut enforcer, "alice", &[]).await;
    let (ran_in, ran) = path(&world, "ran");
    let separate = ["run", "--separate", "--", "touch", &ran];

    // Nobody has said who works with the agent.
    let denied = run(&world, "bot", &separate).expect(77);
    assert!(
        denied.err.contains("pair again with --operator"),
        "{}",
        denied.err
    );
    for profile in [&dave, &alice] {
        profile.inbox(|_| panic!("nobody is asked")).await.unwrap();
    }

    pair_with(&world, &mut enforcer, "alice", &["--operator", "dave"]).await;
    assert_eq!(listed(&world, "bot")["operators"], json!(["dave"]));
    assert_eq!(listed(&world, "alice")["operators"], json!(["dave"]));
    let approvals = [(&alice, choice(Verdict::Approve))];
    decided(&world, &separate, &approvals).await.expect(0);
    assert!(ran_in.exists());
    dave.inbox(|_| panic!("dave is not asked")).await.unwrap();

    // Alice has started it, and dave works with it: nobody is left.
    let started = ["run", "--started-by", "alice", "--", "touch", &ran];
    run(&world, "bot", &started).expect(77);
    // By everyone, as long as nobody is excluded.
    let plain = ["run", "--approvals", "1", "--", "touch", &ran];
    let approvals = [(&dave, choice(Verdict::Approve))];
    decided(&world, &plain, &approvals).await.expect(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_works_with_an_agent_that_runs_by_itself() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let alice = world.approver("alice", "alice").await;
    pair_with(&world, &mut enforcer, "alice", &["--operator", "none"]).await;
    assert_eq!(listed(&world, "bot")["operators"], json!([]));
    let approvals = [(&alice, choice(Verdict::Approve))];
    let run_it = ["run", "--separate", "--started-by", "erin", "--", "true"];
    decided(&world, &run_it, &approvals).await.expect(0);
    let link = "https://page.example.org/#/pair/x";
    for odd in [
        &["--operator", "none", "--operator", "dave"][..],
        &["--operator", "dave", "--operator", "dave"],
        &["--operator", ""],
    ] {
        let refused = run(&world, "alice", &[&["pair", link], odd].concat());
        assert!(
            refused.err.contains("--operator takes"),
            "{odd:?}: {}",
            refused.err
        );
    }
    run(&world, "bot", &["pair", "--operator", "dave"]).expect(2);
}
