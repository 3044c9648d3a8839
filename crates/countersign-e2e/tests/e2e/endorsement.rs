//! A new device asks a device in force to add it. Neither publishes anything about a device that it
//! does not know.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_e2e::{
    DeviceBundle, DeviceKeys, DeviceName, DeviceTrust, EndorsementRequest, Error, MAX_DEVICES,
    StatementChange, TrustUpdate,
};
use countersign_protocol::id::{ApproverId, TenantId, TextId as _};
use serde_json::{Value, json};

use super::people::{alice, device, known, now, tenant, world};
use super::texts::canon;

fn request(new: (&DeviceKeys, &DeviceBundle), devices: &[DeviceBundle]) -> EndorsementRequest {
    EndorsementRequest::new(&tenant(), &alice(), new, now(), devices).unwrap()
}

fn altered(request: &EndorsementRequest, change: impl FnOnce(&mut Value)) -> String {
    let bytes = URL_SAFE_NO_PAD.decode(request.to_text().unwrap()).unwrap();
    let mut members = serde_json::from_slice(&bytes).unwrap();
    change(&mut members);
    URL_SAFE_NO_PAD.encode(canon(&members))
}

#[test]
fn both_devices_add_each_other_by_one_text() {
    let world = world();
    let (tablet, bundle) = device("tablet");
    let listed = [world.phone_bundle.clone(), world.laptop_bundle.clone()];
    let link = request((&tablet, &bundle), &listed)
        .link("https://gateway.example.org/")
        .unwrap();
    assert!(
        link.starts_with("https://gateway.example.org/#/device/"),
        "{link}"
    );
    let read = EndorsementRequest::parse(&format!("  {link}\n")).unwrap();
    assert_eq!(read.bundle(), &bundle);
    assert_eq!(read.at(), now());
    assert_eq!(
        EndorsementRequest::parse(&read.to_text().unwrap()).unwrap(),
        read
    );
    for (keys, own) in [
        (&world.phone, &world.phone_bundle),
        (&world.laptop, &world.laptop_bundle),
    ] {
        let statements = read.endorse(&tenant(), &alice(), (keys, own)).unwrap();
        // An enforcer that knows the old device learns of the new one, and the other way round.
        let known_old = vec![own.clone()];
        let mut trust = DeviceTrust::from_own_records(tenant(), alice(), known_old, [].into());
        assert_eq!(
            trust.follow(&statements[0]).unwrap(),
            TrustUpdate::Added(tablet.id())
        );
        let known_new = vec![bundle.clone()];
        let mut trust = DeviceTrust::from_own_records(tenant(), alice(), known_new, [].into());
        assert_eq!(
            trust.follow(&statements[1]).unwrap(),
            TrustUpdate::Added(own.id())
        );
        assert_eq!(statements.len(), 2);
        assert!(
            statements
                .iter()
                .all(|signed| signed.statement().at() == now())
        );
    }
}

#[test]
fn a_device_that_was_shown_foreign_devices_publishes_nothing_about_them() {
    let world = world();
    let (tablet, bundle) = device("tablet");
    let (_, foreign) = device("foreign");
    // The gateway hides the phone and shows a device of its own.
    let lied_to = request((&tablet, &bundle), std::slice::from_ref(&foreign));
    let own = (&world.phone, &world.phone_bundle);
    assert_eq!(
        lied_to.endorse(&tenant(), &alice(), own).unwrap_err(),
        Error::NotAsked
    );
    // It shows the phone beside it: only what is about the phone is published.
    let mixed = request((&tablet, &bundle), &[foreign, world.phone_bundle.clone()]);
    let statements = mixed.endorse(&tenant(), &alice(), own).unwrap();
    let StatementChange::Add(back) = statements[1].statement().change() else {
        panic!("an addition");
    };
    assert_eq!(**back, world.phone_bundle);
    // It shows the phone under another name: the phone does not sign that.
    let renamed = DeviceBundle::of(&world.phone, DeviceName::parse("another").unwrap()).unwrap();
    let renamed = request((&tablet, &bundle), &[renamed]);
    let statements = renamed.endorse(&tenant(), &alice(), own).unwrap();
    assert_eq!(
        statements.len(),
        1,
        "the new device is added, and adds nobody"
    );
    assert_eq!(statements[0].statement().by(), world.phone.id());
}

