//! Introductions of enforcers: what the gateway keeps, lists and refuses, and when they go.

use countersign::e2e::{EncryptionKey, EnforcerKeys, Error};
use countersign::protocol::device::{MAX_INTRODUCTION_BYTES, MAX_INTRODUCTIONS};
use countersign::store::identity::credential::RoleName;
use reqwest::Method;
use serde_json::{Value, json};

use super::DeviceScene;
use crate::support::devices::{Device, Owner};
use crate::support::{Answer, Client, in_time, now, with};

fn key() -> EncryptionKey {
    let mut random = |bytes: &mut [u8]| getrandom::fill(bytes).map_err(|_| Error::Random);
    let keys = EnforcerKeys::generate(&mut random).unwrap();
    keys.encryption_key()
}

async fn post(owner: &Owner, client: &Client, text: &str) -> Answer {
    let call = client.call(Method::POST, &owner.introductions());
    call.text(text).send().await
}

/// Pairs, and returns the routing token.
async fn pair(scene: &DeviceScene, enforcer: &str) -> String {
    let bot = scene.cluster.enforcer(enforcer).await.client;
    let begun = json!({ "enforcerId": enforcer });
    let begun = bot.post("/v1/pairing/initiate", &begun).await.expect(200);
    let done = json!({ "nonce": begun.json()["nonce"], "approverId": "alice" });
    let done = scene.alice.client.post("/v1/pairing/complete", &done).await;
    let token = done.expect(200).json()["routingToken"].clone();
    token.as_str().unwrap().to_owned()
}

async fn listed(scene: &DeviceScene) -> Vec<String> {
    let path = scene.owner.introductions();
    let answer = scene.alice.client.get(&path).await.expect(200).json();
    let list = answer["introductions"].as_array().unwrap().iter();
    list.map(Value::to_string).collect()
}

