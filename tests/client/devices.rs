//! A second device: endorsed by the first, trusted by enforcers, revoked for ever.

use countersign::client::approver::{Approver, DeviceStanding, EnrolmentProgress, StrangeDevice};
use countersign::client::{ClientError, DecisionRecord};
use countersign::e2e::{DeviceId, EndorsementRequest, Error};
use countersign::protocol::decision::Verdict;

use tokio::time::Instant;

use super::people::{ClientScene, PATIENCE, ask, choice, command, pair, question};
use super::tamper::Tamper;

pub async fn asks(device: &Approver) -> EndorsementRequest {
    match device.enrol().await.unwrap() {
        EnrolmentProgress::Asks(request) => {
            let link = request.link(&device.page()).unwrap();
            EndorsementRequest::parse(&link).unwrap()
        }
        EnrolmentProgress::InForce => panic!("another device has to add it"),
    }
}

fn standings(devices: &countersign::client::approver::KnownDevices) -> Vec<(&str, DeviceStanding)> {
    let listed = devices.listed.iter();
    listed
        .map(|device| (device.name.as_str(), device.standing))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_device_is_endorsed_decides_and_is_revoked() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut laptop = world.approver("alice", "laptop").await;
    pair(&mut enforcer, &mut laptop).await;
    let phone = world.device("alice", "phone").await;
    let request = asks(&phone).await;
    assert_eq!(request.bundle(), phone.bundle());
    let waiting = async { phone.wait_until_in_force(PATIENCE).await.unwrap() };
    let adding = async { laptop.add_device(&request).await.unwrap() };
    let (in_force, ()) = tokio::join!(waiting, adding);
    assert!(in_force);
    laptop.add_device(&request).await.expect("twice is no harm");
    assert!(matches!(
        phone.enrol().await.unwrap(),
        EnrolmentProgress::InForce
    ));
    let (own, other) = (DeviceStanding::Own, DeviceStanding::Trusted);
    let seen = laptop.devices().await.unwrap();
    assert_eq!(standings(&seen), [("laptop", own), ("phone", other)]);
    let seen = phone.devices().await.unwrap();
    assert_eq!(
        standings(&seen),
        [("laptop", other), ("phone", own)],
        "each trusts the other"
    );

    // The enforcer knows the laptop alone, and learns of the phone by the laptop's statement. The
    // phone knows the enforcer's key by the laptop's introduction.
    laptop.share_enforcers().await.unwrap();
    let asked = ask(enforcer, question(command(&["git", "push"])), &phone).await;
    let (on_laptop, on_phone) = (asked.item(&laptop).await, asked.item(&phone).await);
    assert!(
        on_laptop.content.is_ok() && on_phone.content.is_ok(),
        "both can read it"
    );
    let decided = phone
        .decide(&on_phone, &choice(Verdict::Approve))
        .await
        .unwrap();
    let opened = on_phone.content.as_ref().unwrap();
    let record = phone.record(opened, &decided).await;
    let (enforcer, outcome) = asked.end().await;
    assert_eq!(outcome.unwrap().approval.device, phone.device_id());

    // A verifier that knows the laptop alone can verify it, by the statements in the record.
    let read = DecisionRecord::parse(record.to_text().unwrap().as_bytes()).unwrap();
    let own = vec![laptop.bundle().clone()];
    let (tenant, id) = (world.cluster.tenant.clone(), laptop.id().clone());
    let trust = countersign::e2e::DeviceTrust::from_own_records(tenant, id, own, [].into());
    read.is_trusted_by(&trust).unwrap();

    let asked = ask(enforcer, question(command(&["git", "pull"])), &phone).await;
    let item = asked.item(&phone).await;
    laptop.revoke_device(phone.device_id()).await.unwrap();
    let refused = phone
        .decide(&item, &choice(Verdict::Approve))
        .await
        .unwrap_err();
    assert!(
        matches!(refused, ClientError::RefusedAfterSigning),
        "{refused}"
    );
    let refused = phone.enrol().await.unwrap_err();
    assert!(matches!(refused, ClientError::DeviceRevoked), "{refused}");
    let seen = laptop.devices().await.unwrap();
    assert_eq!(standings(&seen)[1], ("phone", DeviceStanding::Revoked));
    let item = asked.item(&laptop).await;
    laptop
        .decide(&item, &choice(Verdict::Approve))
        .await
        .unwrap();
    asked.end().await.1.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_of_another_approver_or_an_old_one_adds_nothing() {
    let world = ClientScene::start().await;
    let laptop = world.approver("alice", "laptop").await;
    let bob = world.approver("bob", "tablet").await;
    let second = world.device("bob", "watch").await;
    let request = asks(&second).await;
    let refused = laptop.add_device(&request).await.unwrap_err();
    assert!(
        matches!(refused, ClientError::Crypto(Error::OtherApprover)),
        "{refused}"
    );
    world.cluster.pass(std::time::Duration::from_secs(11 * 60));
    let refused = bob.add_device(&request).await.unwrap_err();
    assert!(refused.to_string().contains("10 minutes"), "{refused}");
    assert_eq!(bob.devices().await.unwrap().listed.len(), 1);
    bob.add_device(&asks(&second).await)
        .await
        .expect("a new link works");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_shows_a_foreign_device_gets_nothing_signed_about_it() {
    let world = ClientScene::start().await;
    let laptop = world.approver("alice", "laptop").await;
    let foreign = world.device("alice", "foreign").await;
    let node = world.cluster.urls()[0].clone();
    let shown = foreign.bundle().to_text().unwrap();
    let liar = Tamper::start(&node, move |path, answer| {
        if path.ends_with("/devices") && answer["devices"].is_array() {
            let mut line = answer["devices"][0].clone();
            line["bundle"] = shown.clone().into();
            answer["devices"].as_array_mut().unwrap().push(line);
        }
    })
    .await;
    let phone = world
        .device_at("alice", "phone", vec![liar.url.clone()])
        .await;
    laptop.add_device(&asks(&phone).await).await.unwrap();
    // Nothing that this device trusts leads to it, and no statement about it was published.
    let seen = phone.devices().await.unwrap();
    let found = seen.find(foreign.device_id()).unwrap();
    assert_eq!(found.standing, DeviceStanding::Unverified);
    let honest = laptop.devices().await.unwrap();
    assert_eq!(honest.listed.len(), 2);
    assert!(honest.find(foreign.device_id()).is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_device_in_force_nobody_can_add_one() {
    let world = ClientScene::start().await;
    let laptop = world.approver("alice", "laptop").await;
    laptop.revoke_device(laptop.device_id()).await.unwrap();
    let phone = world.device("alice", "phone").await;
    let refused = phone.enrol().await.unwrap_err();
    assert!(matches!(refused, ClientError::NoDeviceInForce), "{refused}");
}

/// The gateway need not keep it back: the enforcer reads the list again only when it asks next.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_names_the_revoked_device_that_its_enforcer_still_obeys() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut laptop = world.approver("alice", "laptop").await;
    pair(&mut enforcer, &mut laptop).await;
    let phone = world.device("alice", "phone").await;
    laptop.add_device(&asks(&phone).await).await.unwrap();
    let soon = Instant::now() + PATIENCE;
    let known = enforcer.refreshed_devices("alice", soon).await;
    assert_eq!(known.unwrap().len(), 2);
    let asked = ask(enforcer, question(command(&["git", "push"])), &laptop).await;
    let item = asked.item(&laptop).await;
    assert_eq!(item.strangers, [], "both are known");
    laptop.revoke_device(phone.device_id()).await.unwrap();
    let item = asked.item(&laptop).await;
    let stranger = StrangeDevice {
        id: phone.device_id(),
        is_revoked: true,
    };
    assert_eq!(item.strangers, [stranger]);
    // The laptop reads the list for that, and keeps what it has learned.
    let item = asked.item(&laptop).await;
    assert_eq!(item.strangers, [stranger]);
    let rejected = laptop.decide(&item, &choice(Verdict::Reject)).await;
    rejected.unwrap();
    let (_, outcome) = asked.end().await;
    outcome.unwrap_err();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_the_gateway_does_not_list_can_be_revoked() {
    let world = ClientScene::start().await;
    let laptop = world.approver("alice", "laptop").await;
    let unlisted = DeviceId::parse("AAAAAAAAAAAAAAAAAAAAAA").unwrap();
    laptop.revoke_device(unlisted).await.unwrap();
    laptop
        .revoke_device(unlisted)
        .await
        .expect("twice is no harm");
    let sql = "select count(*) from device_statements where change = 'revoke'";
    // Each says which devices stay in force, which may have changed.
    assert_eq!(world.cluster.database.number(sql).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_still_waits_is_encrypted_again_for_a_new_device() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut laptop = world.approver("alice", "laptop").await;
    pair(&mut enforcer, &mut laptop).await;
    let asked = ask(enforcer, question(command(&["git", "push"])), &laptop).await;
    let phone = world.device("alice", "phone").await;
    laptop.add_device(&asks(&phone).await).await.unwrap();
    laptop.share_enforcers().await.unwrap();
    let before = asked.item(&phone).await;
    let refused = before.content.unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("not encrypted for this device"),
        "{refused}"
    );
    // The enforcer reads the list again after each long poll.
    let until = Instant::now() + 2 * PATIENCE;
    let item = loop {
        let item = asked.item(&phone).await;
        if item.content.is_ok() || Instant::now() > until {
            break item;
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    };
    assert!(item.content.is_ok(), "{:?}", item.content.err());
    let decided = phone.decide(&item, &choice(Verdict::Approve)).await;
    decided.unwrap();
    asked.end().await.1.unwrap();
}
