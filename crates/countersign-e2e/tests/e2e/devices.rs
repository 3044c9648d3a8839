//! Only a device in force adds or revokes a device, and nobody undoes a revocation.

use std::collections::BTreeSet;

use countersign_e2e::{
    DeviceKeys, DeviceStatement, DeviceTrust, Error, MAX_DEVICES, SignedStatement, StatementChange,
    TrustUpdate, TrustedDevice,
};
use countersign_protocol::id::{ApproverId, TenantId, TextId as _};

use super::people::{World, add, alice, device, node, now, paired, revoke, tenant, world};

/// A statement that `signer` makes in the name of `by`.
fn forged(signer: &DeviceKeys, by: &DeviceKeys, change: &StatementChange) -> SignedStatement {
    let statement = DeviceStatement::new(&tenant(), &alice(), change, now(), by.id()).unwrap();
    let signature = statement.sign(signer).unwrap();
    let possession = statement.sign(signer).unwrap();
    SignedStatement::new(statement, signature, Some(possession))
}

fn unchanged(world: &World, signed: &SignedStatement) -> Error {
    let mut trust = world.trust.clone();
    let refused = trust.follow(signed).unwrap_err();
    assert_eq!(trust, world.trust, "a refused statement changes nothing");
    refused
}

#[test]
fn a_device_added_by_one_in_force_is_in_force() {
    let mut world = world();
    let (tablet, bundle) = device("tablet");
    let added = add(&world.laptop, &tablet, &bundle);
    assert_eq!(
        world.trust.follow(&added).unwrap(),
        TrustUpdate::Added(tablet.id())
    );
    let again = SignedStatement::parse(&node(&added.to_text())).unwrap();
    assert_eq!(again, added);
    assert_eq!(
        world.trust.follow(&again).unwrap(),
        TrustUpdate::Known(tablet.id())
    );
    let ids: Vec<_> = world
        .trust
        .in_force()
        .iter()
        .map(TrustedDevice::id)
        .collect();
    assert_eq!(ids, [world.phone.id(), world.laptop.id(), tablet.id()]);
}

#[test]
fn a_device_that_nobody_endorsed_is_refused() {
    let world = world();
    let (stranger, bundle) = device("stranger");
    let change = StatementChange::Add(Box::new(bundle.clone()));
    let own = add(&stranger, &stranger, &bundle);
    assert_eq!(unchanged(&world, &own), Error::UnknownDevice(stranger.id()));
    let impostor = forged(&stranger, &world.phone, &change);
    assert_eq!(unchanged(&world, &impostor), Error::StatementSignature);
    let revoking = forged(
        &stranger,
        &world.laptop,
        &StatementChange::Revoke(world.phone.id()),
    );
    assert_eq!(unchanged(&world, &revoking), Error::StatementSignature);
    let mut trust = world.trust.clone();
    assert_eq!(
        trust.register_first(&own).unwrap_err(),
        Error::NotFirstDevice
    );
}

#[test]
fn a_device_is_not_added_without_its_own_signature() {
    let world = world();
    let (tablet, bundle) = device("tablet");
    let whole = add(&world.phone, &tablet, &bundle);
    let statement = whole.statement();
    let signature = statement.sign(&world.phone).unwrap();
    let by_another = statement.sign(&world.laptop).unwrap();
    for possession in [None, Some(signature), Some(by_another)] {
        let signed = SignedStatement::new(statement.clone(), signature, possession);
        assert_eq!(unchanged(&world, &signed), Error::Possession);
    }
}

#[test]
fn a_statement_is_for_one_tenant_and_one_approver() {
    let world = world();
    let (tablet, bundle) = device("tablet");
    let (bob, other) = (ApproverId::parse("bob"), TenantId::parse("other"));
    for (tenant, approver) in [(tenant(), bob.unwrap()), (other.unwrap(), alice())] {
        let (by, change) = (&world.phone, StatementChange::Add(Box::new(bundle.clone())));
        let statement = DeviceStatement::new(&tenant, &approver, &change, now(), by.id()).unwrap();
        let signature = statement.sign(by).unwrap();
        let possession = statement.sign(&tablet).unwrap();
        let signed = SignedStatement::new(statement, signature, Some(possession));
        assert_eq!(unchanged(&world, &signed), Error::OtherApprover);
    }
}

