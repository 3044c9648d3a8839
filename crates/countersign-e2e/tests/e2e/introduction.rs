//! A device tells the others the key of an enforcer. Nothing counts but the signature of a device
//! in force of the same approver.

use countersign_e2e::{
    DeviceTrust, EncryptionKey, EnforcerKeys, Error, Introduction, IntroductionClaims,
    PinnedEnforcer, SignedIntroduction, SignedStatement,
};
use countersign_protocol::id::{ApproverId, TenantId, TextId as _};
use serde_json::{Value, json};

use super::people::{
    World, add, alice, bot, device, introduce, known, node, now, revoke, tenant, world,
};

fn parsed(text: &str) -> SignedIntroduction {
    SignedIntroduction::parse(&node(text)).unwrap()
}

fn altered(signed: &SignedIntroduction, change: impl FnOnce(&mut Value)) -> String {
    let mut value: Value = serde_json::from_str(&signed.to_text()).unwrap();
    change(&mut value);
    value.to_string()
}

fn other_key() -> EncryptionKey {
    let keys = EnforcerKeys::generate(&mut known("another enforcer")).unwrap();
    keys.encryption_key()
}

#[test]
fn a_device_in_force_introduces_an_enforcer_to_the_others() {
    let world = world();
    for by in [&world.phone, &world.laptop] {
        let signed = parsed(&introduce(&world, by).to_text());
        let introduction = signed.introduction();
        assert_eq!(
            signed.accept(&world.trust).unwrap(),
            &world.pinned_enforcer,
            "the key that was pinned at pairing"
        );
        assert_eq!(introduction.by(), by.id());
        assert_eq!(introduction.at(), now());
        assert_eq!(introduction.label(), Some("build machine"));
    }
    // In any spelling: the signature covers the canonical text.
    let text = introduce(&world, &world.phone).to_text();
    let odd = text
        .replace(':', " : ")
        .replace("\"alice\"", "\"\\u0061lice\"");
    let odd = odd.replace("12 : 01 : 00Z", "12:01:00Z");
    parsed(&odd).accept(&world.trust).unwrap();
}

#[test]
fn a_device_that_is_unknown_or_revoked_introduces_nothing() {
    let world = world();
    let (tablet, tablet_bundle) = device("tablet");
    let by_tablet = introduce(&world, &tablet);
    let unknown = Error::UnknownDevice(tablet.id());
    assert_eq!(by_tablet.accept(&world.trust).unwrap_err(), unknown);
    let mut trust = world.trust.clone();
    let added = add(&world.phone, &tablet, &tablet_bundle);
    trust.follow(&added).unwrap();
    by_tablet.accept(&trust).unwrap();
    trust.follow(&revoke(&world.laptop, &tablet)).unwrap();
    let revoked = Error::RevokedDevice(tablet.id());
    assert_eq!(by_tablet.accept(&trust).unwrap_err(), revoked);
    introduce(&world, &world.phone).accept(&trust).unwrap();
}

#[test]
fn another_tenant_or_approver_learns_nothing_from_it() {
    let world = world();
    let signed = introduce(&world, &world.phone);
    let own = vec![world.phone_bundle.clone()];
    let (bob, other) = (
        ApproverId::parse("bob").unwrap(),
        TenantId::parse("other").unwrap(),
    );
    for (tenant, approver) in [(tenant(), bob), (other, alice())] {
        let trust = DeviceTrust::from_own_records(tenant, approver, own.clone(), [].into());
        assert_eq!(signed.accept(&trust).unwrap_err(), Error::OtherApprover);
    }
}

#[test]
fn no_member_can_be_changed_added_or_left_out() {
    let World { trust, phone, .. } = &world();
    let signed = introduce(&world(), phone);
    let laptop = device("laptop").0.id().to_string();
    let key = other_key().to_text();
    for (name, value) in [
        ("enforcerId", json!("another-bot")),
        ("x25519", json!(key)),
        ("label", json!("another machine")),
        ("at", json!("2026-02-21T12:02:00Z")),
        ("by", json!(laptop)),
    ] {
        let text = altered(&signed, |value_of| value_of["statement"][name] = value);
        let refused = parsed(&text).accept(trust).unwrap_err();
        assert_eq!(refused, Error::StatementSignature, "{name}");
    }
    for name in ["tenantId", "approverId"] {
        let text = altered(&signed, |value| value["statement"][name] = json!("other"));
        let refused = parsed(&text).accept(trust).unwrap_err();
        assert_eq!(refused, Error::OtherApprover, "{name}");
    }
    let unlabelled = altered(&signed, |value| {
        let statement = value["statement"].as_object_mut().unwrap();
        statement.remove("label").unwrap();
    });
    let refused = parsed(&unlabelled).accept(trust).unwrap_err();
    assert_eq!(refused, Error::StatementSignature);
    for name in [
        "v",
        "statement",
        "tenantId",
        "approverId",
        "enforcerId",
        "x25519",
        "at",
        "by",
    ] {
        let text = altered(&signed, |value| {
            let statement = value["statement"].as_object_mut().unwrap();
            statement.remove(name).unwrap();
        });
        assert!(SignedIntroduction::parse(&node(&text)).is_err(), "{name}");
    }
    for change in [
        json!({ "v": 2 }),
        json!({ "statement": "device.add" }),
        json!({ "statement": "enforcer.forget" }),
        json!({ "more": 1 }),
        json!({ "x25519": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" }),
        json!({ "x25519": "short" }),
        json!({ "label": "" }),
        json!({ "label": "run\u{202e}txt" }),
        json!({ "label": "x".repeat(257) }),
        json!({ "at": "yesterday" }),
        json!({ "by": "nobody" }),
        json!({ "enforcerId": "" }),
    ] {
        let text = altered(&signed, |value| {
            let statement = value["statement"].as_object_mut().unwrap();
            statement.extend(change.as_object().unwrap().clone());
        });
        assert!(SignedIntroduction::parse(&node(&text)).is_err(), "{change}");
    }
    let more = altered(&signed, |value| value["possession"] = json!("x"));
    assert!(SignedIntroduction::parse(&node(&more)).is_err());
}

#[test]
fn a_statement_about_a_device_is_no_introduction_nor_the_other_way_round() {
    let world = world();
    let (tablet, bundle) = device("tablet");
    let statement = add(&world.phone, &tablet, &bundle).to_text();
    let introduction = introduce(&world, &world.phone).to_text();
    assert!(SignedIntroduction::parse(&node(&statement)).is_err());
    assert!(SignedStatement::parse(&node(&introduction)).is_err());
}

#[test]
fn a_label_that_may_not_be_shown_is_left_out() {
    let world = world();
    let key = *world.pinned_enforcer.encryption_key();
    let enforcer = PinnedEnforcer::from_own_records(bot(), key);
    let long = "x".repeat(257);
    for label in ["", " ", "a\u{1b}[2Jb", "a\u{200b}b", &long] {
        let about = (&enforcer, Some(label));
        let made = Introduction::new(
            &tenant(),
            &alice(),
            about,
            &IntroductionClaims::default(),
            now(),
            world.phone.id(),
        );
        assert_eq!(made.unwrap().label(), None, "{label:?}");
    }
}
