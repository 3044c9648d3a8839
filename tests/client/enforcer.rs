//! The enforcer's library over time: clocks that jump, and requests that end without a decision.

use std::time::Duration;

use countersign::protocol::decision::Verdict;

use super::people::{ClientScene, ask, choice, command, pair, question};

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_past_the_end_denies() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut alice = world.approver("alice", "laptop").await;
    pair(&mut enforcer, &mut alice).await;
    let asking = ask(enforcer, question(command(&["git", "push"])), &alice).await;
    let item = asking.item(&alice).await;
    world.cluster.pass(Duration::from_secs(601));
    let late = alice.decide(&item, &choice(Verdict::Approve)).await;
    assert!(late.is_err(), "{late:?}");
    let (_, outcome) = asking.end().await;
    let denial = outcome.unwrap_err();
    assert!(denial.is_timeout(), "{denial}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_jump_that_leaves_time_changes_nothing() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut alice = world.approver("alice", "laptop").await;
    pair(&mut enforcer, &mut alice).await;
    let asking = ask(enforcer, question(command(&["git", "push"])), &alice).await;
    // The copy of the device list is old by then, and is read again before the decision counts.
    world.cluster.pass(Duration::from_secs(300));
    let item = asking.item(&alice).await;
    alice
        .decide(&item, &choice(Verdict::Approve))
        .await
        .unwrap();
    let (_, outcome) = asking.end().await;
    outcome.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gateway_does_not_learn_where_the_agent_works() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut alice = world.approver("alice", "laptop").await;
    pair(&mut enforcer, &mut alice).await;
    let asking = ask(enforcer, question(command(&["git", "push"])), &alice).await;
    let item = asking.item(&alice).await;
    let opened = item.content.as_ref().unwrap();
    assert_eq!(opened.artifact().repository(), "repo:acme/widgets");
    let choice = choice(Verdict::Approve);
    alice.decide(&item, &choice).await.unwrap();
    let (_, outcome) = asking.end().await;
    outcome.unwrap();
    let stored = "select string_agg(p.body::text, ' ') from exchange_payloads p";
    let stored = world.cluster.database.text(stored).await;
    let repo_ref = opened.artifact().repo_ref();
    assert!(stored.contains(repo_ref), "the decision repeats the hash");
    assert!(!stored.contains("acme"), "{stored}");
}