#[test]
fn a_revoked_device_never_returns_and_says_nothing_more() {
    let mut world = world();
    let (tablet, tablet_bundle) = device("tablet");
    let first = add(&world.phone, &world.laptop, &world.laptop_bundle);
    let gone = revoke(&world.phone, &world.laptop);
    let id = world.laptop.id();
    assert_eq!(world.trust.follow(&gone).unwrap(), TrustUpdate::Revoked(id));
    assert_eq!(
        world.trust.device(id).unwrap_err(),
        Error::RevokedDevice(id)
    );
    assert_eq!(world.trust.follow(&gone).unwrap(), TrustUpdate::Known(id));
    let late = add(&world.laptop, &tablet, &tablet_bundle);
    let revenge = revoke(&world.laptop, &world.phone);
    for (what, replayed) in [("first", &first), ("late", &late), ("revenge", &revenge)] {
        let refused = unchanged(&world, replayed);
        assert_eq!(refused, Error::RevokedDevice(id), "{what}");
    }
    // A list that is read again from its beginning ends where it ended.
    let list = [first, gone, late];
    let refused = world.trust.follow_all(&list);
    assert_eq!(
        refused.iter().map(|(place, _)| *place).collect::<Vec<_>>(),
        [0, 2]
    );
    assert_eq!(world.trust.in_force().len(), 1);
}

#[test]
fn a_list_leads_on_to_what_stands_before_the_statement_that_makes_its_signer_known() {
    let world = world();
    let (tablet, tablet_bundle) = device("tablet");
    let (stolen, stolen_bundle) = device("stolen");
    let (foreign, foreign_bundle) = device("foreign");
    // The order in which it happened. An enforcer that begins with the tablet knows the phone only
    // by the last one.
    let list = [
        add(&world.phone, &world.laptop, &world.laptop_bundle),
        add(&world.laptop, &stolen, &stolen_bundle),
        revoke(&world.phone, &stolen),
        add(&stolen, &foreign, &foreign_bundle),
        add(&world.phone, &tablet, &tablet_bundle),
        add(&tablet, &world.phone, &world.phone_bundle),
    ];
    let own = vec![tablet_bundle];
    let mut trust = DeviceTrust::from_own_records(tenant(), alice(), own, [].into());
    let refused = trust.follow_all(&list);
    assert_eq!(refused, [(3, Error::RevokedDevice(stolen.id()))]);
    let known: Vec<_> = trust.in_force().iter().map(TrustedDevice::id).collect();
    assert_eq!(known, [tablet.id(), world.phone.id(), world.laptop.id()]);
    let before = trust.clone();
    trust.follow_all(&list);
    assert_eq!(trust, before, "nothing more, however often");
}

#[test]
fn a_device_may_be_revoked_before_its_addition_arrives() {
    let mut world = world();
    let (tablet, bundle) = device("tablet");
    world.trust.follow(&revoke(&world.phone, &tablet)).unwrap();
    let refused = unchanged(&world, &add(&world.laptop, &tablet, &bundle));
    assert_eq!(refused, Error::RevokedDevice(tablet.id()));
}

#[test]
fn stored_state_has_no_device_that_is_both_in_force_and_revoked() {
    let world = world();
    let bundles = vec![world.phone_bundle.clone(), world.laptop_bundle.clone()];
    let revoked = BTreeSet::from([world.laptop.id()]);
    let trust = DeviceTrust::from_own_records(tenant(), alice(), bundles, revoked);
    assert_eq!(trust.in_force().len(), 1);
    assert!(trust.device(world.laptop.id()).is_err());
}

#[test]
fn the_first_device_vouches_for_itself_once() {
    let (phone, bundle) = device("phone");
    let (laptop, laptop_bundle) = device("laptop");
    let mut trust = DeviceTrust::without_devices(tenant(), alice());
    let first = add(&phone, &phone, &bundle);
    assert!(
        trust.follow(&first).is_err(),
        "following is not registering"
    );
    let lent = forged(
        &laptop,
        &phone,
        &StatementChange::Add(Box::new(bundle.clone())),
    );
    assert_eq!(
        trust.register_first(&lent).unwrap_err(),
        Error::StatementSignature
    );
    let for_another = add(&phone, &laptop, &laptop_bundle);
    assert_eq!(
        trust.register_first(&for_another).unwrap_err(),
        Error::NotFirstDevice
    );
    assert_eq!(
        trust.register_first(&first).unwrap(),
        TrustUpdate::Added(phone.id())
    );
    let second = add(&laptop, &laptop, &laptop_bundle);
    assert_eq!(
        trust.register_first(&second).unwrap_err(),
        Error::NotFirstDevice
    );
    // Nor after the last one was revoked: a stolen credential must not start afresh.
    trust.follow(&revoke(&phone, &phone)).unwrap();
    assert!(trust.in_force().is_empty());
    assert_eq!(
        trust.register_first(&second).unwrap_err(),
        Error::NotFirstDevice
    );
}

#[test]
fn devices_are_limited_in_number() {
    let names: Vec<&'static str> = (0..MAX_DEVICES)
        .map(|place| &*format!("device {place}").leak())
        .collect();
    let (keys, first) = device(names[0]);
    let bundles = names.iter().map(|name| device(name).1).collect();
    let mut trust = DeviceTrust::from_own_records(tenant(), alice(), bundles, BTreeSet::new());
    let (late, bundle) = device("late");
    let refused = trust.follow(&add(&keys, &late, &bundle)).unwrap_err();
    assert_eq!(refused, Error::TooManyDevices { limit: MAX_DEVICES });
    assert_eq!(trust.device(first.id()).unwrap().id(), keys.id());
}

