//! Introductions that are swapped, invented, old, foreign or withheld: a device pins no enforcer by
//! them, and approves nothing that came from one.

use std::sync::{Arc, Mutex};

use countersign::client::ClientError;
use countersign::client::approver::{Approver, OpenFailure};
use countersign::client::profile::{Profile, ProfileError};
use countersign::e2e::{EncryptionKey, EnforcerKeys};
use countersign::protocol::decision::Verdict;
use countersign::protocol::id::{TenantId, TextId as _};
use serde_json::{Value, json};

use super::meddler::{Content, Meddler, Reply};
use super::scene::{HostileScene, device_of};
use crate::client::people::{ask, choice, command, question};
use crate::support::devices::{Device, Owner};
use crate::support::now;

type Lying = Arc<Mutex<Option<Box<dyn Fn(&str, &mut Reply) + Send + Sync>>>>;

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn key() -> EncryptionKey {
    let keys = EnforcerKeys::generate(&mut countersign::client::random).unwrap();
    keys.encryption_key()
}

/// One case: introductions, and statements about devices if they differ.
struct Shown {
    what: &'static str,
    introductions: Vec<Value>,
    statements: Option<Vec<Value>>,
}

fn shown(what: &'static str, introductions: Vec<Value>) -> Shown {
    Shown {
        what,
        introductions,
        statements: None,
    }
}

/// A phone that was added by the laptop, knows no enforcer yet, and reaches the gateway only
/// through a liar.
struct Deceived {
    scene: HostileScene,
    lying: Lying,
    profile: Profile,
    _meddler: Meddler,
}

impl Deceived {
    async fn start() -> Self {
        let scene = HostileScene::start().await;
        scene.added("phone").await;
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
        drop(scene.world.through("phone", vec![meddler.url.clone()]));
        Self {
            profile: scene.world.file("phone").load().unwrap(),
            scene,
            lying,
            _meddler: meddler,
        }
    }

    /// The phone as it was, with a gateway that lies so.
    fn phone(&self, lie: impl Fn(&str, &mut Reply) + Send + Sync + 'static) -> Approver {
        *self.lying.lock().unwrap() = Some(Box::new(lie));
        let restore = |whole: &mut Profile| {
            *whole = self.profile.clone();
            Ok::<_, ProfileError>(())
        };
        let world = &self.scene.world;
        world.file("phone").update(restore).unwrap();
        Approver::open(&world.file("phone"), &world.cluster.clock).unwrap()
    }

    fn phone_shown(&self, shown: Shown) -> Approver {
        let (introductions, statements) = (shown.introductions, shown.statements);
        self.phone(move |path, reply| {
            if path.ends_with("/introductions") {
                reply.edit(|list| list["introductions"] = json!(introductions));
            }
            if let Some(statements) = &statements
                && path.ends_with("/devices")
            {
                reply.edit(|list| list["statements"] = json!(statements));
            }
        })
    }
}

