//! A rule that one approval satisfies: one exchange asks all of its people, if the gateway can do
//! that.

use std::sync::{Arc, Mutex};

use countersign::client::approver::DeliveryConfirmation;
use countersign::client::enforcer::ApprovalDenial;
use countersign::e2e::{
    ArtifactRule, DenialCause, OutcomeEffect, ReceiptAnchors, ReceiptFact, RuleTerms,
};
use countersign::protocol::decision::Verdict;
use countersign::protocol::id::{ApproverId, TextId as _};
use serde_json::{Value, json};

use super::people::{ClientScene, PATIENCE, because, choice};
use super::sets::{ask_set, team, terms};
use super::tamper::Tamper;
use crate::hostile::meddler::{Meddler, Route};
use crate::support::until;

const NAMES: [&str; 3] = ["alice", "bob", "carol"];

async fn exchanges(world: &ClientScene) -> i64 {
    let count = "select count(*) from exchanges";
    world.cluster.database.number(count).await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_exchange_asks_all_and_the_first_decision_settles_it() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let people = team(&world, &mut enforcer, &NAMES).await;
    let dave = team(&world, &mut enforcer, &["dave"]).await.remove(0);
    let asked = ask_set(enforcer, terms(1, &NAMES)).await;
    let items = [asked.item(&people[0]).await, asked.item(&people[2]).await];
    assert_eq!(items[0].request_id, items[1].request_id);
    assert_eq!(exchanges(&world).await, 1);
    assert!(dave.find("").await.unwrap().is_empty(), "paired, not asked");
    let opened = items[0].content.as_ref().unwrap();
    let Some(ArtifactRule::Known(rule)) = opened.artifact().rule() else {
        panic!("a rule");
    };
    assert_eq!(rule.seat, None);
    let by_bob = asked
        .decide(&people[1], &because(Verdict::Approve, "Fine."))
        .await;
    let end = asked.end().await;
    let accepted = end.decided.unwrap();
    assert_eq!(accepted.approvals.len(), 1);
    assert_eq!(accepted.approvals[0].approver.as_str(), "bob");
    people[0]
        .decide(&items[0], &choice(Verdict::Reject))
        .await
        .unwrap_err();
    assert!(people[2].find("").await.unwrap().is_empty());
    let confirmed = people[1].delivered(&by_bob.0, &by_bob.1, PATIENCE).await;
    let allowed = DeliveryConfirmation::ByEnforcer(OutcomeEffect::Allowed);
    assert_eq!(confirmed.unwrap(), allowed);

    let receipt = end.receipt.unwrap();
    assert_eq!((receipt.parts.len(), &receipt.parts[0].seat), (1, &None));
    let bob = ApproverId::parse("bob").unwrap();
    let anchors = ReceiptAnchors::default().with_device(bob, people[1].device_id());
    let report = receipt.verify(&anchors);
    for fact in [
        ReceiptFact::Outcome,
        ReceiptFact::Complete,
        ReceiptFact::Count,
    ] {
        assert!(report.is_proven(fact), "{fact:?}: {report:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_denies_and_no_approval_by_another_comes_after_it() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let people = team(&world, &mut enforcer, &NAMES).await;
    let asked = ask_set(enforcer, terms(1, &NAMES)).await;
    let item = asked.item(&people[0]).await;
    let by_carol = asked
        .decide(&people[2], &because(Verdict::Reject, "No."))
        .await;
    people[0]
        .decide(&item, &choice(Verdict::Approve))
        .await
        .unwrap_err();
    let Err(ApprovalDenial::Rejected(rejection)) = asked.end().await.decided else {
        panic!("carol rejected it");
    };
    assert_eq!(rejection.approver.as_str(), "carol");
    let confirmed = people[2]
        .delivered(&by_carol.0, &by_carol.1, PATIENCE)
        .await;
    let denied = OutcomeEffect::Denied(DenialCause::Rejected);
    assert_eq!(confirmed.unwrap(), DeliveryConfirmation::ByEnforcer(denied));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_person_is_asked_alone_if_the_gateway_does_not_say_that_it_can_name_several() {
    let world = ClientScene::start().await;
    let node = world.cluster.urls()[0].clone();
    let silent = Tamper::start(&node, |path, answer| {
        if path == "/v1/status" {
            answer["routing"] = json!(["routingToken", "approverId"]);
        }
    })
    .await;
    let mut enforcer = world.enforcer_at("bot", vec![silent.url.clone()]).await;
    let people = team(&world, &mut enforcer, &NAMES).await;
    let asked = ask_set(enforcer, terms(1, &NAMES)).await;
    let item = asked.item(&people[0]).await;
    assert_ne!(item.request_id, asked.item(&people[1]).await.request_id);
    asked.item(&people[2]).await;
    assert_eq!(exchanges(&world).await, 3);
    asked.decide(&people[1], &choice(Verdict::Approve)).await;
    assert!(asked.end().await.decided.is_ok());
    assert!(people[0].find("").await.unwrap().is_empty(), "withdrawn");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_a_gateway_asks_besides_can_neither_read_nor_approve() {
    let world = ClientScene::start().await;
    let sent = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&sent);
    // The gateway asks everyone who is paired, in the place of those who are named.
    let hostile = Meddler::start(&world.cluster.urls()[0], move |mut call, gateway| {
        if call.route() == Route::Submit {
            call.edit(|envelope| {
                let named = envelope["body"]["metadata"].take();
                *kept.lock().unwrap() = Some(named["approverIds"].clone());
                envelope["body"]["metadata"] = json!({});
            });
        }
        async move { gateway.pass(&call).await }
    })
    .await;
    let mut enforcer = world.enforcer_at("bot", vec![hostile.url.clone()]).await;
    let people = team(&world, &mut enforcer, &["alice", "bob", "dave"]).await;
    let rule = RuleTerms {
        not_by: [ApproverId::parse("dave").unwrap()].into(),
        ..terms(1, &["alice", "bob"])
    };
    let asked = ask_set(enforcer, rule).await;
    asked.item(&people[0]).await;
    let named: Option<Value> = sent.lock().unwrap().clone();
    assert_eq!(named, Some(json!(["alice", "bob"])));
    until("dave is asked too", PATIENCE, async || {
        people[2].find("").await.unwrap().len() == 1
    })
    .await;
    let item = people[2].find("").await.unwrap().remove(0);
    assert!(item.content.is_err(), "it is not encrypted for dave");
    let approve = choice(Verdict::Approve);
    people[2].decide(&item, &approve).await.unwrap_err();
    // What dave may always do ends it, as an untrusted decision.
    people[2]
        .decide(&item, &choice(Verdict::Reject))
        .await
        .unwrap();
    let Err(ApprovalDenial::TooFew(lacking)) = asked.end().await.decided else {
        panic!("nobody has approved");
    };
    assert!(lacking.contains("not trusted"), "{lacking}");
}