#[test]
fn a_request_is_for_one_tenant_and_one_approver_and_another_device() {
    let world = world();
    let (tablet, bundle) = device("tablet");
    let listed = [world.phone_bundle.clone()];
    let own = (&world.phone, &world.phone_bundle);
    let asked = request((&tablet, &bundle), &listed);
    let (bob, other) = (
        ApproverId::parse("bob").unwrap(),
        TenantId::parse("other").unwrap(),
    );
    for (tenant, approver) in [(tenant(), bob), (other, alice())] {
        let refused = asked.endorse(&tenant, &approver, own).unwrap_err();
        assert_eq!(refused, Error::OtherApprover);
    }
    let laptop = (&world.laptop, &world.laptop_bundle);
    assert_eq!(
        asked.endorse(&tenant(), &alice(), laptop).unwrap_err(),
        Error::NotAsked
    );
    let itself = request(own, &listed);
    assert_eq!(
        itself.endorse(&tenant(), &alice(), own).unwrap_err(),
        Error::NotAsked
    );
}

#[test]
fn keys_that_the_new_device_does_not_have_are_refused() {
    let world = world();
    let (tablet, bundle) = device("tablet");
    let asked = request(
        (&tablet, &bundle),
        std::slice::from_ref(&world.phone_bundle),
    );
    let (_, stolen) = device("stolen");
    let own = (&world.phone, &world.phone_bundle);
    for change in [
        json!({ "bundle": stolen.to_text().unwrap() }),
        json!({ "at": "2026-02-21T12:02:00Z" }),
    ] {
        let text = altered(&asked, |members| {
            let members = members.as_object_mut().unwrap();
            members.extend(change.as_object().unwrap().clone());
        });
        let read = EndorsementRequest::parse(&text).unwrap();
        let refused = read.endorse(&tenant(), &alice(), own).unwrap_err();
        assert_eq!(refused, Error::Possession);
    }
}

#[test]
fn what_is_no_request_is_refused() {
    let world = world();
    let (tablet, bundle) = device("tablet");
    let asked = request(
        (&tablet, &bundle),
        std::slice::from_ref(&world.phone_bundle),
    );
    let text = asked.to_text().unwrap();
    let spaced = URL_SAFE_NO_PAD.decode(&text).unwrap();
    let spaced = String::from_utf8(spaced).unwrap().replace(':', ": ");
    for (what, text) in [
        ("nothing", String::new()),
        (
            "another link",
            "https://gateway.example.org/#/pair/7K3M-9QRT/a/b".to_owned(),
        ),
        ("padding", format!("{text}=")),
        ("half of it", text[..text.len() / 2].to_owned()),
        ("white space", URL_SAFE_NO_PAD.encode(spaced)),
        ("another version", altered(&asked, |it| it["v"] = json!(2))),
        ("a further member", altered(&asked, |it| it["w"] = json!(1))),
        ("no time", altered(&asked, |it| it["at"] = json!("soon"))),
        ("no list", altered(&asked, |it| it["by"] = json!({}))),
        (
            "a further signature",
            altered(&asked, |it| it["by"][0]["w"] = json!(1)),
        ),
        (
            "a short signature",
            altered(&asked, |it| it["by"][0]["signature"] = json!("AA")),
        ),
        (
            "a long list",
            altered(&asked, |it| {
                it["by"] = json!(vec![it["by"][0].clone(); MAX_DEVICES + 1]);
            }),
        ),
    ] {
        assert!(EndorsementRequest::parse(&text).is_err(), "{what}");
    }
    let many: Vec<_> = (0..=MAX_DEVICES)
        .map(|place| {
            let mut random = known("many");
            random.drawn = vec![Vec::new(); place * 2];
            let keys = DeviceKeys::generate(&mut random).unwrap();
            DeviceBundle::of(&keys, DeviceName::parse("one").unwrap()).unwrap()
        })
        .collect();
    let new = (&tablet, &bundle);
    let refused = EndorsementRequest::new(&tenant(), &alice(), new, now(), &many).unwrap_err();
    assert_eq!(refused, Error::TooManyDevices { limit: MAX_DEVICES });
    let most = EndorsementRequest::new(&tenant(), &alice(), new, now(), &many[1..]).unwrap();
    EndorsementRequest::parse(&most.to_text().unwrap()).unwrap();
}
