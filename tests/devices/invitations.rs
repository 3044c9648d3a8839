//! A device invites another device of its approver: for minutes, once, and only with a signature.

use std::time::Duration;

use countersign::protocol::device::{MAX_DEVICE_INVITATIONS, MAX_DEVICE_REQUEST_CHARS};
use countersign::store::identity::credential::RoleName;
use reqwest::Method;
use serde_json::{Value, json};

use super::DeviceScene;
use crate::support::devices::{Device, Owner};
use crate::support::{Answer, Client, in_time, now, until};

async fn post(owner: &Owner, client: &Client, text: &str) -> Answer {
    let call = client.call(Method::POST, &owner.invitations());
    call.text(text).send().await
}

async fn invited(scene: &DeviceScene, by: &Device) -> Value {
    let text = scene
        .owner
        .invite(by, &scene.cluster.clock.now().to_string());
    let made = post(&scene.owner, &scene.alice.client, &text).await;
    made.expect(201).json()
}

async fn join(scene: &DeviceScene, made: &Value) -> Answer {
    let nobody = scene.cluster.client(None);
    let body = json!({ "code": made["code"] });
    nobody.post("/v1/join", &body).await
}

fn path(owner: &Owner, made: &Value) -> String {
    let id = made["invitationId"].as_str().unwrap();
    format!("{}/{id}", owner.invitations())
}

fn answer() -> Value {
    json!({ "request": "the new device's request", "proof": "its proof" })
}

