//! A device that is added by a device, with a gateway that swaps keys, lists devices of its own or
//! repeats what it saw: nothing is added.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::client::approver::{Approver, InvitationLink, JoinOutcome, join};
use countersign::client::{ClientError, GatewayLocation};
use countersign::e2e::{DeviceName, EndorsementRequest, Error};
use countersign::protocol::timestamp::Timestamp;
use serde_json::json;

use super::meddler::{Meddler, Reply};
use super::scene::HostileScene;
use crate::client::people::PATIENCE;
use crate::support::devices::Device;
use crate::support::now;

type Lying = Arc<Mutex<Option<Box<dyn Fn(&str, &mut Reply) + Send + Sync>>>>;

/// Both devices reach the gateway only through a liar.
struct Deceived {
    scene: HostileScene,
    alice: Approver,
    lying: Lying,
    meddler: Meddler,
}

impl Deceived {
    async fn start() -> Self {
        let scene = HostileScene::start().await;
        let lying: Lying = Arc::default();
        let told = Arc::clone(&lying);
        let node = scene.world.cluster.urls()[0].clone();
        let meddler = Meddler::start(&node, move |call, gateway| {
            let told = Arc::clone(&told);
            async move {
                let mut reply = gateway.pass(&call).await;
                if let Some(lie) = &*told.lock().unwrap() {
                    lie(&call.path, &mut reply);
                }
                reply
            }
        })
        .await;
        let urls = vec![meddler.url.clone()];
        Self {
            alice: scene.world.through("laptop", urls),
            scene,
            lying,
            meddler,
        }
    }

    fn lies(&self, lie: impl Fn(&str, &mut Reply) + Send + Sync + 'static) {
        *self.lying.lock().unwrap() = Some(Box::new(lie));
    }

    async fn joins(&self, link: &InvitationLink, name: &str) -> Result<Approver, ClientError> {
        let urls = [self.meddler.url.clone()];
        let location = GatewayLocation {
            urls: &urls,
            ..GatewayLocation::default()
        };
        let world = &self.scene.world;
        let device = DeviceName::parse("phone").unwrap();
        let clock = &world.cluster.clock;
        let joined = join(&world.file(name), false, clock, link, &location, &device).await?;
        let JoinOutcome::Approver(phone) = joined else {
            panic!("an approver");
        };
        Ok(*phone)
    }