/// A revocation that says what stays in force.
fn revoke_keeping(by: &DeviceKeys, gone: &DeviceKeys, keeps: &[&DeviceKeys]) -> SignedStatement {
    let keeps = keeps.iter().map(|keys| keys.id()).collect();
    let statement =
        DeviceStatement::revocation(&tenant(), &alice(), gone.id(), &keeps, now(), by.id())
            .unwrap();
    let signature = statement.sign(by).unwrap();
    SignedStatement::new(statement, signature, None)
}

#[test]
fn what_a_revoked_device_added_goes_with_it_unless_it_is_kept() {
    let world = world();
    let (phone, stolen) = (&world.phone, &world.laptop);
    let [
        (good, goods),
        (thief, thiefs),
        (friend, friends),
        (child, childs),
    ] = ["good", "thief", "friend", "child"].map(device);
    let added = [
        add(stolen, &good, &goods),
        add(stolen, &thief, &thiefs),
        add(&thief, &friend, &friends),
        add(&good, &child, &childs),
    ];
    let revocation = revoke_keeping(phone, stolen, &[phone, &good]);
    // A thief of the keys can revoke the device first, to keep its additions.
    let first = [
        vec![],
        vec![revoke(stolen, stolen)],
        // Or one between, to hide what that has added.
        vec![revoke(&thief, &thief)],
        vec![revoke(stolen, &thief)],
        vec![revoke_keeping(
            stolen,
            stolen,
            &[phone, &good, &thief, &friend],
        )],
    ];
    for first in first {
        let list = || added.iter().chain(&first);
        let mut trust = world.trust.clone();
        trust.follow_all(list());
        // Kept across a restart.
        let in_force = trust.in_force().iter().map(|it| it.bundle().clone());
        let mut trust = DeviceTrust::from_own_records(
            tenant(),
            alice(),
            in_force.collect(),
            trust.revoked().clone(),
        )
        .with_adders(trust.adders().clone());
        assert!(trust.device(friend.id()).is_ok());
        assert_eq!(
            trust.added_by(stolen.id()),
            [&good, &thief, &friend, &child]
                .map(DeviceKeys::id)
                .into_iter()
                .filter(|id| trust.device(*id).is_ok())
                .collect()
        );
        for _ in 0..2 {
            trust.follow_all(list().chain([&revocation]));
            let ids: BTreeSet<_> = trust.in_force().iter().map(TrustedDevice::id).collect();
            assert_eq!(ids, BTreeSet::from([phone.id(), good.id(), child.id()]));
            let gone = BTreeSet::from([stolen.id(), thief.id(), friend.id()]);
            assert_eq!(*trust.revoked(), gone);
        }
    }
    // Nobody but a device in force drops anything.
    let mut trust = world.trust.clone();
    trust.follow_all(&added);
    let before = trust.clone();
    let (stranger, _) = device("stranger");
    let forgery = revoke_keeping(&stranger, stolen, &[phone]);
    assert!(trust.follow(&forgery).is_err());
    assert_eq!(trust, before);
}

#[test]
fn a_pinned_device_stays_when_its_adder_is_revoked() {
    let mut world = world();
    let (tablet, bundle) = device("tablet");
    world
        .trust
        .follow(&add(&world.laptop, &tablet, &bundle))
        .unwrap();
    let (pinned, _) = paired(&world.enforcer, &bundle);
    world.trust.pin(&pinned).unwrap();
    let revocation = revoke_keeping(&world.phone, &world.laptop, &[&world.phone]);
    world.trust.follow(&revocation).unwrap();
    assert!(world.trust.device(tablet.id()).is_ok());
}

#[test]
fn what_is_kept_has_one_spelling() {
    let world = world();
    let signed = revoke_keeping(&world.phone, &world.laptop, &[&world.phone, &world.laptop]);
    let good: serde_json::Value = serde_json::from_str(&signed.to_text()).unwrap();
    let with = |keeps: serde_json::Value| {
        let mut text = good.clone();
        text["statement"]["keeps"] = keeps;
        SignedStatement::parse(&node(&text.to_string()))
    };
    let list = good["statement"]["keeps"].as_array().unwrap().clone();
    assert_eq!(list.len(), 2);
    with(list.clone().into()).unwrap();
    with(serde_json::json!([])).unwrap();
    let ids = (0..33_u8).map(|number| {
        let id = [number; 16];
        base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, id)
    });
    let many: BTreeSet<_> = ids.collect();
    for bad in [
        serde_json::json!([list[1], list[0]]),
        serde_json::json!([list[0], list[0]]),
        serde_json::json!(["short"]),
        serde_json::json!([1]),
        serde_json::json!("x"),
        serde_json::json!(null),
        many.into_iter().collect(),
    ] {
        let refused = with(bad.clone()).unwrap_err();
        assert!(
            matches!(refused, Error::Member { .. }),
            "{bad}: {refused:?}"
        );
    }
}