async fn rows(scene: &DeviceScene) -> i64 {
    scene.number("select count(*) from introductions").await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_introduction_is_kept_replaced_by_a_newer_one_and_listed_byte_for_byte() {
    let scene = DeviceScene::new(2).await;
    let (owner, client) = (&scene.owner, &scene.alice.client);
    let empty = client.get(&owner.introductions()).await.expect(200).json();
    assert_eq!(empty, json!({ "approverId": "alice", "introductions": [] }));
    let phone = owner.first(client, "phone").await;
    let laptop = owner.another(client, &phone, "laptop").await;
    pair(&scene, "bot").await;
    let (first, at) = (key(), now());
    let text = owner.introduce(&phone, "bot", &first, &at);
    let odd = text
        .replace("{\"signature\"", "{ \"signature\"\t")
        .replace("\"alice\"", "\"\\u0061lice\"");
    let made = post(owner, client, &format!(" \n{odd}\r\n")).await;
    let line = made.expect(201).json();
    let expected = json!({ "enforcerId": "bot", "deviceId": phone.id(), "at": line["at"] });
    assert_eq!(line, expected);
    let counts = scene.cluster.database.counts().await;
    for again in [&odd, &text] {
        assert_eq!(post(owner, client, again).await.expect(200).json(), line);
    }
    assert_eq!(scene.cluster.database.counts().await, counts);
    let whole = client.get(&owner.introductions()).await.expect(200).text;
    assert_eq!(
        whole,
        format!("{{\"approverId\":\"alice\",\"introductions\":[{odd}]}}")
    );

    // Another device's stands beside it. An older one of the same device changes nothing, a newer
    // one replaces it.
    let by_laptop = owner.introduce(&laptop, "bot", &first, &at);
    post(owner, client, &by_laptop).await.expect(201);
    let older = owner.introduce(&phone, "bot", &key(), &in_time(-60));
    assert_eq!(post(owner, client, &older).await.expect(200).json(), line);
    assert_eq!(listed(&scene).await.len(), 2);
    let newer = owner.introduce(&phone, "bot", &key(), &in_time(60));
    post(owner, client, &newer).await.expect(201);
    let list = listed(&scene).await;
    assert_eq!(list.len(), 2);
    let newer: Value = serde_json::from_str(&newer).unwrap();
    assert!(list.contains(&newer.to_string()), "{list:?}");
    // A replaced introduction does not come back.
    post(owner, client, &text).await.expect(200);
    assert_eq!(listed(&scene).await, list);

    let audit = "select string_agg(concat_ws(' ', action, subject, detail, actor), '|' order by at)
                   from audit_events where action like 'enforcer.%'";
    let audit = scene.cluster.database.text(audit).await;
    let (phone, laptop) = (phone.id(), laptop.id());
    let expected = [&phone, &laptop, &phone];
    let expected =
        expected.map(|id| format!("enforcer.introduced bot/alice by {id} approver:alice"));
    assert_eq!(audit.split('|').collect::<Vec<_>>(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_introduction_is_refused_with_its_cause() {
    let scene = DeviceScene::new(1).await;
    let (owner, client) = (&scene.owner, &scene.alice.client);
    let phone = owner.first(client, "phone").await;
    let laptop = owner.another(client, &phone, "laptop").await;
    let text = owner.introduce(&phone, "bot", &key(), &now());
    let refused = post(owner, client, &text).await;
    refused.refused_at(403, "POLICY_DENY", "/statement/enforcerId");
    pair(&scene, "bot").await;
    let counts = scene.cluster.database.counts().await;
    let whole: Value = serde_json::from_str(&text).unwrap();
    let stranger = Device::new("stranger");
    let foreign = owner.introduce(&stranger, "bot", &key(), &now());
    let signature = json!("A".repeat(86));
    let weak = json!("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    let other: Value =
        serde_json::from_str(&owner.introduce(&laptop, "bot", &key(), &now())).unwrap();
    for (changed, status, code, pointer) in [
        (foreign, 403, "SIGNATURE_INVALID", "/statement/by"),
        (
            with(&whole, "/signature", other["signature"].clone()).to_string(),
            403,
            "SIGNATURE_INVALID",
            "/signature",
        ),
        (
            with(&whole, "/statement/x25519", json!(key().to_text())).to_string(),
            403,
            "SIGNATURE_INVALID",
            "/signature",
        ),
        (
            with(&whole, "/statement/enforcerId", json!("another")).to_string(),
            403,
            "SIGNATURE_INVALID",
            "/signature",
        ),
        (
            with(&whole, "/statement/by", json!(laptop.id())).to_string(),
            403,
            "SIGNATURE_INVALID",
            "/signature",
        ),
        (
            with(&whole, "/statement/tenantId", json!("other")).to_string(),
            400,
            "VALIDATION",
            "/statement/tenantId",
        ),
        (
            with(&whole, "/statement/approverId", json!("bob")).to_string(),
            400,
            "VALIDATION",
            "/statement/approverId",
        ),
        (
            with(&whole, "/statement/x25519", weak).to_string(),
            400,
            "VALIDATION",
            "/statement/x25519",
        ),
        (
            with(&whole, "/statement/label", json!("")).to_string(),
            400,
            "VALIDATION",
            "/statement/label",
        ),
        (
            with(&whole, "/statement/by", json!("nobody")).to_string(),
            400,
            "VALIDATION",
            "/statement/by",
        ),
        (
            with(&whole, "/statement/more", json!(1)).to_string(),
            400,
            "VALIDATION",
            "/statement/more",
        ),
        (
            with(&whole, "/statement/v", json!(2)).to_string(),
            400,
            "UNSUPPORTED",
            "/statement/v",
        ),
        (
            with(&whole, "/statement/statement", json!("device.add")).to_string(),
            400,
            "VALIDATION",
            "/statement/statement",
        ),
        (
            with(&whole, "/signature", json!("short")).to_string(),
            400,
            "VALIDATION",
            "/signature",
        ),
        (
            with(&whole, "/possession", signature).to_string(),
            400,
            "VALIDATION",
            "/possession",
        ),
        (
            owner.introduce(&phone, "bot", &key(), &in_time(11 * 60)),
            400,
            "TIMESTAMP",
            "/statement/at",
        ),
    ] {
        let answer = post(owner, client, &changed).await;
        assert_eq!(answer.status, status, "{changed} {}", answer.text);
        answer.refused_at(status, code, pointer);
    }
    let repeated = text.replacen("{\"signature\"", "{\"signature\":\"x\",\"signature\"", 1);
    let answer = post(owner, client, &repeated).await;
    assert_eq!(answer.status, 400, "{}", answer.text);
    let large = format!("{text}{}", " ".repeat(MAX_INTRODUCTION_BYTES));
    assert_eq!(post(owner, client, &large).await.status, 413);
    assert_eq!(scene.cluster.database.counts().await, counts);
    // Old is no fault: an enforcer may have been paired long ago.
    let old = owner.introduce(&phone, "bot", &key(), "2020-01-01T00:00:00Z");
    post(owner, client, &old).await.expect(201);
    let gone = owner.revoke(&phone, laptop.keys.id());
    owner.delete(client, &laptop.id(), &gone).await.expect(200);
    let refused = post(owner, client, &other.to_string()).await;
    refused.refused_at(403, "KEY_REVOKED", "/statement/by");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_approver_itself_introduces_and_reads() {
    let scene = DeviceScene::new(1).await;
    let (cluster, owner) = (&scene.cluster, &scene.owner);
    let client = &scene.alice.client;
    let phone = owner.first(client, "phone").await;
    pair(&scene, "bot").await;
    let text = owner.introduce(&phone, "bot", &key(), &now());
    let any = cluster.key(&cluster.tenant, RoleName::Approver, None).await;
    let any = cluster.client(Some(&any));
    let bob = cluster.approver("bob").await.client;
    let bot = cluster.enforcer("bot").await.client;
    for other in [&any, &bob, &bot, &scene.admin] {
        let refused = post(owner, other, &text).await;
        refused.refused(403, "FORBIDDEN");
    }
    post(owner, client, &text).await.expect(201);
    let path = owner.introductions();
    for other in [&bob, &bot, &scene.admin] {
        other.get(&path).await.refused(403, "FORBIDDEN");
    }
    cluster.client(None).get(&path).await.expect(401);
    any.get(&path).await.expect(200);
    // Another tenant has an alice of its own, who sees and introduces nothing here.
    let tenant = cluster.administration.create_tenant("other").await.unwrap();
    let other = cluster
        .key(&tenant, RoleName::Approver, Some("alice"))
        .await;
    let other = cluster.client(Some(&other));
    let seen = other.get(&path).await.expect(200).json();
    assert_eq!(seen["introductions"], json!([]));
    let refused = post(owner, &other, &text).await;
    refused.refused_at(400, "VALIDATION", "/statement/tenantId");
    let there = Owner::new(&tenant, "alice");
    there.first(&other, "phone").await;
    let refused = post(
        &there,
        &other,
        &there.introduce(&phone, "bot", &key(), &now()),
    )
    .await;
    refused.refused_at(403, "SIGNATURE_INVALID", "/statement/by");
}

#[tokio::test(flavor = "multi_thread")]
async fn they_go_with_the_pairing_the_device_and_a_reset() {
    let scene = DeviceScene::new(2).await;
    let (owner, client) = (&scene.owner, &scene.alice.client);
    let phone = owner.first(client, "phone").await;
    let laptop = owner.another(client, &phone, "laptop").await;
    let tablet = owner.another(client, &phone, "tablet").await;
    let tokens = [pair(&scene, "bot").await, pair(&scene, "other").await];
    let introduce = async |by: &Device, enforcer: &str| {
        let text = owner.introduce(by, enforcer, &key(), &now());
        post(owner, client, &text).await
    };
    let all = async || {
        for device in [&phone, &laptop, &tablet] {
            for enforcer in ["bot", "other"] {
                introduce(device, enforcer).await;
            }
        }
        listed(&scene).await.len()
    };
    assert_eq!(all().await, 6);
    // Pairing again: the enforcer may have a new key.
    let again = pair(&scene, "bot").await;
    assert_eq!((listed(&scene).await.len(), rows(&scene).await), (3, 3));
    assert_eq!(all().await, 6);
    // A token that was replaced ends nothing.
    let revoke = async |token: &str| {
        let body = json!({ "routingToken": token });
        client.post("/v1/pairing/revoke", &body).await.expect(200);
    };
    revoke(&tokens[0]).await;
    assert_eq!(listed(&scene).await.len(), 6);
    revoke(&again).await;
    assert_eq!((listed(&scene).await.len(), rows(&scene).await), (3, 3));
    let refused = introduce(&phone, "bot").await;
    refused.refused_at(403, "POLICY_DENY", "/statement/enforcerId");

    let gone = owner.revoke(&phone, laptop.keys.id());
    owner.delete(client, &laptop.id(), &gone).await.expect(200);
    assert_eq!((listed(&scene).await.len(), rows(&scene).await), (2, 2));
    // An administrator ends a device by its key.
    let path = format!("/platform/v1/approvers/alice/keys/{}", tablet.id());
    scene.admin.delete(&path).await.expect(204);
    assert_eq!((listed(&scene).await.len(), rows(&scene).await), (1, 1));
    let refused = introduce(&tablet, "other").await;
    refused.refused_at(403, "KEY_REVOKED", "/statement/by");
    scene.admin.delete(&owner.path()).await.expect(204);
    assert_eq!((listed(&scene).await.len(), rows(&scene).await), (0, 0));
    let refused = introduce(&phone, "other").await;
    refused.refused_at(403, "KEY_REVOKED", "/statement/by");
    revoke(&tokens[1]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_written_in_the_moment_of_an_end_is_not_listed() {
    let scene = DeviceScene::new(2).await;
    let (owner, client) = (&scene.owner, &scene.alice.client);
    let phone = owner.first(client, "phone").await;
    for round in 0..10 {
        let token = pair(&scene, "bot").await;
        let text = owner.introduce(&phone, "bot", &key(), &in_time(round));
        let body = json!({ "routingToken": token });
        let revoking = client.post("/v1/pairing/revoke", &body);
        let (introduced, revoked) = tokio::join!(post(owner, client, &text), revoking);
        revoked.expect(200);
        assert!(matches!(introduced.status, 201 | 403), "{introduced:?}");
        assert_eq!(listed(&scene).await, Vec::<String>::new());
    }
    // The same with a device that is revoked.
    pair(&scene, "bot").await;
    for _ in 0..5 {
        let laptop = owner.another(client, &phone, "laptop").await;
        let text = owner.introduce(&laptop, "bot", &key(), &now());
        let gone = owner.revoke(&phone, laptop.keys.id());
        let id = laptop.id();
        let revoking = owner.delete(client, &id, &gone);
        let (introduced, revoked) = tokio::join!(post(owner, client, &text), revoking);
        revoked.expect(200);
        assert!(matches!(introduced.status, 201 | 403), "{introduced:?}");
        assert_eq!(listed(&scene).await, Vec::<String>::new());
    }
    assert_eq!(rows(&scene).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_at_once_the_newer_one_stands_and_their_number_is_bounded() {
    let scene = DeviceScene::new(2).await;
    let (owner, client) = (&scene.owner, &scene.alice.client);
    let phone = owner.first(client, "phone").await;
    pair(&scene, "bot").await;
    let texts = (0..8).map(|second| owner.introduce(&phone, "bot", &key(), &in_time(second)));
    let texts: Vec<_> = texts.collect();
    let posts = texts.iter().map(|text| post(owner, client, text));
    for answer in futures_util::future::join_all(posts).await {
        assert!(matches!(answer.status, 200 | 201), "{answer:?}");
    }
    let newest: Value = serde_json::from_str(texts.last().unwrap()).unwrap();
    assert_eq!(listed(&scene).await, [newest.to_string()]);

    let fill = format!(
        "insert into introductions (tenant_id, approver_id, enforcer_id, device_id, nonce, introduced_at, accepted_at, signed)
         select '{}', 'alice', 'e' || n, '{}', 'n', now(), now(), '{{}}' from generate_series(1, {}) n",
        scene.cluster.tenant,
        phone.id(),
        MAX_INTRODUCTIONS,
    );
    scene.cluster.database.run(&fill).await;
    // An existing introduction can still be replaced; nothing is added.
    pair(&scene, "late").await;
    let late = owner.introduce(&phone, "late", &key(), &now());
    let refused = post(owner, client, &late).await;
    refused.refused(422, "TOO_LARGE");
    let sql = "delete from introductions where enforcer_id in ('e1', 'e2')";
    scene.cluster.database.run(sql).await;
    post(owner, client, &late).await.expect(201);
    let newer = owner.introduce(&phone, "late", &key(), &in_time(30));
    post(owner, client, &newer).await.expect(201);
}