    async fn devices(&self) -> Vec<String> {
        let listed = self.scene.alice.devices().await.unwrap().listed;
        listed.into_iter().map(|device| device.name).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_swaps_the_new_devices_keys_adds_nothing() {
    let deceived = Deceived::start().await;
    let (alice, owner) = (&deceived.alice, &deceived.scene.owner);
    let mallory = Device::new("phone");
    let forged = {
        let own = (&mallory.keys, &mallory.bundle);
        let at = Timestamp::parse(&now()).unwrap();
        let listed = [alice.bundle().clone()];
        let request = EndorsementRequest::new(&owner.tenant, &owner.approver, own, at, &listed);
        request.unwrap().to_text().unwrap()
    };
    let offer = alice.invite_device().await.unwrap();
    let link = InvitationLink::parse(&offer.expose(&alice.page())).unwrap();
    // Before anyone has joined, the gateway answers in the new device's place, with its own proof.
    let early = forged.clone();
    deceived.lies(move |path, reply| {
        if path.contains("/invitations/") {
            reply.edit(|line| {
                line["request"] = early.clone().into();
                line["proof"] = "A".repeat(43).into();
            });
        }
    });
    let refused = alice.wait_for_device(&offer, PATIENCE).await.unwrap_err();
    assert!(
        matches!(refused, ClientError::Crypto(Error::DeviceProof)),
        "{refused}"
    );
    // And with the proof of the right keys.
    deceived.lies(move |path, reply| {
        if path.contains("/invitations/") {
            reply.edit(|line| line["request"] = forged.clone().into());
        }
    });
    let phone = deceived.joins(&link, "phone").await.unwrap();
    phone.ask_inviter(&link).await.unwrap();
    let refused = alice.wait_for_device(&offer, PATIENCE).await.unwrap_err();
    assert!(
        matches!(refused, ClientError::Crypto(Error::DeviceProof)),
        "{refused}"
    );
    assert_eq!(deceived.devices().await, ["laptop"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gateway_says_where_the_page_is_only_to_its_own_machine() {
    let deceived = Deceived::start().await;
    for (told, own, expected) in [
        ("https://192.0.2.1/page/", "http://127.0.0.1:8080", true),
        ("https://192.0.2.1/page/", "http://localhost:8080/", true),
        (
            "https://192.0.2.1/page/",
            "https://page.example.org/",
            false,
        ),
        (
            "https://192.0.2.1/page/",
            "https://127.0.0.1.example.org/",
            false,
        ),
        ("javascript:alert(1)", "http://127.0.0.1:8080", false),
        ("http://192.0.2.1/", "http://127.0.0.1:8080", false),
        ("https://192.0.2.1/#x", "http://127.0.0.1:8080", false),
    ] {
        deceived.lies(move |path, reply| {
            if path.ends_with("/invitations") {
                reply.edit(|made| made["page"] = told.into());
            }
        });
        let offer = deceived.alice.invite_device().await.unwrap();
        let link = offer.expose(own);
        deceived.alice.decline_device(&offer).await.unwrap();
        let page = if expected { told } else { own };
        let page = page.trim_end_matches('/');
        assert!(link.starts_with(&format!("{page}/#/join/")), "{}", *link);
        deceived.scene.world.cluster.pass(Duration::from_secs(601));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_device_signs_for_no_device_that_the_gateway_invents() {
    let deceived = Deceived::start().await;
    let (alice, owner) = (&deceived.alice, &deceived.scene.owner);
    let mallory = Device::new("laptop");
    let bundle = mallory.bundle.to_text().unwrap();
    let offer = alice.invite_device().await.unwrap();
    let link = InvitationLink::parse(&offer.expose(&alice.page())).unwrap();
    let line = json!({ "bundle": bundle, "addedAt": now(), "addedBy": mallory.id() });
    // Beside the true one: the request is for that alone.
    let more = line.clone();
    deceived.lies(move |path, reply| {
        if path.ends_with("/devices") {
            reply.edit(|list| {
                list["devices"]
                    .as_array_mut()
                    .unwrap()
                    .insert(0, more.clone());
            });
        }
    });
    let phone = deceived.joins(&link, "phone").await.unwrap();
    let digits = phone.ask_inviter(&link).await.unwrap();
    let asked = alice
        .wait_for_device(&offer, PATIENCE)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(asked.digits(), digits);
    let request = asked.confirmed_by_person();
    let own = (&mallory.keys, &mallory.bundle);
    let stolen = request.endorse(&owner.tenant, &owner.approver, own);
    assert_eq!(stolen.unwrap_err(), Error::NotAsked);
    // In its place: nothing is signed at all.
    deceived.lies(move |path, reply| {
        if path.ends_with("/devices") {
            reply.edit(|list| list["devices"] = json!([line]));
        }
    });
    let refused = phone.ask_inviter(&link).await.unwrap_err();
    let inviter = alice.device_id();
    let expected = Error::UnknownDevice(inviter);
    assert!(
        matches!(&refused, ClientError::Crypto(error) if *error == expected),
        "{refused}"
    );
    alice.add_device(&request).await.unwrap();
    assert!(phone.wait_until_in_force(PATIENCE).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_used_once_in_time_and_an_old_request_proves_nothing_later() {
    let deceived = Deceived::start().await;
    let alice = &deceived.alice;
    let offer = alice.invite_device().await.unwrap();
    let link = InvitationLink::parse(&offer.expose(&alice.page())).unwrap();
    let phone = deceived.joins(&link, "phone").await.unwrap();
    let again = deceived.joins(&link, "tablet").await.err().unwrap();
    assert!(matches!(again, ClientError::NoSuchInvitation), "{again}");
    phone.ask_inviter(&link).await.unwrap();
    let seen: Arc<Mutex<Option<serde_json::Value>>> = Arc::default();
    let noted = Arc::clone(&seen);
    deceived.lies(move |path, reply| {
        if path.contains("/invitations/") {
            *noted.lock().unwrap() = Some(reply.json());
        }
    });
    let asked = alice.wait_for_device(&offer, PATIENCE).await;
    assert!(asked.unwrap().is_some());
    // The person said no, and begins again: what was sent for the first link does not count.
    let second = alice.invite_device().await.unwrap();
    let old = seen.lock().unwrap().clone().unwrap();
    deceived.lies(move |path, reply| {
        if path.contains("/invitations/") {
            let old = old.clone();
            reply.edit(|line| *line = old);
        }
    });
    let refused = alice.wait_for_device(&second, PATIENCE).await.unwrap_err();
    assert!(
        matches!(refused, ClientError::Crypto(Error::DeviceProof)),
        "{refused}"
    );
    *deceived.lying.lock().unwrap() = None;
    let third = alice.invite_device().await.unwrap();
    let link = InvitationLink::parse(&third.expose(&alice.page())).unwrap();
    deceived.scene.world.cluster.pass(Duration::from_secs(601));
    let late = deceived.joins(&link, "tablet").await.err().unwrap();
    assert!(matches!(late, ClientError::NoSuchInvitation), "{late}");
    assert_eq!(deceived.devices().await, ["laptop"]);
}
