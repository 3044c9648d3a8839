//! Signing keys beside devices: no way around a statement.

use serde_json::json;

use super::DeviceScene;
use crate::support::devices::Device;
use crate::support::{public_key, registration, signing_key};

const KEYS: &str = "/platform/v1/approvers/alice/keys";

#[tokio::test(flavor = "multi_thread")]
async fn an_approver_with_a_device_registers_no_bare_key() {
    let scene = DeviceScene::new(1).await;
    let (owner, client) = (&scene.owner, &scene.alice.client);
    let phone = owner.first(client, "phone").await;
    let tenant = &scene.cluster.tenant;
    let bare = registration(tenant, "alice", "k1", &signing_key(1));
    let answer = client.put(&format!("{KEYS}/k1"), &bare).await;
    let answer = answer.refused(403, "FORBIDDEN");
    assert!(
        answer
            .detail("expected")
            .as_str()
            .unwrap()
            .contains("statement")
    );
    // The device's own key, under its own id or another.
    let own = registration(tenant, "alice", &phone.id(), &phone.signing_key());
    let path = format!("{KEYS}/{}", phone.id());
    for who in [client, &scene.admin] {
        let answer = who.put(&path, &own).await.refused(409, "ALREADY_EXISTS");
        assert_eq!(answer.detail("parameter"), "signerKeyId");
    }
    let limited = json!({ "publicKey": public_key(&phone.signing_key()), "notAfter": "2099-01-01T00:00:00Z" });
    scene
        .admin
        .put(&path, &limited)
        .await
        .refused(409, "ALREADY_EXISTS");
    let other = registration(tenant, "alice", "k1", &phone.signing_key());
    client
        .put(&format!("{KEYS}/k1"), &other)
        .await
        .refused(403, "FORBIDDEN");
    // An administrator may import one, as ever.
    let imported = json!({ "publicKey": public_key(&signing_key(2)) });
    scene
        .admin
        .put(&format!("{KEYS}/k2"), &imported)
        .await
        .expect(200);
    client.delete(&format!("{KEYS}/k2")).await.expect(204);
    // With a mere credential no device is revoked.
    let answer = client.delete(&path).await.refused(403, "FORBIDDEN");
    assert_eq!(answer.detail("parameter"), "signerKeyId");
    assert!(scene.list().await["devices"][0].get("revokedAt").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_who_revokes_a_devices_key_ends_the_device() {
    let scene = DeviceScene::new(2).await;
    let (owner, client) = (&scene.owner, &scene.alice.client);
    let phone = owner.first(client, "phone").await;
    let stolen = owner.another(client, &phone, "stolen").await;
    let path = format!("{KEYS}/{}", stolen.id());
    for _ in 0..2 {
        scene.admin.delete(&path).await.expect(204);
    }
    let line = scene.list().await["devices"][1].clone();
    assert!(
        line["revokedAt"].is_string() && line.get("revokedBy").is_none(),
        "{line}"
    );
    let mine = Device::new("mine");
    let answer = scene.post(&owner.add(&stolen, &mine)).await;
    answer.refused_at(403, "KEY_REVOKED", "/statement/by");
    let gone = owner.revoke(&stolen, phone.keys.id());
    let answer = owner.delete(client, &phone.id(), &gone).await;
    answer.refused_at(403, "KEY_REVOKED", "/statement/by");
    let answer = scene.post(&owner.add(&phone, &stolen)).await;
    answer.refused_at(403, "KEY_REVOKED", "/statement/bundle");
    // The phone still revokes it for those who follow statements.
    let gone = owner.revoke(&phone, stolen.keys.id());
    owner.delete(client, &stolen.id(), &gone).await.expect(200);
    assert_eq!(scene.trusted_from(&phone).await, super::ids(&[&phone]));
    scene.post(&owner.add(&phone, &mine)).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_a_bare_key_needs_an_administrator_for_its_first_device() {
    let scene = DeviceScene::new(1).await;
    let (owner, client) = (&scene.owner, &scene.alice.client);
    let bare = registration(&scene.cluster.tenant, "alice", "k1", &signing_key(1));
    client.put(&format!("{KEYS}/k1"), &bare).await.expect(200);
    let phone = Device::new("phone");
    let add = owner.add(&phone, &phone);
    let refused = async || {
        let answer = scene.post(&add).await;
        answer.refused_at(403, "FORBIDDEN", "/statement/by");
    };
    refused().await;
    client.delete(&format!("{KEYS}/k1")).await.expect(204);
    refused().await;
    scene.admin.delete(&owner.path()).await.expect(204);
    scene.post(&add).await.expect(201);
    let unrevoked = "select count(*) from signing_keys where revoked_at is null";
    assert_eq!(scene.number(unrevoked).await, 1);

    // A key of another under the device's id stays what it is.
    let bob = scene.cluster.approver("bob").await.client;
    let (his, tablet) = (
        crate::support::devices::Owner::new(&owner.tenant, "bob"),
        Device::new("tablet"),
    );
    let path = format!("/platform/v1/approvers/bob/keys/{}", tablet.id());
    let imported = json!({ "publicKey": public_key(&signing_key(3)) });
    scene.admin.put(&path, &imported).await.expect(200);
    let answer = his.post(&bob, &his.add(&tablet, &tablet)).await;
    answer.refused_at(409, "ALREADY_EXISTS", "/statement/bundle");
}
