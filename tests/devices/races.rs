//! Several at once: each change counts as if they had come one after the other.

use futures_util::future::join_all;
use serde_json::json;

use super::DeviceScene;
use crate::support::database::finish;
use crate::support::devices::Device;
use crate::support::{counts, registration, signing_key, tally};

#[tokio::test(flavor = "multi_thread")]
async fn of_ten_additions_at_once_none_is_lost() {
    let scene = DeviceScene::new(2).await;
    let owner = &scene.owner;
    let phone = owner.first(&scene.alice.client, "phone").await;
    let new: Vec<_> = (0..10)
        .map(|n| Device::new(&format!("device {n}")))
        .collect();
    let texts: Vec<_> = new.iter().map(|device| owner.add(&phone, device)).collect();
    // Each of them twice.
    let calls = texts.iter().chain(&texts).map(|text| scene.post(text));
    let answers = join_all(calls).await;
    assert_eq!(tally(&answers), counts([("200", 10), ("201", 10)]));
    let list = scene.list().await;
    assert_eq!(list["devices"].as_array().unwrap().len(), 11);
    assert_eq!(list["statements"].as_array().unwrap().len(), 11);
    let all: Vec<_> = new.iter().chain([&phone]).collect();
    assert_eq!(scene.trusted_from(&phone).await, super::ids(&all));
    let numbers = "select count(*) * 1000 + max(position) from device_statements";
    assert_eq!(scene.number(numbers).await, 11_011);
    let keys = "select count(*) from signing_keys where revoked_at is null";
    assert_eq!(scene.number(keys).await, 11);
    let audited = "select count(*) from audit_events where action = 'device.added'";
    assert_eq!(scene.number(audited).await, 11);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_ten_first_devices_at_once_one_is_the_first() {
    let scene = DeviceScene::new(2).await;
    let owner = &scene.owner;
    let new: Vec<_> = (0..10).map(|_| Device::new("first")).collect();
    let texts: Vec<_> = new.iter().map(|device| owner.add(device, device)).collect();
    let answers = join_all(texts.iter().map(|text| scene.post(text))).await;
    assert_eq!(tally(&answers), counts([("201", 1), ("403 FORBIDDEN", 9)]));
    assert_eq!(scene.number("select count(*) from signing_keys").await, 1);

    // Beside a bare key, too.
    let bob = scene.cluster.approver("bob").await.client;
    let his = crate::support::devices::Owner::new(&owner.tenant, "bob");
    let phone = Device::new("phone");
    let key = registration(&owner.tenant, "bob", "k1", &signing_key(1));
    let (first, second) = (bob.on(0), bob.on(1));
    let add = his.add(&phone, &phone);
    let (put, posted) = tokio::join!(
        first.put("/platform/v1/approvers/bob/keys/k1", &key),
        his.post(&second, &add),
    );
    assert!(
        [(200, 403), (403, 201)].contains(&(put.status, posted.status)),
        "{put:?} {posted:?}"
    );
    let sql = "select count(*) from signing_keys where approver_id = 'bob'";
    assert_eq!(scene.number(sql).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_devices_that_revoke_each_other_at_once_leave_one() {
    let scene = DeviceScene::new(2).await;
    let (owner, client) = (&scene.owner, &scene.alice.client);
    let phone = owner.first(client, "phone").await;
    for _ in 0..5 {
        let laptop = owner.another(client, &phone, "laptop").await;
        let tablet = owner.another(client, &phone, "tablet").await;
        let one = owner.revoke(&laptop, tablet.keys.id());
        let other = owner.revoke(&tablet, laptop.keys.id());
        let (laptops, tablets) = (laptop.id(), tablet.id());
        let (one, other) = tokio::join!(
            owner.delete(client, &tablets, &one),
            owner.delete(client, &laptops, &other),
        );
        let mut outcomes = [one.outcome(), other.outcome()];
        outcomes.sort_unstable();
        assert_eq!(outcomes, ["200", "403 KEY_REVOKED"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signer_that_is_revoked_while_its_statement_is_written_adds_nothing() {
    let scene = DeviceScene::new(1).await;
    let (owner, client) = (&scene.owner, &scene.alice.client);
    let phone = owner.first(client, "phone").await;
    let new = Device::new("new");
    let add = owner.add(&phone, &new);
    // Judged, but the signer's key is locked by its revocation.
    let revoke = "update signing_keys set revoked_at = clock_timestamp()";
    let mut revoking = scene.cluster.database.holding(revoke).await;
    let (answer, ()) = tokio::join!(scene.post(&add), async {
        scene.cluster.database.blocked(1).await;
        finish(&mut revoking, "commit").await;
    });
    answer.refused_at(403, "KEY_REVOKED", "/statement/by");
    assert_eq!(
        scene.list().await["statements"].as_array().unwrap().len(),
        1
    );
    assert_ne!(scene.list().await["devices"][0]["revokedAt"], json!(null));
}
