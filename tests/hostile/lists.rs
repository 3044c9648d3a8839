//! Lists of devices that are invented, reordered, shortened or repeated. With any of them, the
//! gateway's own device decides nothing, nor does one that was revoked.

use countersign::e2e::{DeviceStatement, SignedStatement, StatementChange};
use countersign::protocol::id::{TenantId, TextId as _};
use countersign::protocol::timestamp::Timestamp;
use serde_json::{Value, json};

use super::meddler::{Lie, Route};
use super::scene::{Case, HostileScene, REVOKED, UNKNOWN, approve_as};
use crate::support::devices::{Device, Owner};
use crate::support::now;

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The list has these statements, and `signer` approves.
fn listing(statements: Vec<Value>, signer: &Device) -> Lie {
    Lie::default()
        .reply(Route::Devices, move |reply| {
            reply.edit(|list| list["statements"] = json!(statements.clone()));
        })
        .body(approve_as(&signer.keys))
}

#[tokio::test(flavor = "multi_thread")]
async fn no_list_brings_a_device_into_force_that_none_in_force_has_added() {
    let scene = HostileScene::start().await;
    let (owner, laptop, mallory) = (&scene.owner, &scene.laptop, &scene.mallory);
    let (phone, tablet) = (Device::new("phone"), Device::new("tablet"));
    let first = value(&owner.add(laptop, laptop));
    let own = value(&owner.add(mallory, mallory));
    // A statement that the laptop could really have signed, to see that only the alteration is
    // refused.
    let endorsed = value(&owner.add(laptop, mallory));
    let edited = |change: fn(&mut Value)| {
        let mut statement = endorsed.clone();
        change(&mut statement);
        vec![first.clone(), statement]
    };
    let flip = |statement: &mut Value, name: &str| {
        let text = statement[name].as_str().unwrap().to_owned();
        let first = if text.starts_with('A') { "B" } else { "A" };
        statement[name] = format!("{first}{}", &text[1..]).into();
    };
    let mut forged = endorsed.clone();
    flip(&mut forged, "signature");
    let mut stolen = endorsed.clone();
    flip(&mut stolen, "possession");
    let mut swapped = value(&owner.add(laptop, &tablet));
    swapped["statement"]["bundle"] = mallory.bundle.to_text().unwrap().into();
    let claimed = {
        let change = StatementChange::Add(Box::new(mallory.bundle.clone()));
        let (at, by) = (Timestamp::parse(&now()).unwrap(), laptop.keys.id());
        let statement =
            DeviceStatement::new(&owner.tenant, &owner.approver, &change, at, by).unwrap();
        let signature = statement.sign(&mallory.keys).unwrap();
        value(&SignedStatement::new(statement, signature, Some(signature)).to_text())
    };
    let other_tenant = TenantId::parse("another").unwrap();
    let elsewhere = value(&Owner::new(&other_tenant, "alice").add(laptop, mallory));
    let for_bob = value(&Owner::new(&owner.tenant, "bob").add(laptop, mallory));
    let by_phone = value(&owner.add(&phone, mallory));
    let add_phone = value(&owner.add(laptop, &phone));
    let revoke_phone = value(&owner.revoke(laptop, phone.keys.id()));
    let revoke_own = value(&owner.revoke(laptop, mallory.keys.id()));
    let by_mallory = value(&owner.revoke(mallory, laptop.keys.id()));
    let cases = vec![
        ("its own first device", vec![own.clone()], UNKNOWN),
        (
            "its own device, after the first",
            vec![first.clone(), own.clone()],
            UNKNOWN,
        ),
        (
            "its own device, before the first",
            vec![own.clone(), first.clone()],
            UNKNOWN,
        ),
        ("nothing", vec![], UNKNOWN),
        (
            "its own device that revokes the laptop",
            vec![own.clone(), by_mallory],
            UNKNOWN,
        ),
        (
            "a signature that is wrong",
            vec![first.clone(), forged],
            UNKNOWN,
        ),
        (
            "its own signature, in the laptop's name",
            vec![first.clone(), claimed],
            UNKNOWN,
        ),
        ("another bundle", vec![first.clone(), swapped], UNKNOWN),
        (
            "a possession that is wrong",
            vec![first.clone(), stolen],
            UNKNOWN,
        ),
        (
            "no possession",
            edited(|it| drop(it.as_object_mut().unwrap().remove("possession"))),
            UNKNOWN,
        ),
        (
            "one member more",
            edited(|it| it["statement"]["x"] = json!(1)),
            UNKNOWN,
        ),
        (
            "another version",
            edited(|it| it["statement"]["v"] = json!(2)),
            UNKNOWN,
        ),
        (
            "another time",
            edited(|it| it["statement"]["at"] = json!("2020-01-01T00:00:00Z")),
            UNKNOWN,
        ),
        ("of another tenant", vec![first.clone(), elsewhere], UNKNOWN),
        ("of another approver", vec![first.clone(), for_bob], UNKNOWN),
        (
            "by a device that is not known",
            vec![first.clone(), by_phone.clone()],
            UNKNOWN,
        ),
        (
            "by a device that is added later and revoked",
            vec![
                first.clone(),
                by_phone.clone(),
                add_phone.clone(),
                revoke_phone.clone(),
            ],
            UNKNOWN,
        ),
        (
            "by a device that was revoked before",
            vec![first.clone(), add_phone.clone(), revoke_phone, by_phone],
            UNKNOWN,
        ),
        (
            "revoked before it was added",
            vec![first.clone(), revoke_own.clone(), endorsed.clone()],
            REVOKED,
        ),
        (
            "added again after it was revoked",
            vec![
                first.clone(),
                endorsed.clone(),
                revoke_own,
                endorsed.clone(),
            ],
            REVOKED,
        ),
        (
            "nonsense between",
            vec![json!(7), json!(null), json!({}), own.clone()],
            UNKNOWN,
        ),
    ];
    let cases = cases
        .into_iter()
        .map(|(what, list, cause)| Case::rejected(what, listing(list, mallory), cause));
    scene.all_denied(cases).await;

    let lie = listing(vec![own.clone(), first.clone()], mallory);
    scene
        .program_denied(Case::rejected("its own device", lie, UNKNOWN))
        .await;
    // The same statement as it should be: then the device counts. It is the alteration that was
    // refused above.
    scene.lie(listing(vec![first, endorsed], mallory));
    let accepted = scene.ask_with(
        scene.enforcer(),
        std::time::Duration::from_secs(60),
        async |id| {
            let says =
                crate::client::people::choice(countersign::protocol::decision::Verdict::Reject);
            scene.decide(&id, &says).await;
        },
    );
    let approval = accepted.await.unwrap().approval;
    assert_eq!(approval.device, mallory.keys.id());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rest_of_a_list_is_not_believed() {
    let scene = HostileScene::start().await;
    let (owner, mallory) = (&scene.owner, &scene.mallory);
    let line = json!({
        "deviceId": mallory.id(), "name": "laptop", "bundle": mallory.bundle.to_text().unwrap(),
        "addedAt": now(), "addedBy": scene.laptop.id(),
    });
    let shown = Lie::default()
        .reply(Route::Devices, move |reply| {
            reply.edit(|list| {
                list["devices"]
                    .as_array_mut()
                    .unwrap()
                    .insert(0, line.clone());
            });
        })
        .body(approve_as(&mallory.keys));
    let own = value(&owner.add(mallory, mallory));
    let elsewhere = Lie::default()
        .reply(Route::Devices, move |reply| {
            reply.edit(|list| {
                list["trusted"] = json!([own.clone()]);
                list["approverId"] = "mallory".into();
            });
        })
        .body(approve_as(&mallory.keys));
    let cases = [
        Case::rejected("a line without a statement", shown, UNKNOWN),
        Case::rejected("another member", elsewhere, UNKNOWN),
    ];
    scene.all_denied(cases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_that_is_known_stays_and_one_that_is_withheld_lets_nobody_else_in() {
    let mut scene = HostileScene::start().await;
    let phone = Device::new("phone");
    let first = value(&scene.owner.add(&scene.laptop, &scene.laptop));
    let added = value(&scene.owner.add(&scene.laptop, &phone));
    let by_phone = value(&scene.owner.add(&phone, &scene.mallory));
    // The enforcer has heard of the revocation. Then the gateway takes it back.
    let id = phone.id();
    scene.remember(|record| record.revoked.push(id));
    let old = vec![first.clone(), added.clone()];
    let bundle = phone.bundle.to_text().unwrap();
    let cases = [
        Case::rejected("the list from before", listing(old, &phone), REVOKED),
        Case::rejected(
            "a device that the revoked one adds",
            listing(vec![first.clone(), added.clone(), by_phone], &scene.mallory),
            UNKNOWN,
        ),
        Case::rejected(
            "the revoked one revokes the laptop",
            Lie::default().reply(Route::Devices, {
                let change = StatementChange::Revoke(scene.laptop.keys.id());
                let text = scene.owner.signed(&change, &phone, None, &now()).to_text();
                move |reply| reply.edit(|list| list["statements"] = json!([value(&text)]))
            }),
            "alice rejected it",
        ),
    ];
    scene.all_denied(cases).await;
    // Also if the profile itself still has its keys.
    scene.remember(|record| record.devices.push(bundle));
    let case = Case::rejected(
        "keys that are still there",
        listing(vec![first.clone()], &phone),
        REVOKED,
    );
    scene.all_denied([case]).await;
    // Nothing is known of the revocation: the gateway can withhold it. That brings in nobody else.
    scene.remember(|record| record.revoked.clear());
    let case = Case::rejected(
        "withheld",
        listing(vec![first, added], &scene.mallory),
        UNKNOWN,
    );
    scene.all_denied([case]).await;
}