async fn refuses(phone: &Approver, request_id: &str, what: &str) {
    let mut found = phone.find(request_id).await.unwrap();
    assert_eq!(found.len(), 1, "{what}");
    let item = found.remove(0);
    assert_eq!(
        item.content.as_ref().unwrap_err(),
        &OpenFailure::NotPaired,
        "{what}"
    );
    assert!(phone.enforcers().is_empty(), "{what}");
    let refused = phone.decide(&item, &choice(Verdict::Approve)).await;
    assert!(
        matches!(refused, Err(ClientError::NotApprovable(_))),
        "{what}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_list_introduces_an_enforcer_that_no_trusted_device_has_introduced() {
    let deceived = Deceived::start().await;
    let scene = &deceived.scene;
    let (owner, laptop, mallory) = (&scene.owner, &scene.laptop, &scene.mallory);
    let enforcer = scene.enforcer();
    let asked = ask(enforcer, question(command(&["git", "push"])), &scene.alice).await;
    let alice = scene.world.cluster.approver("alice").await.client;
    let listed = alice.get(&owner.path()).await.expect(200).json();
    let honest = listed["statements"].as_array().unwrap().clone();
    let listed = alice.get(&owner.introductions()).await.expect(200).json();
    let genuine = listed["introductions"][0].clone();
    assert_eq!(genuine["statement"]["by"], laptop.id());
    let (false_key, at) = (key(), now());

    let edited = |name: &str, value: Value| {
        let mut changed = genuine.clone();
        changed["statement"][name] = value;
        changed
    };
    // Without its own introduction for the stolen tablet: it was in force, and was revoked.
    let tablet = Device::new("tablet");
    let mut with_revoked = honest.clone();
    with_revoked.push(value(&owner.add(laptop, &tablet)));
    with_revoked.push(value(&owner.revoke(laptop, tablet.keys.id())));
    let mut invented = honest.clone();
    invented.push(value(&owner.add(mallory, mallory)));
    let mut claimed = value(&owner.add(mallory, mallory));
    claimed["statement"]["by"] = laptop.id().into();
    invented.push(claimed);
    let elsewhere = Owner::new(&TenantId::parse("another").unwrap(), "alice");
    let for_bob = Owner::new(&owner.tenant, "bob");
    let claims_laptop = {
        let mut claims = value(&owner.introduce(mallory, "bot", &false_key, &at));
        claims["statement"]["by"] = laptop.id().into();
        claims
    };
    let by = |owner: &Owner, device: &Device| {
        vec![value(&owner.introduce(device, "bot", &false_key, &at))]
    };
    let mut flipped = genuine.clone();
    let signature = flipped["signature"].as_str().unwrap();
    let first = if signature.starts_with('A') { "B" } else { "A" };
    flipped["signature"] = format!("{first}{}", &signature[1..]).into();
    let cases = vec![
        shown("nothing", vec![]),
        shown(
            "a swapped key",
            vec![edited("x25519", json!(false_key.to_text()))],
        ),
        shown(
            "another enforcer's introduction",
            vec![edited("enforcerId", json!("other"))],
        ),
        shown("another label", vec![edited("label", json!("trusted"))]),
        shown(
            "another time",
            vec![edited("at", json!("2020-01-01T00:00:00Z"))],
        ),
        shown("a wrong signature", vec![flipped]),
        shown("one member more", vec![edited("x", json!(1))]),
        shown("another version", vec![edited("v", json!(2))]),
        shown("by the gateway's own device", by(owner, mallory)),
        shown("in the laptop's name", vec![claims_laptop]),
        Shown {
            what: "by its own device, with invented statements",
            introductions: by(owner, mallory),
            statements: Some(invented),
        },
        Shown {
            what: "by a revoked device",
            introductions: by(owner, &tablet),
            statements: Some(with_revoked.clone()),
        },
        Shown {
            what: "by the laptop, whose statements are hidden",
            introductions: vec![genuine.clone()],
            statements: Some(vec![]),
        },
        shown("of another tenant", by(&elsewhere, laptop)),
        shown("of another approver", by(&for_bob, laptop)),
        shown(
            "no introductions at all",
            vec![json!(1), json!({}), json!([])],
        ),
    ];
    for case in cases {
        let what = case.what;
        let phone = deceived.phone_shown(case);
        refuses(&phone, &asked.request_id, what).await;
    }
    for (what, reply) in [
        ("missing", Reply::new(404, "{}")),
        ("an error", Reply::new(500, "{}")),
        ("no JSON", Reply::new(200, "no JSON")),
        ("no list", Reply::new(200, "{\"introductions\":{}}")),
    ] {
        let phone = deceived.phone(move |path, answer| {
            if path.ends_with("/introductions") {
                *answer = reply.clone();
            }
        });
        refuses(&phone, &asked.request_id, what).await;
    }

    // A device that is known to be revoked stays so, also if the gateway shows the list from
    // before.
    let seen = deceived.phone_shown(Shown {
        what: "",
        introductions: vec![],
        statements: Some(with_revoked.clone()),
    });
    refuses(&seen, &asked.request_id, "it learns of the revocation").await;
    let shorter = with_revoked[..with_revoked.len() - 1].to_vec();
    let forged = by(owner, &tablet);
    *deceived.lying.lock().unwrap() = Some(Box::new(move |path, reply| {
        if path.ends_with("/introductions") {
            reply.edit(|list| list["introductions"] = json!(forged));
        }
        if path.ends_with("/devices") {
            reply.edit(|list| list["statements"] = json!(shorter));
        }
    }));
    let file = scene.world.file("phone");
    let again = Approver::open(&file, &scene.world.cluster.clock).unwrap();
    refuses(&again, &asked.request_id, "a withheld revocation").await;

    // Without a lie the same request opens: what was refused above is due to the lie.
    let phone = deceived.phone(|_, _| {});
    let item = phone.find(&asked.request_id).await.unwrap().remove(0);
    assert!(item.content.is_ok(), "{:?}", item.content);
    let decided = phone.decide(&item, &choice(Verdict::Approve)).await;
    decided.unwrap();
    let approval = asked.end().await.1.unwrap().approval;
    assert_eq!(approval.device, device_of(&scene.world, "phone").keys.id());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_is_not_replaced_by_what_the_gateway_shows_later() {
    let deceived = Deceived::start().await;
    let scene = &deceived.scene;
    let (owner, laptop) = (&scene.owner, &scene.laptop);
    let enforcer = scene.enforcer();
    let asked = ask(enforcer, question(command(&["git", "push"])), &scene.alice).await;
    let phone = deceived.phone(|_, _| {});
    let item = phone.find(&asked.request_id).await.unwrap().remove(0);
    assert!(item.content.is_ok());
    let before = phone.enforcers();
    assert_eq!(before.len(), 1);
    // Even the laptop's own signature, if it was stolen meanwhile, and however late its time.
    let false_key = key();
    let later = value(&owner.introduce(laptop, "bot", &false_key, "2999-01-01T00:00:00Z"));
    *deceived.lying.lock().unwrap() = Some(Box::new(move |path, reply| {
        if path.ends_with("/introductions") {
            reply.edit(|list| list["introductions"] = json!([later]));
        }
        // The request does not open, so the phone looks again.
        if path.contains("/inbox") && matches!(reply.body, Content::Whole(_)) {
            reply.edit(|page| {
                let items = page["body"]["items"].as_array_mut().unwrap();
                for item in items {
                    let recipients = &mut item["body"]["ciphertext"]["recipients"];
                    for recipient in recipients.as_array_mut().unwrap() {
                        let text = recipient["key"].as_str().unwrap();
                        let first = if text.starts_with('A') { "B" } else { "A" };
                        recipient["key"] = format!("{first}{}", &text[1..]).into();
                    }
                }
            });
        }
    }));
    let item = phone.find(&asked.request_id).await.unwrap().remove(0);
    assert_eq!(item.content.unwrap_err(), OpenFailure::OtherKey);
    assert_eq!(phone.enforcers(), before);
}
