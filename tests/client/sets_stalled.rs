//! Several people decide over a gateway that stalls, or adds to its answers; and requests that must
//! not pass for theirs.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::client::approver::{Approver, ApproverChoice};
use countersign::client::enforcer::ApprovalDenial;
use countersign::client::{ClientError, random};
use countersign::e2e::{ApprovalRule, ArtifactHints, DecisionScope, GrantMatch, SetId};
use countersign::protocol::decision::Verdict;
use countersign::protocol::id::{ApproverId, TextId as _};
use serde_json::json;
use tokio::time::{sleep, sleep_until, timeout};

use super::people::{ClientScene, PATIENCE, choice, command, question};
use super::sets::{ask_set, team, terms};
use super::tamper::Tamper;
use crate::hostile::meddler::{Meddler, Route};
use crate::support::until;

const NAMES: [&str; 3] = ["alice", "bob", "carol"];

async fn approve(person: &Approver, id: &str) {
    until("the request is in the inbox", PATIENCE, async || {
        !person.find(id).await.unwrap().is_empty()
    })
    .await;
    let item = person.find(id).await.unwrap().remove(0);
    let approve = choice(Verdict::Approve);
    person.decide(&item, &approve).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_to_one_person_cannot_carry_a_rule() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let people = team(&world, &mut enforcer, &NAMES[..2]).await;
    let mut question = question(command(&["git", "push"]));
    question.approver = Some("alice".to_owned());
    let rule = ApprovalRule {
        enforcer: enforcer.id().clone(),
        set: SetId::generate(&mut random).unwrap(),
        seat: ApproverId::parse("alice"),
        terms: terms(2, &NAMES[..2]),
    };
    rule.name_in(&mut question.members);
    let denied = enforcer.prepare(question).await.map(drop);
    let refused = |it: &_| matches!(it, ApprovalDenial::Refused(ClientError::Choice(_)));
    assert!(denied.as_ref().is_err_and(refused), "{denied:?}");
    assert!(people[0].find("").await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_who_cannot_be_asked_holds_up_nobody() {
    let world = ClientScene::start().await;
    let held: Arc<Mutex<Option<String>>> = Arc::default();
    let holding = Arc::clone(&held);
    let slow = Meddler::start(&world.cluster.urls()[0], move |call, gateway| {
        let text = String::from_utf8_lossy(&call.body).into_owned();
        let held = holding.lock().unwrap().clone();
        let stalls = call.route() == Route::Submit && held.is_some_and(|id| text.contains(&id));
        async move {
            if stalls {
                sleep(PATIENCE * 2).await;
            }
            gateway.pass(&call).await
        }
    })
    .await;
    let mut enforcer = world.enforcer_at("bot", vec![slow.url.clone()]).await;
    let people = team(&world, &mut enforcer, &NAMES).await;
    let question = question(command(&["git", "push"]));
    let set = enforcer.prepare_set(question, terms(2, &NAMES));
    let mut pending = set.await.unwrap();
    let ids: Vec<_> = pending.request_ids().map(ToString::to_string).collect();
    *held.lock().unwrap() = Some(ids[2].clone());
    let deciding = async {
        approve(&people[0], &ids[0]).await;
        approve(&people[1], &ids[1]).await;
    };
    let (decided, ()) = tokio::join!(timeout(PATIENCE / 2, pending.decision()), deciding);
    let accepted = decided.expect("an answer without carol").unwrap();
    let who = accepted.approvals.iter().map(|it| it.approver.as_str());
    assert_eq!(who.collect::<Vec<_>>(), ["alice", "bob"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_adds_to_lists_of_devices_cannot_prevent_a_receipt() {
    let world = ClientScene::start().await;
    let liar = Tamper::start(&world.cluster.urls()[0], |path, answer| {
        if let Some(list) = answer["statements"].as_array_mut()
            && path.ends_with("/devices")
        {
            let genuine = list.clone();
            list.extend((0..2_100).map(|place| json!({ "statement": place })));
            list.extend(genuine);
        }
    })
    .await;
    let mut enforcer = world.enforcer_at("bot", vec![liar.url.clone()]).await;
    let people = team(&world, &mut enforcer, &NAMES[..2]).await;
    let asked = ask_set(enforcer, terms(2, &NAMES[..2])).await;
    asked.decide(&people[0], &choice(Verdict::Approve)).await;
    asked.decide(&people[1], &choice(Verdict::Approve)).await;
    let end = asked.end().await;
    end.decided.unwrap();
    let receipt = end.receipt.unwrap();
    receipt.to_text().unwrap();
    assert_eq!(receipt.devices.len(), 2, "one statement of each");
}

#[tokio::test(flavor = "multi_thread")]
async fn approvals_do_not_outlive_their_request() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let people = team(&world, &mut enforcer, &NAMES[..2]).await;
    let mut question = question(command(&["git", "push"]));
    question.timeout = Duration::from_secs(10);
    let set = enforcer.prepare_set(question, terms(2, &NAMES[..2]));
    let mut pending = set.await.unwrap();
    let ids: Vec<_> = pending.request_ids().map(ToString::to_string).collect();
    let deciding = async {
        approve(&people[0], &ids[0]).await;
        approve(&people[1], &ids[1]).await;
    };
    let (decided, ()) = tokio::join!(pending.decision(), deciding);
    decided.unwrap();
    pending.still_counts().unwrap();
    sleep_until(pending.until()).await;
    let late = pending.still_counts();
    assert!(matches!(late, Err(ApprovalDenial::TimedOut)), "{late:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_under_a_rule_permits_nothing_further() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let people = team(&world, &mut enforcer, &NAMES[..1]).await;
    let asked = ask_set(enforcer, terms(1, &NAMES[..1])).await;
    let item = asked.item(&people[0]).await;
    let longer = ApproverChoice {
        scope: DecisionScope::Timebox,
        lasts: Some(Duration::from_secs(600)),
        hints: ArtifactHints {
            grant: Some(GrantMatch::Same),
            ..ArtifactHints::default()
        },
        ..choice(Verdict::Approve)
    };
    let refused = people[0].decide(&item, &longer).await.unwrap_err();
    assert!(matches!(refused, ClientError::Choice(_)), "{refused}");
    asked.decide(&people[0], &choice(Verdict::Approve)).await;
    asked.end().await.decided.unwrap();
}
