//! Receipts of a team's calls, over a gateway that lies about the team's states.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use countersign::e2e::{ProofGap, Receipt, ReceiptAnchors, ReceiptFact, ReceiptReport};
use countersign::protocol::decision::Verdict;
use serde_json::Value;

use super::people::choice;
use super::sets::ask_set;
use super::tamper::Tamper;
use super::teams::{TEAM, TeamWorld, pair_team, two_of_team};

/// The receipt of a call that two members approve, while the lists of states are changed on the way.
/// The enforcer knows all states before.
async fn receipt_with(
    change: impl Fn(&mut Vec<Value>) + Send + Sync + 'static,
) -> (Receipt, ReceiptReport) {
    let mut world = TeamWorld::start().await;
    let node = world.scene.cluster.urls()[0].clone();
    let lies = Arc::new(AtomicBool::new(false));
    let lying = Arc::clone(&lies);
    let liar = Tamper::start(&node, move |path, answer| {
        if lying.load(Ordering::Relaxed)
            && path.contains("/states")
            && let Some(states) = answer["states"].as_array_mut()
        {
            change(states);
        }
    })
    .await;
    let mut enforcer = world.scene.enforcer_at("bot", vec![liar.url.clone()]).await;
    pair_team(&mut enforcer, &mut world.alice, TEAM).await;
    let terms = two_of_team(&enforcer);
    lies.store(true, Ordering::Relaxed);
    let asked = ask_set(enforcer, terms).await;
    asked.decide(&world.bob, &choice(Verdict::Approve)).await;
    asked.decide(&world.carol, &choice(Verdict::Approve)).await;
    let end = asked.end().await;
    end.decided.unwrap();
    let receipt = end.receipt.unwrap();
    let team = world.alice.team(TEAM).await.unwrap().head().team;
    let report = receipt.verify(&ReceiptAnchors::default().with_team(team));
    (receipt, report)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_has_the_states_of_its_team() {
    let (receipt, report) = receipt_with(|_| {}).await;
    assert_eq!(receipt.teams.len(), 3, "the first, and two who joined");
    let open = report.checks.iter().filter(|check| check.result.is_err());
    let open: Vec<_> = open.map(|check| check.fact).collect();
    assert_eq!(open, [ReceiptFact::Asked], "{:?}", report.checks);
}

/// The call is decided all the same, and the receipt has no states that are not the team's.
#[tokio::test(flavor = "multi_thread")]
async fn states_that_the_gateway_withholds_or_makes_up_are_in_no_receipt() {
    let withhold = |states: &mut Vec<Value>| states.clear();
    let cut = |states: &mut Vec<Value>| drop(states.pop());
    let repeat = |states: &mut Vec<Value>| {
        if let [first, second, ..] = states.as_mut_slice() {
            second.clone_from(first);
        }
    };
    for (receipt, report) in [
        receipt_with(withhold).await,
        receipt_with(cut).await,
        receipt_with(repeat).await,
    ] {
        assert!(receipt.teams.is_empty());
        let mut checks = report.checks.iter();
        let teams = checks.find(|check| check.fact == ReceiptFact::Teams);
        assert_eq!(teams.unwrap().result, Err(ProofGap::Absent));
        assert!(report.is_consistent() && !report.is_proven(ReceiptFact::Count));
    }
}
