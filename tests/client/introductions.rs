//! Devices of one approver tell each other the keys of enforcers. One that was never paired opens
//! requests; what disagrees, was ended or changed is not taken over silently.

use std::time::Duration;

use countersign::client::PushedEvent;
use countersign::client::approver::{Approver, OpenFailure};
use countersign::client::enforcer::Enforcer;
use countersign::client::profile::EnforcerRecord;
use countersign::e2e::{EncryptionKey, EnforcerKeys};
use countersign::protocol::decision::Verdict;
use reqwest::Method;
use serde_json::json;

use super::devices::asks;
use super::people::{ClientScene, ask, choice, command, pair, question};
use super::tamper::Tamper;
use crate::hostile::device_of;
use crate::support::devices::Owner;
use crate::support::in_time;

/// After which an enforcer reads the list of devices again.
const A_MINUTE: Duration = Duration::from_secs(61);

/// `bot` is paired with the laptop of `alice`.
async fn paired() -> (ClientScene, Enforcer, Approver) {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut laptop = world.approver("alice", "laptop").await;
    pair(&mut enforcer, &mut laptop).await;
    laptop.share_enforcers().await.unwrap();
    (world, enforcer, laptop)
}

async fn added(world: &ClientScene, by: &Approver, name: &str) -> Approver {
    let device = world.device("alice", name).await;
    by.add_device(&asks(&device).await).await.unwrap();
    by.share_enforcers().await.unwrap();
    device
}

fn any_key() -> EncryptionKey {
    let keys = EnforcerKeys::generate(&mut countersign::client::random).unwrap();
    keys.encryption_key()
}

fn known(device: &Approver, enforcer: &str) -> Option<EnforcerRecord> {
    let records = device.enforcers();
    records.into_iter().find(|record| record.id == enforcer)
}

