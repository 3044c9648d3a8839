//! The lists of statements in `refused`, with their results for an enforcer that has pinned the
//! phone.

use super::people::{World, add, alice, device, now, revoke, tenant};
use super::texts::parsed;
use countersign_e2e::{
    DeviceBundle, DeviceKeys, DeviceStatement, DeviceTrust, SignedStatement, StatementChange,
    TrustedDevice,
};
use countersign_protocol::id::{ApproverId, TextId as _};
use serde_json::{Value, json};

/// A revocation that keeps these.
fn keeping(by: &DeviceKeys, gone: &DeviceKeys, keeps: &[&DeviceKeys]) -> SignedStatement {
    let keeps = keeps.iter().map(|keys| keys.id()).collect();
    let statement =
        DeviceStatement::revocation(&tenant(), &alice(), gone.id(), &keeps, now(), by.id())
            .unwrap();
    let signature = statement.sign(by).unwrap();
    SignedStatement::new(statement, signature, None)
}

/// Lists, with their results for an enforcer that has pinned the phone.
pub fn statements(world: &World) -> Value {
    let (phone, laptop, laptops) = (&world.phone, &world.laptop, &world.laptop_bundle);
    let [(tablet, tablets), (thief, thiefs)] = ["tablet", "thief"].map(device);
    let added = || add(phone, laptop, laptops);
    let elsewhere = |approver: &str| {
        let approver = ApproverId::parse(approver).unwrap();
        let change = StatementChange::Add(Box::new(laptops.clone()));
        let statement =
            DeviceStatement::new(&tenant(), &approver, &change, now(), phone.id()).unwrap();
        let (signature, possession) = (
            statement.sign(phone).unwrap(),
            statement.sign(laptop).unwrap(),
        );
        SignedStatement::new(statement, signature, Some(possession))
    };
    let unproven = {
        let change = StatementChange::Add(Box::new(laptops.clone()));
        let statement =
            DeviceStatement::new(&tenant(), &alice(), &change, now(), phone.id()).unwrap();
        let signature = statement.sign(phone).unwrap();
        SignedStatement::new(statement, signature, None)
    };
    let rows = [
        ("an addition", vec![added()]),
        (
            "an addition that stands before that of its signer",
            vec![add(laptop, &tablet, &tablets), added()],
        ),
        (
            "a revocation that stands before the addition",
            vec![revoke(phone, laptop), added()],
        ),
        (
            "an addition by a revoked device",
            vec![
                added(),
                revoke(phone, laptop),
                add(laptop, &tablet, &tablets),
            ],
        ),
        (
            "an addition again after the revocation",
            vec![added(), revoke(phone, laptop), added()],
        ),
        (
            "an addition by a device that none has added",
            vec![add(&thief, &tablet, &tablets)],
        ),
        (
            "a device that adds itself",
            vec![add(&thief, &thief, &thiefs)],
        ),
        (
            "an addition without the new device's signature",
            vec![unproven],
        ),
        ("an addition for another approver", vec![elsewhere("bob")]),
        (
            "a revocation by a device that none has added",
            vec![added(), revoke(&thief, laptop)],
        ),
        (
            "a device that a revoked one has added, kept",
            vec![
                added(),
                add(laptop, &tablet, &tablets),
                keeping(phone, laptop, &[phone, &tablet]),
            ],
        ),
        (
            "a device that a revoked one has added, and the revocation does not keep",
            vec![
                added(),
                add(laptop, &thief, &thiefs),
                keeping(phone, laptop, &[phone]),
            ],
        ),
        (
            "the same, by a device between that was revoked before",
            vec![
                added(),
                add(laptop, &tablet, &tablets),
                add(&tablet, &thief, &thiefs),
                revoke(&tablet, &tablet),
                keeping(phone, laptop, &[phone]),
            ],
        ),
        (
            "the same, though the revoked one revoked itself before",
            vec![
                added(),
                add(laptop, &thief, &thiefs),
                keeping(laptop, laptop, &[phone, &thief]),
                keeping(phone, laptop, &[phone]),
            ],
        ),
    ];
    let row = |(name, list): &(&str, Vec<SignedStatement>)| {
        let pinned: Vec<DeviceBundle> = vec![world.phone_bundle.clone()];
        let mut trust = DeviceTrust::from_own_records(
            tenant(),
            alice(),
            pinned,
            std::collections::BTreeSet::new(),
        );
        trust.follow_all(list);
        let in_force = trust.in_force().iter().map(TrustedDevice::id);
        let in_force: Vec<_> = in_force.map(|id| id.to_string()).collect();
        let revoked: Vec<_> = trust.revoked().iter().map(ToString::to_string).collect();
        let list: Vec<_> = list
            .iter()
            .map(|signed| parsed(&signed.to_text()))
            .collect();
        json!({ "name": name, "list": list, "inForce": in_force, "revoked": revoked })
    };
    rows.iter().map(row).collect()
}
