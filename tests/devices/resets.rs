//! The way out for somebody who lost every device.

use std::time::Duration;

use serde_json::json;

use super::{DeviceScene, ids};
use crate::support::database::Database;
use crate::support::devices::{Device, Owner};
use crate::support::process::{countersign, run};

#[tokio::test(flavor = "multi_thread")]
async fn after_a_reset_the_next_device_is_the_first_and_no_enforcer_trusts_it_yet() {
    let scene = DeviceScene::new(2).await;
    let (owner, client) = (&scene.owner, &scene.alice.client);
    scene
        .admin
        .delete(&owner.path())
        .await
        .refused(404, "NOT_FOUND");
    let phone = Device::new("phone");
    let first = owner.add(&phone, &phone);
    scene.post(&first).await.expect(201);
    let laptop = owner.another(client, &phone, "laptop").await;
    let gone = owner.revoke(&phone, laptop.keys.id());
    owner.delete(client, &laptop.id(), &gone).await.expect(200);
    let gone = owner.revoke(&phone, phone.keys.id());
    owner.delete(client, &phone.id(), &gone).await.expect(200);
    let tablet = Device::new("tablet");
    let next = owner.add(&tablet, &tablet);
    // All revoked by themselves: not the first again.
    let answer = scene.post(&next).await;
    answer.refused_at(403, "FORBIDDEN", "/statement/by");
    for _ in 0..2 {
        assert_eq!(scene.admin.delete(&owner.path()).await.expect(204).text, "");
    }
    // A removed device does not come back, in any way.
    scene.post(&first).await.expect(200);
    let answer = scene.post(&owner.add(&phone, &phone)).await;
    answer.refused(403, "KEY_REVOKED");
    let answer = scene.post(&owner.add(&phone, &tablet)).await;
    answer.refused(403, "KEY_REVOKED");
    scene.post(&next).await.expect(201);
    let list = scene.list().await;
    assert_eq!(list["statements"].as_array().unwrap().len(), 5);
    assert_eq!(list["devices"][2]["deviceId"], tablet.id());
    assert!(list["devices"][2].get("revokedAt").is_none());
    // And only one is.
    let other = Device::new("other");
    let answer = scene.post(&owner.add(&other, &other)).await;
    answer.refused_at(403, "FORBIDDEN", "/statement/by");
    for pinned in [&phone, &laptop] {
        assert!(!scene.trusted_from(pinned).await.contains(&tablet.id()));
    }
    assert_eq!(scene.trusted_from(&tablet).await, ids(&[&tablet]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_ends_every_device_and_no_other_key() {
    let scene = DeviceScene::new(1).await;
    let (owner, client) = (&scene.owner, &scene.alice.client);
    let phone = owner.first(client, "phone").await;
    owner.another(client, &phone, "laptop").await;
    let imported =
        json!({ "publicKey": crate::support::public_key(&crate::support::signing_key(1)) });
    let path = "/platform/v1/approvers/alice/keys/imported";
    scene.admin.put(path, &imported).await.expect(200);
    let bob = scene.cluster.approver("bob").await.client;
    let his = Owner::new(&owner.tenant, "bob");
    his.first(&bob, "phone").await;
    scene.admin.delete(&owner.path()).await.expect(204);
    let devices = scene.list().await["devices"].clone();
    for device in devices.as_array().unwrap() {
        assert!(device["revokedAt"].is_string() && device.get("revokedBy").is_none());
    }
    let answer = scene.post(&owner.add(&phone, &Device::new("new"))).await;
    answer.refused_at(403, "KEY_REVOKED", "/statement/by");
    let left =
        "select string_agg(approver_id || ' ' || length(signer_key_id), ',' order by approver_id)
                  from signing_keys where revoked_at is null";
    assert_eq!(scene.cluster.database.text(left).await, "alice 8,bob 22");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_bounded_and_a_full_one_protects_no_device() {
    let scene = DeviceScene::new(1).await;
    let (owner, client) = (&scene.owner, &scene.alice.client);
    let phone = owner.first(client, "phone").await;
    let stolen = owner.another(client, &phone, "stolen").await;
    // As if they had been accepted one after the other.
    let fill = format!(
        "insert into device_statements (tenant_id, approver_id, position, change, accepted_at, device_id, by_device,
                                        statement_hash, signed)
         select tenant_id, approver_id, n, 'revoke', clock_timestamp(), lpad(n::text, 21, 'A') || 'A', '{}', 'x', '{{}}'
           from device_statements, generate_series(3, 256) n where position = 1",
        phone.id()
    );
    scene.cluster.database.run(&fill).await;
    let new = Device::new("new");
    let full = |answer: crate::support::Answer| {
        let answer = answer.refused(422, "TOO_LARGE");
        assert_eq!(answer.detail("limit"), 256);
    };
    full(scene.post(&owner.add(&phone, &new)).await);
    full(scene.post(&owner.add(&stolen, &phone)).await);
    let unknown = owner.revoke(&stolen, new.keys.id());
    full(owner.delete(client, &new.id(), &unknown).await);
    let gone = owner.revoke(&phone, stolen.keys.id());
    owner.delete(client, &stolen.id(), &gone).await.expect(200);
    scene.admin.delete(&owner.path()).await.expect(204);
    scene.post(&owner.add(&new, &new)).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn at_most_thirty_two_devices_are_in_force() {
    let scene = DeviceScene::new(1).await;
    let (owner, client) = (&scene.owner, &scene.alice.client);
    let phone = owner.first(client, "phone").await;
    let mut last = None;
    for n in 1..32 {
        last = Some(owner.another(client, &phone, &format!("device {n}")).await);
    }
    let new = Device::new("one too many");
    let add = owner.add(&phone, &new);
    let answer = scene.post(&add).await;
    let answer = answer.refused_at(422, "TOO_LARGE", "/statement/bundle");
    assert_eq!(answer.detail("limit"), 32);
    let last = last.unwrap();
    scene.post(&owner.add(&last, &phone)).await.expect(200);
    let gone = owner.revoke(&phone, last.keys.id());
    owner.delete(client, &last.id(), &gone).await.expect(200);
    scene.post(&add).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_edits_in_the_database_makes_no_enforcer_trust_a_device() {
    let scene = DeviceScene::new(1).await;
    let (owner, client, database) = (&scene.owner, &scene.alice.client, &scene.cluster.database);
    let phone = owner.first(client, "phone").await;
    let laptop = owner.another(client, &phone, "laptop").await;
    // A device of somebody else in place of the laptop, in every column.
    let forged = Device::new("forged");
    let text = owner.add(&forged, &forged);
    let sql = format!(
        "update device_statements set signed = '{text}', device_id = '{0}', by_device = '{1}', bundle = '{2}' where position = 2;
         update signing_keys set signer_key_id = '{0}' where signer_key_id = '{3}'",
        forged.id(), phone.id(), forged.bundle.to_text().unwrap(), laptop.id(),
    );
    database.run(&sql).await;
    assert_eq!(scene.trusted_from(&phone).await, ids(&[&phone]));
    // A signing key that is gone takes its device with it, for the gateway too.
    database.run("delete from signing_keys").await;
    let answer = scene.post(&owner.add(&phone, &Device::new("new"))).await;
    answer.refused_at(403, "KEY_REVOKED", "/statement/by");
    // An unreadable record is a fault, and adds nothing.
    database
        .run("update device_statements set device_id = 'x' where position = 2")
        .await;
    let answer = scene.post(&owner.add(&phone, &Device::new("new"))).await;
    answer.refused(500, "INTERNAL");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_counts_for_ten_minutes_and_stands_for_ever() {
    let scene = DeviceScene::new(1).await;
    let (owner, client) = (&scene.owner, &scene.alice.client);
    let phone = Device::new("phone");
    let first = owner.add(&phone, &phone);
    scene.post(&first).await.expect(201);
    let laptop = Device::new("laptop");
    let add = owner.add(&phone, &laptop);
    let revoke = owner.revoke(&phone, laptop.keys.id());
    scene.cluster.pass(Duration::from_secs(11 * 60));
    let answer = scene.post(&add).await;
    answer.refused_at(400, "TIMESTAMP", "/statement/at");
    let answer = owner.delete(client, &laptop.id(), &revoke).await;
    answer.refused_at(400, "TIMESTAMP", "/statement/at");
    scene.post(&first).await.expect(200);
    // Ahead of the gateway's clock, no more than behind it.
    let at = |minutes: i64| crate::support::in_time((11 + minutes) * 60);
    let change = countersign::e2e::StatementChange::Add(Box::new(laptop.bundle.clone()));
    let text = |minutes| {
        owner
            .signed(&change, &phone, Some(&laptop), &at(minutes))
            .to_text()
    };
    scene
        .post(&text(11))
        .await
        .refused_at(400, "TIMESTAMP", "/statement/at");
    scene.post(&text(9)).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_are_listed_and_reset_on_the_command_line() {
    let scene = DeviceScene::new(1).await;
    let (owner, client) = (&scene.owner, &scene.alice.client);
    let phone = owner.first(client, "phone").await;
    let database: &Database = &scene.cluster.database;
    let with = |arguments: &[&str]| {
        let owner = ["--tenant", owner.tenant.as_str(), "--approver", "alice"];
        run(countersign()
            .args(["--database-url", &database.url, "device"])
            .args(arguments)
            .args(owner))
    };
    let (ok, text) = with(&["list"]);
    assert!(
        ok && text.contains(&format!("{}  phone\n", phone.id())),
        "{text}"
    );
    let (ok, text) = with(&["reset"]);
    assert!(ok && text.contains("reset"), "{text}");
    let (ok, text) = with(&["list", "--json"]);
    assert!(ok && text.contains("revokedAt"), "{text}");
    let (ok, text) = run(countersign()
        .args([
            "--database-url",
            &database.url,
            "device",
            "reset",
            "--approver",
            "nobody",
        ])
        .args(["--tenant", owner.tenant.as_str()]));
    assert!(!ok && text.contains("nobody has no device"), "{text}");
}
