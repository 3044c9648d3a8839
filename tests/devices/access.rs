//! Access to devices: adding, revoking and reading them.

use countersign::store::identity::credential::RoleName;
use reqwest::Method;
use serde_json::json;

use super::DeviceScene;
use crate::support::devices::{Device, Owner};
use crate::support::{request_id, sealed};

#[tokio::test(flavor = "multi_thread")]
async fn only_a_credential_bound_to_the_approver_adds_and_revokes() {
    let scene = DeviceScene::new(1).await;
    let (cluster, owner) = (&scene.cluster, &scene.owner);
    let key = cluster.key(&cluster.tenant, RoleName::Approver, None).await;
    let unbound = cluster.client(Some(&key));
    let bob = cluster.approver("bob").await.client;
    let phone = Device::new("phone");
    let (add, revoke) = (
        owner.add(&phone, &phone),
        owner.revoke(&phone, phone.keys.id()),
    );
    let before = cluster.database.counts().await;
    for client in [&unbound, &bob, &scene.admin] {
        let answer = owner.post(client, &add).await;
        answer.refused(403, "FORBIDDEN");
        let answer = owner.delete(client, &phone.id(), &revoke).await;
        answer.refused(403, "FORBIDDEN");
    }
    scene
        .alice
        .client
        .delete(&owner.path())
        .await
        .refused(403, "FORBIDDEN");
    assert_eq!(cluster.database.counts().await, before);
    scene.post(&add).await.expect(201);
    // Bound to another approver of the same name, in another tenant.
    let other = cluster.administration.create_tenant("other").await.unwrap();
    let key = cluster.key(&other, RoleName::Approver, Some("alice")).await;
    let namesake = cluster.client(Some(&key));
    let answer = owner.post(&namesake, &add).await;
    answer.refused_at(400, "VALIDATION", "/statement/tenantId");
    // The same device may be hers there, by a statement about that tenant.
    let there = Owner::new(&other, "alice");
    there
        .post(&namesake, &there.add(&phone, &phone))
        .await
        .expect(201);
    let answer = there.delete(&namesake, &phone.id(), &revoke).await;
    answer.refused_at(400, "VALIDATION", "/statement/tenantId");
    let devices = scene.list().await["devices"].clone();
    assert!(devices[0].get("revokedAt").is_none(), "{devices}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_is_for_the_approver_administrators_and_enforcers_that_know_it() {
    let scene = DeviceScene::new(1).await;
    let (cluster, owner) = (&scene.cluster, &scene.owner);
    owner.first(&scene.alice.client, "phone").await;
    let path = owner.path();
    let whole = scene.admin.get(&path).await.expect(200).text;
    let (asking, paired) = (
        cluster.enforcer("asking").await,
        cluster.enforcer("paired").await,
    );
    let (stranger, bob) = (
        cluster.enforcer("stranger").await,
        cluster.approver("bob").await,
    );
    let any = cluster.any_enforcer().await;
    for client in [&asking.client, &paired.client, &stranger.client, &any] {
        client.get(&path).await.refused(404, "NOT_FOUND");
    }
    asking
        .submit(&request_id(), "alice", sealed())
        .await
        .expect(202);
    let begun = json!({ "enforcerId": "paired" });
    let begun = paired
        .client
        .post("/v1/pairing/initiate", &begun)
        .await
        .expect(200)
        .json();
    let done = json!({ "nonce": begun["nonce"], "approverId": "alice" });
    let done = scene.alice.client.post("/v1/pairing/complete", &done).await;
    let token = done.expect(200).json()["routingToken"].clone();
    for client in [&asking.client, &paired.client, &any, &scene.alice.client] {
        assert_eq!(client.get(&path).await.expect(200).text, whole);
    }
    stranger.client.get(&path).await.refused(404, "NOT_FOUND");
    bob.client.get(&path).await.refused(403, "FORBIDDEN");
    let revoke = json!({ "routingToken": token });
    paired
        .client
        .post("/v1/pairing/revoke", &revoke)
        .await
        .expect(200);
    let call = paired.client.call(Method::GET, &path);
    let answer = call.header("if-none-match", "*").send().await;
    answer.refused(404, "NOT_FOUND");
    // Another tenant has an alice of its own.
    let other = cluster.administration.create_tenant("other").await.unwrap();
    let key = cluster.key(&other, RoleName::Admin, None).await;
    let listed = cluster.client(Some(&key)).get(&path).await.expect(200);
    assert_eq!(listed.json()["devices"], json!([]));
}