/// Publishes an introduction of `bot` that this device really signs.
async fn introduces(world: &ClientScene, name: &str, key: &EncryptionKey, at: &str) {
    let owner = Owner::new(&world.cluster.tenant, "alice");
    let text = owner.introduce(&device_of(world, name), "bot", key, at);
    let client = world.cluster.approver("alice").await.client;
    let call = client.call(Method::POST, &owner.introductions());
    call.text(&text).send().await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_further_device_opens_and_decides_without_pairing() {
    let (world, mut enforcer, laptop) = paired().await;
    let phone = added(&world, &laptop, "phone").await;
    assert!(phone.enforcers().is_empty(), "it has not looked yet");
    for device in [&phone, &laptop, &phone] {
        let asked = ask(enforcer, question(command(&["git", "push"])), device).await;
        for reader in [&laptop, &phone] {
            assert!(asked.item(reader).await.content.is_ok(), "it opens on both");
        }
        let item = asked.item(device).await;
        assert_eq!(item.label.as_deref(), Some("build machine"));
        let decided = device.decide(&item, &choice(Verdict::Approve)).await;
        decided.unwrap();
        let (back, outcome) = asked.end().await;
        assert_eq!(outcome.unwrap().approval.device, device.device_id());
        enforcer = back;
    }
    let (own, taken) = (
        known(&laptop, "bot").unwrap(),
        known(&phone, "bot").unwrap(),
    );
    assert_eq!((&own.key, &own.paired_at), (&taken.key, &taken.paired_at));
    assert_eq!(own.introduced_by, None);
    let introducer = phone.introducer(&taken).unwrap().unwrap();
    assert_eq!(introducer.id, laptop.device_id().to_string());
    assert_eq!(introducer.name.as_deref(), Some("laptop"));

    // The first device is lost: what it introduced stays, and says so; others still learn of it by
    // the second.
    phone.revoke_device(laptop.device_id()).await.unwrap();
    let tablet = added(&world, &phone, "tablet").await;
    world.cluster.pass(A_MINUTE);
    let asked = ask(enforcer, question(command(&["git", "pull"])), &tablet).await;
    let item = asked.item(&tablet).await;
    let decided = tablet.decide(&item, &choice(Verdict::Approve)).await;
    decided.unwrap();
    assert_eq!(
        asked.end().await.1.unwrap().approval.device,
        tablet.device_id()
    );
    let introducer = phone.introducer(&taken).unwrap().unwrap();
    assert!(introducer.is_revoked && introducer.name.is_none());
    let taken = known(&tablet, "bot").unwrap();
    assert_eq!(taken.introduced_by, Some(phone.device_id().to_string()));
    assert_eq!(taken.paired_at, own.paired_at, "as it was at first");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pushed_request_of_an_introduced_enforcer_opens() {
    let (world, enforcer, laptop) = paired().await;
    let phone = added(&world, &laptop, "phone").await;
    let asked = ask(enforcer, question(command(&["git", "push"])), &laptop).await;
    let mut watch = phone.watch();
    let item = loop {
        let pushed = tokio::time::timeout(super::people::PATIENCE, watch.next()).await;
        if let PushedEvent::Envelope(text) = pushed.expect("something comes").unwrap()
            && let Some(item) = phone.read_pushed(&text).await.unwrap()
        {
            break item;
        }
    };
    assert_eq!(item.request_id.as_str(), asked.request_id);
    assert!(item.content.is_ok(), "{:?}", item.content);
    let decided = phone.decide(&item, &choice(Verdict::Approve)).await;
    decided.unwrap();
    asked.end().await.1.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn introductions_that_disagree_are_refused_and_a_pairing_settles_it() {
    let (world, mut enforcer, laptop) = paired().await;
    let phone = added(&world, &laptop, "phone").await;
    let mut tablet = added(&world, &laptop, "tablet").await;
    introduces(&world, "phone", &any_key(), &in_time(-5)).await;
    let asked = ask(enforcer, question(command(&["git", "push"])), &laptop).await;
    let item = asked.item(&tablet).await;
    assert_eq!(item.content.unwrap_err(), OpenFailure::Disagreement);
    assert!(tablet.enforcers().is_empty());
    let item = asked.item(&laptop).await;
    assert!(item.content.is_ok(), "its own pin stands");
    let decided = laptop.decide(&item, &choice(Verdict::Reject)).await;
    decided.unwrap();
    enforcer = asked.end().await.0;
    pair(&mut enforcer, &mut tablet).await;
    tablet.share_enforcers().await.unwrap();
    let own = known(&tablet, "bot").unwrap();
    assert_eq!(own.introduced_by, None);
    // Pairing ended what was said before, and from now on both learn the right one.
    world.cluster.pass(A_MINUTE);
    let asked = ask(enforcer, question(command(&["git", "push"])), &laptop).await;
    assert!(asked.item(&phone).await.content.is_ok());
    assert!(asked.item(&tablet).await.content.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_key_of_a_known_enforcer_is_never_taken_over() {
    let (world, enforcer, laptop) = paired().await;
    let phone = added(&world, &laptop, "phone").await;
    phone.share_enforcers().await.unwrap();
    let before = [known(&laptop, "bot"), known(&phone, "bot")];
    assert!(before.iter().all(Option::is_some));
    // The enforcer is set up anew and paired with the tablet.
    let mut anew = world.enforcer("bot").await;
    let mut tablet = added(&world, &laptop, "tablet").await;
    pair(&mut anew, &mut tablet).await;
    tablet.share_enforcers().await.unwrap();
    drop(enforcer);
    world.cluster.pass(A_MINUTE);
    let asked = ask(anew, question(command(&["git", "push"])), &tablet).await;
    assert!(asked.item(&tablet).await.content.is_ok());
    for device in [&laptop, &phone] {
        let item = asked.item(device).await;
        assert_eq!(item.content.unwrap_err(), OpenFailure::OtherKey);
    }
    assert_eq!([known(&laptop, "bot"), known(&phone, "bot")], before);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_ended_on_a_device_comes_back_only_with_a_new_pairing() {
    let (world, mut enforcer, mut laptop) = paired().await;
    let mut phone = added(&world, &laptop, "phone").await;
    phone.share_enforcers().await.unwrap();
    let client = world.cluster.approver("alice").await.client;
    let path = Owner::new(&world.cluster.tenant, "alice").introductions();
    let old = client.get(&path).await.expect(200).json();
    assert_eq!(old["introductions"].as_array().unwrap().len(), 2);
    assert!(phone.unpair("bot").await.unwrap());
    let pairings = client.get("/v1/pairings").await.expect(200).json();
    assert_eq!(pairings["items"], json!([]), "for the enforcer too");
    // The laptop still knows the pairing, and can no longer publish it.
    laptop.share_enforcers().await.unwrap();
    let listed = client.get(&path).await.expect(200).json();
    assert_eq!(listed["introductions"], json!([]));
    // A gateway that shows the old ones brings nothing back.
    let node = world.cluster.urls()[0].clone();
    let shown = old["introductions"].clone();
    let liar = Tamper::start(&node, move |path, answer| {
        if path.ends_with("/introductions") {
            answer["introductions"] = shown.clone();
        }
    })
    .await;
    let deceived = world.through("phone", vec![liar.url.clone()]);
    deceived.share_enforcers().await.unwrap();
    assert!(deceived.enforcers().is_empty());

    // Paired again, on the laptop, after that.
    let phone = world.through("phone", world.cluster.urls());
    world.cluster.pass(Duration::from_secs(2));
    pair(&mut enforcer, &mut laptop).await;
    let asked = ask(enforcer, question(command(&["git", "push"])), &laptop).await;
    let item = asked.item(&phone).await;
    assert_eq!(item.content.unwrap_err(), OpenFailure::NotPaired);
    laptop.share_enforcers().await.unwrap();
    assert!(asked.item(&phone).await.content.is_ok());
    let profile = world.file("phone").load().unwrap().approver.unwrap();
    assert!(profile.unpaired.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn unpairing_ends_it_at_the_gateway_whichever_device_was_paired_last() {
    let (world, mut enforcer, mut laptop) = paired().await;
    let mut phone = added(&world, &laptop, "phone").await;
    pair(&mut enforcer, &mut phone).await;
    // The laptop's token was replaced.
    assert!(laptop.unpair("bot").await.unwrap());
    let client = world.cluster.approver("alice").await.client;
    let pairings = client.get("/v1/pairings").await.expect(200).json();
    assert_eq!(pairings["items"], json!([]));
    assert!(!laptop.unpair("bot").await.unwrap());
    // Ended already: here too, without a fault.
    assert!(phone.unpair("bot").await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_that_was_given_other_keys_learns_nothing_of_the_former() {
    let (world, _enforcer, laptop) = paired().await;
    let phone = added(&world, &laptop, "phone").await;
    // Another program joins with the same profile.
    world.device("bob", "phone").await;
    let refused = phone.share_enforcers().await.unwrap_err();
    assert!(
        refused.to_string().contains("keys were replaced"),
        "{refused}"
    );
    let profile = world.file("phone").load().unwrap().approver.unwrap();
    assert!(profile.enforcers.is_empty() && profile.devices.is_empty());
}