async fn put(client: &Client, path: &str, body: &Value) -> Answer {
    client.call(Method::PUT, path).json(body).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_invites_another_one_which_leaves_its_request() {
    let scene = DeviceScene::new(2).await;
    let (owner, alice) = (&scene.owner, &scene.alice.client);
    let phone = owner.first(alice, "phone").await;
    let made = invited(&scene, &phone).await;
    assert_eq!(made["code"].as_str().unwrap().len(), 43);
    let page = made["page"].as_str().unwrap();
    assert!(page.starts_with("http://127.0.0.1:"), "{page}");
    let path = path(owner, &made);
    let waiting = alice.on(1).get(&path).await.expect(200).json();
    let expected = json!({ "invitationId": made["invitationId"], "expiresAt": made["expiresAt"] });
    assert_eq!(waiting, expected);

    // The new device: an approver with the same id, once.
    let joined = join(&scene, &made).await.expect(201).json();
    let expected = json!({
        "tenantId": scene.cluster.tenant.as_str(), "role": "approver", "boundId": "alice",
        "credentialId": joined["credentialId"], "apiKey": joined["apiKey"],
        "invitationId": made["invitationId"],
    });
    assert_eq!(joined, expected);
    join(&scene, &made).await.refused(404, "NOT_FOUND");
    let new = scene.cluster.client(joined["apiKey"].as_str());
    let kept = put(&new, &path, &answer()).await.expect(200).json();
    assert_eq!(kept["request"], answer()["request"]);
    let seen = alice.on(1).get(&path).await.expect(200).json();
    assert_eq!(seen, kept);
    assert!(seen["usedAt"].is_string());
    // A later request takes its place.
    let later = json!({ "request": "later", "proof": "p" });
    put(&new, &path, &later).await.expect(200);
    assert_eq!(alice.get(&path).await.expect(200).json()["proof"], "p");

    let audit = "select string_agg(concat_ws(' ', action, detail, actor), '|' order by at, action)
                   from audit_events where action like 'invitation.%'";
    let audit = scene.cluster.database.text(audit).await;
    let created = format!(
        "invitation.created approver alice by device {} approver:alice",
        phone.id()
    );
    assert!(audit.starts_with(&created), "{audit}");
    let listed = scene.admin.get("/platform/v1/invitations").await;
    assert_eq!(
        listed.expect(200).json()["items"][0]["createdBy"],
        "approver:alice"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_device_in_force_invites_and_only_for_its_own_approver() {
    let scene = DeviceScene::new(1).await;
    let (owner, alice) = (&scene.owner, &scene.alice.client);
    let phone = owner.first(alice, "phone").await;
    let lost = owner.another(alice, &phone, "lost").await;
    let revocation = owner.revoke(&phone, lost.keys.id());
    owner
        .delete(alice, &lost.id(), &revocation)
        .await
        .expect(200);
    let rows = "select count(*) from invitations";
    let (own, stranger) = (owner.invite(&phone, &now()), Device::new("stranger"));
    let other = Owner::new(&owner.tenant, "bob");
    let foreign = Owner {
        tenant: countersign::protocol::id::TextId::parse("other").unwrap(),
        approver: owner.approver.clone(),
    };
    let whole: Value = serde_json::from_str(&own).unwrap();
    let forged = own.replace(whole["signature"].as_str().unwrap(), &"A".repeat(86));
    for (text, status, code, pointer) in [
        (
            owner.invite(&stranger, &now()),
            403,
            "SIGNATURE_INVALID",
            "/statement/by",
        ),
        (
            owner.invite(&lost, &now()),
            403,
            "KEY_REVOKED",
            "/statement/by",
        ),
        (forged, 403, "SIGNATURE_INVALID", "/signature"),
        (
            other.invite(&phone, &now()),
            400,
            "VALIDATION",
            "/statement/approverId",
        ),
        (
            foreign.invite(&phone, &now()),
            400,
            "VALIDATION",
            "/statement/tenantId",
        ),
        (
            owner.invite(&phone, &in_time(-660)),
            400,
            "TIMESTAMP",
            "/statement/at",
        ),
        (
            owner.invite(&phone, &in_time(660)),
            400,
            "TIMESTAMP",
            "/statement/at",
        ),
        (
            owner.add(&phone, &stranger),
            400,
            "VALIDATION",
            "/possession",
        ),
        (
            own.replace("device.invite", "device.add"),
            400,
            "VALIDATION",
            "/statement/statement",
        ),
        (
            own.replace("\"v\":1", "\"v\":2"),
            400,
            "UNSUPPORTED",
            "/statement/v",
        ),
    ] {
        let refused = post(owner, alice, &text).await;
        refused.refused_at(status, code, pointer);
    }
    let (cluster, tenant) = (&scene.cluster, &scene.cluster.tenant);
    let bob = cluster.approver("bob").await.client;
    post(owner, &bob, &own).await.refused(403, "FORBIDDEN");
    let unbound = cluster.key(tenant, RoleName::Approver, None).await;
    let unbound = cluster.client(Some(&unbound));
    post(owner, &unbound, &own).await.refused(403, "FORBIDDEN");
    let bot = cluster.enforcer("bot").await.client;
    post(owner, &bot, &own).await.refused(403, "FORBIDDEN");
    post(owner, &scene.admin, &own)
        .await
        .refused(403, "FORBIDDEN");
    assert_eq!(scene.number(rows).await, 0);
    post(owner, alice, &own).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_that_ends_makes_none_that_outlives_it() {
    let scene = DeviceScene::new(1).await;
    let (owner, alice) = (&scene.owner, &scene.alice.client);
    let phone = owner.first(alice, "phone").await;
    let body = json!({ "role": "approver", "boundId": "alice", "expiresAt": in_time(3_600) });
    let made = scene.admin.post("/platform/v1/credentials", &body).await;
    let ending = made.expect(201).json();
    let ending = scene.cluster.client(ending["apiKey"].as_str());
    let refused = post(owner, &ending, &owner.invite(&phone, &now())).await;
    refused.refused(403, "FORBIDDEN");
    assert_eq!(scene.number("select count(*) from invitations").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_ends_in_minutes_and_there_are_few() {
    let scene = DeviceScene::new(1).await;
    let (owner, alice) = (&scene.owner, &scene.alice.client);
    let phone = owner.first(alice, "phone").await;
    let first = invited(&scene, &phone).await;
    for _ in 1..MAX_DEVICE_INVITATIONS {
        invited(&scene, &phone).await;
    }
    let sixth = owner.invite(&phone, &now());
    let refused = post(owner, alice, &sixth).await;
    let limit = refused.refused(422, "TOO_LARGE").detail("limit");
    assert_eq!(limit, MAX_DEVICE_INVITATIONS);
    // Those of another approver are not counted, nor those of an administrator.
    let bob = scene.cluster.approver("bob").await.client;
    let of_bob = Owner::new(&owner.tenant, "bob");
    let tablet = of_bob.first(&bob, "tablet").await;
    post(&of_bob, &bob, &of_bob.invite(&tablet, &now()))
        .await
        .expect(201);

    scene.cluster.pass(Duration::from_secs(601));
    join(&scene, &first).await.refused(404, "NOT_FOUND");
    invited(&scene, &phone).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_device_that_joined_by_it_answers_an_invitation() {
    let scene = DeviceScene::new(1).await;
    let (owner, alice) = (&scene.owner, &scene.alice.client);
    let phone = owner.first(alice, "phone").await;
    let made = invited(&scene, &phone).await;
    let path = path(owner, &made);
    put(alice, &path, &answer()).await.refused(404, "NOT_FOUND");
    let joined = join(&scene, &made).await.expect(201).json();
    let new = scene.cluster.client(joined["apiKey"].as_str());
    put(alice, &path, &answer()).await.refused(404, "NOT_FOUND");
    let bob = scene.cluster.approver("bob").await.client;
    put(&bob, &path, &answer()).await.refused(403, "FORBIDDEN");
    let of_bob = path.replace("/alice/", "/bob/");
    put(&bob, &of_bob, &answer())
        .await
        .refused(404, "NOT_FOUND");
    bob.get(&of_bob).await.refused(404, "NOT_FOUND");
    let tenant = scene
        .cluster
        .administration
        .create_tenant("other")
        .await
        .unwrap();
    let key = scene
        .cluster
        .key(&tenant, RoleName::Approver, Some("alice"));
    let foreign = scene.cluster.client(Some(&key.await));
    foreign.get(&path).await.refused(404, "NOT_FOUND");
    put(&foreign, &path, &answer())
        .await
        .refused(404, "NOT_FOUND");
    // An administrator's invitation carries nothing.
    let body = json!({ "role": "approver", "boundId": "alice" });
    let plain = scene.admin.post("/platform/v1/invitations", &body).await;
    let plain = plain.expect(201).json();
    let plain = self::path(owner, &plain);
    alice.get(&plain).await.refused(404, "NOT_FOUND");

    for (body, pointer) in [
        (json!({ "request": "r" }), "/proof"),
        (json!({ "request": "", "proof": "p" }), "/request"),
        (
            json!({ "request": "r".repeat(MAX_DEVICE_REQUEST_CHARS + 1), "proof": "p" }),
            "/request",
        ),
        (json!({ "request": "r", "proof": "p", "more": 1 }), "/more"),
    ] {
        let refused = put(&new, &path, &body).await;
        refused.refused_at(400, "VALIDATION", pointer);
    }
    put(&new, &path, &answer()).await.expect(200);
    scene.cluster.pass(Duration::from_secs(601));
    put(&new, &path, &answer()).await.refused(404, "NOT_FOUND");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_is_not_recognised_loses_its_credential() {
    let scene = DeviceScene::new(1).await;
    let (owner, alice) = (&scene.owner, &scene.alice.client);
    let phone = owner.first(alice, "phone").await;
    let (unused, used) = (invited(&scene, &phone).await, invited(&scene, &phone).await);
    let joined = join(&scene, &used).await.expect(201).json();
    let new = scene.cluster.client(joined["apiKey"].as_str());
    new.get("/v1/whoami").await.expect(200);
    let end = async |client: &Client, made: &Value| {
        let path = path(owner, made);
        client.call(Method::DELETE, &path).send().await
    };
    let bob = scene.cluster.approver("bob").await.client;
    end(&bob, &used).await.refused(403, "FORBIDDEN");
    end(alice, &unused).await.expect(204);
    join(&scene, &unused).await.refused(404, "NOT_FOUND");
    for _ in 0..2 {
        end(alice, &used).await.expect(204);
    }
    until("the key is refused", Duration::from_secs(20), async || {
        new.get("/v1/whoami").await.status == 401
    })
    .await;
    // Later only an administrator ends it.
    let old = invited(&scene, &phone).await;
    scene.cluster.pass(Duration::from_secs(1_201));
    end(alice, &old).await.refused(404, "NOT_FOUND");
}
