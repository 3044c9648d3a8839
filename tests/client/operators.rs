//! The people who work with an agent, from the pairing to the device that refuses to approve.

use countersign::client::ClientError;
use countersign::client::approver::{Approver, PairingChoice};
use countersign::client::enforcer::Enforcer;
use countersign::client::profile::EnforcerRecord;
use countersign::e2e::{OperatorList, PairingLink, ReceivedAnswer, RuleTerms};
use countersign::protocol::decision::Verdict;
use countersign::protocol::id::{ApproverId, TextId as _};

use super::devices::asks;
use super::people::{ClientScene, ask, choice, command, question};
use super::sets::{ask_set, terms};
use crate::hostile::meddler::{Meddler, Reply};

/// None: the person does not say who works with the agent.
type NamedIds<'a> = Option<&'a [&'a str]>;

pub fn operators(ids: &[&str]) -> OperatorList {
    let ids = ids.iter().map(|id| ApproverId::parse(id).unwrap());
    OperatorList::new(ids.collect()).unwrap()
}

/// Pairs by the link. The approver names these people, if any.
async fn pair_naming(enforcer: &mut Enforcer, approver: &mut Approver, ids: NamedIds<'_>) {
    let attempt = enforcer.begin_pairing(None, None).await.unwrap();
    let link = PairingLink::parse(&attempt.link("https://page.example.org")).unwrap();
    let choice = PairingChoice {
        operators: ids.map(operators),
        ..PairingChoice::default()
    };
    approver.pair_by_link_with(&link, choice).await.unwrap();
    let completed = enforcer.wait_for_answer(attempt).await.unwrap().unwrap();
    let (ReceivedAnswer::Proven(device), pairing) = completed.split() else {
        panic!("a link proves");
    };
    enforcer.pin(&device, pairing).unwrap();
}

fn known(device: &Approver) -> EnforcerRecord {
    device.enforcers().remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_further_pairing_adds_operators_and_removes_none() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut people = [
        world.approver("alice", "alice").await,
        world.approver("bob", "bob").await,
    ];
    assert_eq!(enforcer.operators(), None);
    let none: &[&str] = &[];
    let steps: [(usize, NamedIds<'_>, NamedIds<'_>); 6] = [
        (0, None, None),
        (1, Some(none), Some(none)),
        (0, Some(&["dave"]), Some(&["dave"])),
        (1, Some(none), Some(&["dave"])),
        (0, None, Some(&["dave"])),
        (1, Some(&["erin", "dave"]), Some(&["dave", "erin"])),
    ];
    for (person, named, expected) in steps {
        pair_naming(&mut enforcer, &mut people[person], named).await;
        let expected = expected.map(operators);
        let expected = expected.as_ref().map(OperatorList::ids);
        assert_eq!(enforcer.operators(), expected);
        let kept = Enforcer::open(&world.file("bot"), &world.cluster.clock).unwrap();
        assert_eq!(kept.operators(), expected, "across restarts");
    }
    assert_eq!(known(&people[0]).operators, ["dave"], "by the device too");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_devices_learn_the_operators_also_later() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut laptop = world.approver("alice", "laptop").await;
    pair_naming(&mut enforcer, &mut laptop, Some(&["dave"])).await;
    let phone = world.device("alice", "phone").await;
    laptop.add_device(&asks(&phone).await).await.unwrap();
    laptop.share_enforcers().await.unwrap();
    phone.share_enforcers().await.unwrap();
    assert_eq!(known(&phone).operators, ["dave"]);
    pair_naming(&mut enforcer, &mut laptop, Some(&["erin"])).await;
    laptop.share_enforcers().await.unwrap();
    phone.share_enforcers().await.unwrap();
    assert_eq!(known(&phone).operators, ["dave", "erin"]);
}

/// A gateway of an older version refuses the member, and so can one that wants it forgotten.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_refuses_the_operators_gets_no_introduction_without_them() {
    let world = ClientScene::start().await;
    let mut laptop = world.approver("alice", "laptop").await;
    // The first agent's operators are refused; the second one has none, and is introduced.
    let mut first = world.enforcer("bot").await;
    pair_naming(&mut first, &mut laptop, Some(&["dave"])).await;
    let mut second = world.enforcer("ci").await;
    pair_naming(&mut second, &mut laptop, None).await;
    let phone = world.device("alice", "phone").await;
    laptop.add_device(&asks(&phone).await).await.unwrap();
    let urls = world.cluster.urls();
    let hostile = Meddler::start(&urls[0], |call, gateway| async move {
        let sent = String::from_utf8_lossy(&call.body).into_owned();
        if sent.contains("enforcer.introduce") && sent.contains("operators") {
            let refusal = r#"{"body":{"code":"X_ERR_VALIDATION","message":"an unknown member"}}"#;
            return Reply::new(400, refusal);
        }
        gateway.pass(&call).await
    });
    let hostile = hostile.await;
    let through = world.through("laptop", vec![hostile.url.clone()]);
    let refused = through.share_enforcers().await.unwrap_err();
    assert!(
        matches!(&refused, ClientError::OperatorsRefused(id) if id == "bot"),
        "{refused}"
    );
    phone.share_enforcers().await.unwrap();
    assert_eq!(known(&phone).id, "ci");
    assert_eq!(phone.enforcers().len(), 1, "not without its operators");

    // Over an honest gateway it learns both.
    laptop.share_enforcers().await.unwrap();
    phone.share_enforcers().await.unwrap();
    let learned = phone.enforcers();
    let learned = learned.iter().find(|record| record.id == "bot").unwrap();
    assert_eq!(learned.operators, ["dave"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_approves_for_the_own_agent_unless_the_rule_excludes_somebody() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut dave = world.approver("dave", "dave").await;
    pair_naming(&mut enforcer, &mut dave, Some(&["dave"])).await;
    let approve = choice(Verdict::Approve);
    let separate = RuleTerms {
        not_by: [ApproverId::parse("erin").unwrap()].into(),
        ..terms(1, &["dave"])
    };
    let asked = ask_set(enforcer, separate).await;
    let item = asked.item(&dave).await;
    let refused = dave.decide(&item, &approve).await.unwrap_err();
    assert!(
        matches!(refused, ClientError::NotApprovable(_)),
        "{refused}"
    );
    assert!(
        refused.to_string().contains("works with the agent"),
        "{refused}"
    );
    asked.decide(&dave, &choice(Verdict::Reject)).await;
    assert!(asked.end().await.decided.is_err());

    let open = || Enforcer::open(&world.file("bot"), &world.cluster.clock).unwrap();
    let asked = ask_set(open(), terms(1, &["dave"])).await;
    asked.decide(&dave, &approve).await;
    assert!(asked.end().await.decided.is_ok());
    let asked = ask(open(), question(command(&["git", "push"])), &dave).await;
    dave.decide(&asked.item(&dave).await, &approve)
        .await
        .unwrap();
    assert!(asked.end().await.1.is_ok());
}
