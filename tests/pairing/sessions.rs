//! The life of an attempt: its states, its one completion, its end, and when it is forgotten.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use super::{complete, initiate, pair, resolve, status, text, word};
use crate::support::{Cluster, counts, tally, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_code_and_its_nonce_end_after_ten_minutes() {
    let cluster = Cluster::start(3).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let alice = cluster.approver("alice").await;
    let (code, nonce) = initiate(&enforcer).await;
    let (used, resolved) = initiate(&enforcer).await;
    cluster.pass(Duration::from_secs(570));
    resolve(&alice, &used).await.expect(200);
    assert_eq!(word(&enforcer, &nonce).await, "pending");
    assert_eq!(word(&enforcer, &resolved).await, "resolved");
    cluster.pass(Duration::from_secs(30));
    for code in [&code, &used] {
        resolve(&alice, code).await.refused(404, "NOT_FOUND");
    }
    for nonce in [&nonce, &resolved] {
        complete(&alice, nonce).await.refused(404, "NOT_FOUND");
        assert_eq!(word(&enforcer, nonce).await, "expired");
    }
    let pairings = "select count(*) from pairings";
    assert_eq!(cluster.database.number(pairings).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_completed_attempt_is_over_and_stays_completed() {
    let cluster = Cluster::start(2).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let (alice, bob) = (
        cluster.approver("alice").await,
        cluster.approver("bob").await,
    );
    let (code, nonce) = initiate(&enforcer).await;
    // An approver that was told the nonce need not have typed the code.
    let token = text(&complete(&alice, &nonce).await.expect(200), "routingToken");
    for approver in [&alice, &bob] {
        let again = complete(approver, &nonce).await;
        again.refused_at(409, "INVALID_STATE", "/nonce");
        resolve(approver, &code).await.refused(404, "NOT_FOUND");
    }
    cluster.pass(Duration::from_secs(3_600));
    let known = status(&enforcer, &nonce).await.expect(200);
    assert_eq!(text(&known, "status"), "completed");
    assert_eq!(text(&known, "routingToken"), token);
    let again = complete(&bob, &nonce).await;
    again.refused(409, "INVALID_STATE");

    // Once the same two have paired again, the first attempt has no token to show.
    let newer = pair(&enforcer, &alice).await;
    assert_ne!(newer, token);
    let known = status(&enforcer, &nonce).await.expect(200).json();
    assert_eq!(
        (&known["status"], known.get("routingToken")),
        (&json!("completed"), None)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_twenty_approvers_at_once_on_three_nodes_exactly_one_completes() {
    let cluster = Cluster::start(3).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let (_, nonce) = initiate(&enforcer).await;
    let mut approvers = Vec::new();
    for index in 0..20 {
        let approver = cluster.approver(&format!("approver-{index}")).await;
        approvers.push(approver.on(index % 3));
    }
    let calls = approvers.iter().map(|approver| complete(approver, &nonce));
    let answers = join_all(calls).await;
    assert_eq!(
        tally(&answers),
        counts([("200", 1), ("409 INVALID_STATE", 19)])
    );
    let winner = answers.iter().position(|answer| answer.status == 200);
    let (winner, token) = (
        winner.unwrap(),
        text(&answers[winner.unwrap()], "routingToken"),
    );
    let known = status(&enforcer, &nonce).await.expect(200);
    assert_eq!(text(&known, "approverId"), approvers[winner].id);
    assert_eq!(text(&known, "routingToken"), token);
    for table in ["pairings", "routing_tokens"] {
        let count = format!("select count(*) from {table}");
        assert_eq!(cluster.database.number(&count).await, 1, "{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_and_counts_of_guesses_are_forgotten_and_pairings_are_not() {
    let cluster = Cluster::with(2, |config| config.retention.every_seconds = 1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let alice = cluster.approver("alice").await;
    let token = pair(&enforcer, &alice).await;
    let (code, nonce) = initiate(&enforcer).await;
    resolve(&alice, "0000-0000").await.refused(404, "NOT_FOUND");
    cluster.pass(Duration::from_secs(24 * 3_600));
    let (_, young) = initiate(&enforcer).await;
    assert_eq!(word(&enforcer, &nonce).await, "expired");
    cluster.pass(Duration::from_secs(601));
    let left =
        "select (select count(*) from pairing_sessions) + (select count(*) from pairing_guesses)";
    until("they are gone", Duration::from_secs(10), async || {
        cluster.database.number(left).await == 1
    })
    .await;
    status(&enforcer, &nonce).await.refused(404, "NOT_FOUND");
    assert_eq!(word(&enforcer, &young).await, "expired");
    resolve(&alice, &code).await.refused(404, "NOT_FOUND");
    let listed = enforcer.client.get(super::PAIRINGS).await.expect(200);
    assert_eq!(listed.json()["items"][0]["routingToken"], token);
}
