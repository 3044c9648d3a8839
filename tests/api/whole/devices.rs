//! Devices and invitations.

use reqwest::Method;
use serde_json::{Value, json};

use super::{ApiScene, Everyone};
use crate::support::devices::{Device, Owner};
use crate::support::{now, with};

#[tokio::test(flavor = "multi_thread")]
async fn devices_are_added_listed_revoked_and_reset() {
    let scene = ApiScene::new().await;
    let Everyone {
        admin,
        approver,
        enforcer,
        ..
    } = &scene.everyone;
    let alice = scene.cluster.approver("alice").await.client;
    let owner = Owner::new(&scene.cluster.tenant, "alice");
    let path = owner.path();
    let value = |text: String| serde_json::from_str::<Value>(&text).unwrap();
    let (phone, laptop) = (Device::new("phone"), Device::new("laptop"));
    let first = value(owner.add(&phone, &phone));
    let second = value(owner.add(&phone, &laptop));
    let unsigned = with(&second, "/signature", first["signature"].clone());
    let unproven = with(&second, "/possession", second["signature"].clone());
    let foreign = with(&second, "/statement/approverId", json!("bob"));
    let late = with(&second, "/statement/at", json!("never"));
    scene
        .contract
        .call(admin, Method::DELETE, &path, None)
        .await
        .expect(404);
    for (client, body, status) in [
        (&alice, &first, 201),
        (&alice, &first, 200),
        (&alice, &unsigned, 403),
        (&alice, &unproven, 403),
        (&alice, &foreign, 400),
        (&alice, &late, 400),
        (approver, &second, 403),
        (&alice, &second, 201),
        (&alice, &value(owner.add(&laptop, &laptop)), 200),
    ] {
        let answer = scene.post(client, &path, body).await;
        assert_eq!(answer.status, status, "{answer:?}");
    }
    scene.get(enforcer, &path).await.expect(404);
    let listed = scene.get(&alice, &path).await.expect(200);
    let call = alice.call(Method::GET, &path);
    let call = call.header("if-none-match", listed.header("etag").unwrap());
    let unchanged = call.send().await.expect(304);
    scene
        .contract
        .check(&Method::GET, &path, &unchanged)
        .unwrap();
    let gone = value(owner.revoke(&phone, laptop.keys.id()));
    let one = format!("{path}/{}", laptop.id());
    for _ in 0..2 {
        let call = scene
            .contract
            .call(&alice, Method::DELETE, &one, Some(&gone));
        call.await.expect(200);
    }
    let other = format!("{path}/{}", phone.id());
    let call = scene
        .contract
        .call(&alice, Method::DELETE, &other, Some(&gone));
    call.await.expect(400);
    let key = format!("/platform/v1/approvers/alice/keys/{}", phone.id());
    let call = scene.contract.call(&alice, Method::DELETE, &key, None);
    call.await.expect(403);
    scene
        .contract
        .call(admin, Method::DELETE, &path, None)
        .await
        .expect(204);
    scene.get(admin, &path).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_enforcer_is_introduced_to_other_devices() {
    let scene = ApiScene::new().await;
    let Everyone {
        approver, enforcer, ..
    } = &scene.everyone;
    let alice = scene.cluster.approver("alice").await.client;
    let owner = Owner::new(&scene.cluster.tenant, "alice");
    let path = owner.introductions();
    let phone = owner.first(&alice, "phone").await;
    let value = |text: String| serde_json::from_str::<Value>(&text).unwrap();
    let key = *phone.bundle.encryption_key();
    let text = value(owner.introduce(&phone, "build-bot", &key, &now()));
    scene.post(&alice, &path, &text).await.expect(403);
    let begun = json!({ "enforcerId": "build-bot" });
    let bot = scene.cluster.enforcer("build-bot").await.client;
    let begun = bot.post("/v1/pairing/initiate", &begun).await.expect(200);
    let done = json!({ "nonce": begun.json()["nonce"], "approverId": "alice" });
    alice.post("/v1/pairing/complete", &done).await.expect(200);
    let stranger = Device::new("stranger");
    let unknown = value(owner.introduce(&stranger, "build-bot", &key, &now()));
    let unsigned = with(&text, "/signature", unknown["signature"].clone());
    let foreign = with(&text, "/statement/approverId", json!("bob"));
    let late = with(&text, "/statement/at", json!("never"));
    for (client, body, status) in [
        (&alice, &text, 201),
        (&alice, &text, 200),
        (&alice, &unknown, 403),
        (&alice, &unsigned, 403),
        (&alice, &foreign, 400),
        (&alice, &late, 400),
        (approver, &text, 403),
        (enforcer, &text, 403),
    ] {
        let answer = scene.post(client, &path, body).await;
        assert_eq!(answer.status, status, "{answer:?}");
    }
    scene.get(enforcer, &path).await.expect(403);
    let listed = scene.get(&alice, &path).await.expect(200).json();
    assert_eq!(listed["introductions"], json!([text]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_invites_another_device() {
    let scene = ApiScene::new().await;
    let Everyone {
        approver,
        enforcer,
        nobody,
        ..
    } = &scene.everyone;
    let alice = scene.cluster.approver("alice").await.client;
    let owner = Owner::new(&scene.cluster.tenant, "alice");
    let path = owner.invitations();
    let phone = owner.first(&alice, "phone").await;
    let value = |text: String| serde_json::from_str::<Value>(&text).unwrap();
    let text = value(owner.invite(&phone, &now()));
    let unknown = value(owner.invite(&Device::new("stranger"), &now()));
    let unsigned = with(&text, "/signature", unknown["signature"].clone());
    let late = with(&text, "/statement/at", json!("never"));
    for (client, body, status) in [
        (&alice, &unknown, 403),
        (&alice, &unsigned, 403),
        (&alice, &late, 400),
        (approver, &text, 403),
        (enforcer, &text, 403),
    ] {
        let answer = scene.post(client, &path, body).await;
        assert_eq!(answer.status, status, "{answer:?}");
    }
    let made = scene.post(&alice, &path, &text).await.expect(201).json();
    for status in [201, 201, 201, 201, 422] {
        scene.post(&alice, &path, &text).await.expect(status);
    }
    let one = format!("{path}/{}", made["invitationId"].as_str().unwrap());
    scene.get(&alice, &one).await.expect(200);
    scene.get(&alice, &format!("{path}/none")).await.expect(404);
    scene.get(enforcer, &one).await.expect(403);
    let code = json!({ "code": made["code"] });
    let joined = scene.post(nobody, "/v1/join", &code).await.expect(201);
    let new = scene.cluster.client(joined.json()["apiKey"].as_str());
    let body = json!({ "request": "r", "proof": "p" });
    for (client, body, status) in [
        (&alice, &body, 404),
        (&new, &json!({}), 400),
        (&new, &body, 200),
    ] {
        let call = scene.contract.call(client, Method::PUT, &one, Some(body));
        call.await.expect(status);
    }
    scene.get(&alice, &one).await.expect(200);
    let none = format!("{path}/none");
    for (path, status) in [(&one, 204), (&one, 204), (&none, 404)] {
        let call = scene.contract.call(&alice, Method::DELETE, path, None);
        call.await.expect(status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_is_invited_and_joins() {
    let scene = ApiScene::new().await;
    let Everyone {
        admin,
        operator,
        nobody,
        ..
    } = &scene.everyone;
    let invitations = "/platform/v1/invitations";
    let tenant = scene.cluster.tenant.as_str();
    for (client, body, status) in [
        (admin, json!({ "role": "admin" }), 201),
        (admin, json!({ "role": "approver" }), 400),
        (admin, json!({ "role": "admin", "tenantId": "other" }), 403),
        (
            operator,
            json!({ "role": "admin", "tenantId": tenant }),
            201,
        ),
        (
            operator,
            json!({ "role": "admin", "tenantId": "none" }),
            404,
        ),
    ] {
        scene.post(client, invitations, &body).await.expect(status);
    }
    let body = json!({ "role": "approver", "boundId": "dora", "name": "Dora" });
    let made = scene
        .post(admin, invitations, &body)
        .await
        .expect(201)
        .json();
    let code = made["link"].as_str().unwrap().rsplit('/').next().unwrap();
    for status in [201, 404] {
        let body = json!({ "code": code });
        scene.post(nobody, "/v1/join", &body).await.expect(status);
    }
    scene.post(nobody, "/v1/join", &json!({})).await.expect(400);
    let listed = scene.get(admin, invitations).await.expect(200).json();
    let items = listed["items"].as_array().unwrap();
    for (line, status) in items.iter().zip([204, 204, 409]) {
        let path = format!("{invitations}/{}", line["invitationId"].as_str().unwrap());
        let call = scene.contract.call(admin, Method::DELETE, &path, None);
        call.await.expect(status);
    }
    scene.get(operator, invitations).await.expect(200);
}
