//! The outcome of a decision, by the word of the enforcer: signed with the key that its sealed
//! request names.

use std::time::Duration;

use countersign::client::approver::{
    AcceptedDecision, Approver, DeliveryConfirmation, InboxRequest,
};
use countersign::e2e::{DenialCause, OutcomeEffect};
use countersign::protocol::decision::Verdict;
use serde_json::{Value, json};

use super::people::{ClientScene, ask, choice, command, pair, question};
use super::tamper::Tamper;
use crate::hostile::meddler::{Meddler, Reply};

const PATIENCE: Duration = Duration::from_secs(20);

/// A request of `bot` that alice has decided, and the enforcer has answered.
async fn decided(
    world: &ClientScene,
    verdict: Verdict,
) -> (Approver, InboxRequest, AcceptedDecision) {
    let mut enforcer = world.enforcer("bot").await;
    let mut alice = world.approver("alice", "laptop").await;
    pair(&mut enforcer, &mut alice).await;
    let asked = ask(enforcer, question(command(&["git", "push"])), &alice).await;
    let item = asked.item(&alice).await;
    let decided = alice.decide(&item, &choice(verdict)).await.unwrap();
    let (_, outcome) = asked.end().await;
    assert_eq!(outcome.is_ok(), verdict == Verdict::Approve);
    (alice, item, decided)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_is_confirmed_as_a_denial() {
    let world = ClientScene::start().await;
    let (alice, item, decided) = decided(&world, Verdict::Reject).await;
    let confirmation = alice.delivered(&item, &decided, PATIENCE).await.unwrap();
    let denied = OutcomeEffect::Denied(DenialCause::Rejected);
    assert_eq!(confirmation, DeliveryConfirmation::ByEnforcer(denied));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_that_the_gateway_invents_or_takes_from_elsewhere_is_noticed() {
    let world = ClientScene::start().await;
    let (alice, item, approved) = decided(&world, Verdict::Approve).await;
    let served = alice.delivered(&item, &approved, PATIENCE).await.unwrap();
    assert_eq!(
        served,
        DeliveryConfirmation::ByEnforcer(OutcomeEffect::Allowed)
    );

    let mut other = world.enforcer("other").await;
    let mut alice = alice;
    pair(&mut other, &mut alice).await;
    let asked = ask(other, question(command(&["git", "push"])), &alice).await;
    let second = asked.item(&alice).await;
    let choice = choice(Verdict::Approve);
    alice.decide(&second, &choice).await.unwrap();
    asked.end().await.1.unwrap();
    let client = world.cluster.admin().await;
    let outcome_of = async |item: &InboxRequest| {
        let path = format!("/v1/exchanges/{}/outcome", item.request_id);
        let outcome = client.get(&path).await.expect(200).body("/outcome");
        outcome.as_str().unwrap().to_owned()
    };
    let elsewhere = outcome_of(&second).await;
    let true_one: Value = serde_json::from_str(&outcome_of(&item).await).unwrap();
    let node = world.cluster.urls()[0].clone();
    for (name, lie) in [
        ("another signature", {
            let mut lie = true_one.clone();
            lie["signatures"][0]["sig"] = json!(format!("{}==", "A".repeat(86)));
            lie.to_string()
        }),
        ("another payload", {
            let mut lie = true_one.clone();
            lie["payload"] = json!("e30=");
            lie.to_string()
        }),
        ("that of another request", elsewhere.clone()),
        ("no envelope", "{}".to_owned()),
        ("no JSON", "allowed".to_owned()),
    ] {
        let liar = Tamper::start(&node, move |path, answer| {
            if path.ends_with("/outcome") {
                answer["body"]["outcome"] = lie.clone().into();
            }
        })
        .await;
        let deceived = world.through("laptop", vec![liar.url.clone()]);
        let noticed = deceived.delivered(&item, &approved, PATIENCE).await;
        assert_eq!(noticed.unwrap(), DeliveryConfirmation::Forged, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_claims_delivery_is_quoted_and_no_more() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut alice = world.approver("alice", "laptop").await;
    pair(&mut enforcer, &mut alice).await;
    let asked = ask(enforcer, question(command(&["git", "push"])), &alice).await;
    let item = asked.item(&alice).await;
    asked.kill();
    let node = world.cluster.urls()[0].clone();
    let liar = Tamper::start(&node, |_, answer| {
        if answer["msgType"] == "exchange.status" {
            answer["body"]["state"] = "delivered".into();
        }
    })
    .await;
    let deceived = world.through("laptop", vec![liar.url.clone()]);
    let decided = deceived.decide(&item, &choice(Verdict::Approve)).await;
    let confirmation = deceived.delivered(&item, &decided.unwrap(), PATIENCE).await;
    assert_eq!(confirmation.unwrap(), DeliveryConfirmation::ByGateway);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_knows_no_outcomes_still_learns_that_the_decision_arrived() {
    let world = ClientScene::start().await;
    let node = world.cluster.urls()[0].clone();
    let older = Meddler::start(&node, |call, gateway| async move {
        let body: Value = serde_json::from_slice(&call.body).unwrap_or_default();
        if body["body"].get("outcome").is_some() {
            return Reply::new(400, "{}");
        }
        gateway.pass(&call).await
    })
    .await;
    let mut enforcer = world.enforcer_at("bot", vec![older.url.clone()]).await;
    let mut alice = world.approver("alice", "laptop").await;
    pair(&mut enforcer, &mut alice).await;
    let asked = ask(enforcer, question(command(&["git", "push"])), &alice).await;
    let item = asked.item(&alice).await;
    let decided = alice.decide(&item, &choice(Verdict::Approve)).await;
    asked.end().await.1.unwrap();
    let confirmation = alice.delivered(&item, &decided.unwrap(), PATIENCE).await;
    assert_eq!(confirmation.unwrap(), DeliveryConfirmation::ByGateway);
}
