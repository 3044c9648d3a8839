//! The devices of approvers: what the gateway accepts, lists and refuses, and what an enforcer
//! makes of the list.

mod access;
mod introductions;
mod invitations;
mod keys;
mod races;
mod refusals;
mod resets;

use std::collections::BTreeSet;

use countersign::config::Config;
use countersign::e2e::{DeviceTrust, SignedStatement};
use countersign::protocol::decision::Verify;
use countersign::protocol::json;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::devices::{Device, Owner};
use crate::support::{Approver, Client, Cluster, HASH, full, request_id, sealed, signed, with};

struct DeviceScene {
    cluster: Cluster,
    owner: Owner,
    alice: Approver,
    admin: Client,
}

impl DeviceScene {
    async fn new(nodes: usize) -> Self {
        Self::with(nodes, |_| {}).await
    }

    async fn with(nodes: usize, change: impl Fn(&mut Config)) -> Self {
        let cluster = Cluster::with(nodes, change).await;
        Self {
            owner: Owner::new(&cluster.tenant, "alice"),
            alice: cluster.approver("alice").await,
            admin: cluster.admin().await,
            cluster,
        }
    }

    async fn post(&self, text: &str) -> crate::support::Answer {
        self.owner.post(&self.alice.client, text).await
    }

    async fn list(&self) -> Value {
        self.admin.get(&self.owner.path()).await.expect(200).json()
    }

    async fn number(&self, sql: &str) -> i64 {
        self.cluster.database.number(sql).await
    }

    /// Which devices an enforcer that pinned this one takes for the approver's.
    async fn trusted_from(&self, pinned: &Device) -> BTreeSet<String> {
        let text = self.admin.get(&self.owner.path()).await.expect(200).text;
        let document = json::parse(text.as_bytes()).unwrap();
        let list = document.as_object().unwrap().get("statements").unwrap();
        let json::JsonValue::Array(items) = &list.value else {
            panic!("a list: {text}");
        };
        let statements: Vec<_> = items
            .iter()
            .map(|item| SignedStatement::parse(item).unwrap())
            .collect();
        let (tenant, approver) = (self.owner.tenant.clone(), self.owner.approver.clone());
        let pinned = vec![pinned.bundle.clone()];
        let mut trust =
            DeviceTrust::from_own_records(tenant, approver, pinned, BTreeSet::default());
        trust.follow_all(&statements);
        let ids = trust
            .in_force()
            .iter()
            .map(|device| device.id().to_string());
        ids.collect()
    }
}

fn ids(devices: &[&Device]) -> BTreeSet<String> {
    devices.iter().map(|device| device.id()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_are_added_by_their_own_statements_and_listed_with_them_byte_for_byte() {
    let scene = DeviceScene::new(2).await;
    let (owner, client) = (&scene.owner, &scene.alice.client);
    let empty = client.get(&owner.path()).await.expect(200);
    let nothing = json!({ "approverId": "alice", "devices": [], "statements": [] });
    assert_eq!(empty.json(), nothing);

    let phone = Device::new("Alice\u{2019}s phone");
    let text = owner.add(&phone, &phone);
    // Any spelling of the same JSON: it comes back as it was sent.
    let odd = text
        .replace("{\"signature\"", "{ \"signature\"\t")
        .replace("\"alice\"", "\"\\u0061lice\"")
        .replace("\"v\":1", "\"v\":1.0e0");
    assert_ne!(text, odd);
    let added = scene.post(&format!(" \n{odd}\r\n")).await.expect(201);
    let line = added.json();
    let expected = json!({
        "deviceId": phone.id(), "name": "Alice\u{2019}s phone", "bundle": phone.bundle.to_text().unwrap(),
        "addedAt": line["addedAt"], "addedBy": phone.id(),
    });
    assert_eq!(line, expected);
    let before = scene.cluster.database.counts().await;
    for again in [&odd, &text] {
        assert_eq!(scene.post(again).await.expect(200).json(), line);
    }
    assert_eq!(scene.cluster.database.counts().await, before);

    let laptop = Device::new("laptop");
    let second = owner.add(&phone, &laptop);
    let answer = scene.post(&second).await.expect(201).json();
    assert_eq!(answer["addedBy"], phone.id());
    // In turn, for enforcers that know only the laptop.
    assert_eq!(scene.trusted_from(&laptop).await, ids(&[&laptop]));
    let third = owner.add(&laptop, &phone);
    assert_eq!(scene.post(&third).await.expect(200).json(), line);
    assert_eq!(scene.trusted_from(&laptop).await, ids(&[&phone, &laptop]));
    assert_eq!(scene.trusted_from(&phone).await, ids(&[&phone, &laptop]));

    let listed = client.get(&owner.path()).await.expect(200);
    let statements = format!("\"statements\":[{odd},{second},{third}]}}");
    assert!(listed.text.ends_with(&statements), "{}", listed.text);
    assert_eq!(listed.json()["devices"], json!([line, answer]));

    let gone = owner.revoke(&laptop, phone.keys.id());
    let revoked = owner.delete(client, &phone.id(), &gone).await.expect(200);
    let revoked = revoked.json();
    let expected = json!({
        "deviceId": phone.id(), "revokedAt": revoked["revokedAt"], "revokedBy": laptop.id(),
    });
    assert_eq!(revoked, expected);
    let before = scene.cluster.database.counts().await;
    let again = owner.delete(client, &phone.id(), &gone).await.expect(200);
    assert_eq!(again.json(), revoked);
    assert_eq!(scene.cluster.database.counts().await, before);
    let devices = scene.list().await["devices"].clone();
    assert_eq!(devices[0]["revokedAt"], revoked["revokedAt"]);
    assert_eq!(devices[0]["revokedBy"], laptop.id());
    assert_eq!(devices[1], answer);
    assert_eq!(scene.trusted_from(&laptop).await, ids(&[&laptop]));
    // A repeat of the addition gets the same answer, though the device is gone.
    let again = scene.post(&second).await.expect(200).json();
    assert_eq!(again, answer);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_is_listed_again_for_those_who_know_only_its_second_signer() {
    let scene = DeviceScene::new(2).await;
    let (owner, client) = (&scene.owner, &scene.alice.client);
    let phone = owner.first(client, "phone").await;
    let laptop = owner.another(client, &phone, "laptop").await;
    let stolen = owner.another(client, &laptop, "stolen").await;
    let gone = owner.revoke(&phone, stolen.keys.id());
    owner.delete(client, &stolen.id(), &gone).await.expect(200);
    assert_eq!(scene.trusted_from(&laptop).await, ids(&[&laptop, &stolen]));
    let gone = owner.revoke(&laptop, stolen.keys.id());
    let again = owner.delete(client, &stolen.id(), &gone).await.expect(200);
    assert_eq!(again.json()["revokedBy"], phone.id(), "it was the first");
    assert_eq!(scene.trusted_from(&laptop).await, ids(&[&laptop]));
    // A device that was never added can be revoked all the same, and then never comes.
    let never = Device::new("never");
    let gone = owner.revoke(&phone, never.keys.id());
    let answer = owner.delete(client, &never.id(), &gone).await.expect(200);
    assert_eq!(answer.json()["deviceId"], never.id());
    let again = owner.delete(client, &never.id(), &gone).await.expect(200);
    assert_eq!(again.json(), answer.json());
    let answer = scene.post(&owner.add(&phone, &never)).await;
    answer.refused_at(403, "KEY_REVOKED", "/statement/bundle");
    assert_eq!(scene.list().await["devices"].as_array().unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_has_not_changed_is_not_sent_again() {
    let scene = DeviceScene::new(2).await;
    let (owner, client) = (&scene.owner, &scene.alice.client);
    let ask = async |tag: &str| {
        let call = client.call(Method::GET, &owner.path());
        call.header("if-none-match", tag).send().await
    };
    let mut tags = BTreeSet::new();
    let mut fresh = async || {
        let listed = client.get(&owner.path()).await.expect(200);
        let tag = listed.header("etag").expect("an ETag").to_owned();
        assert!(tags.insert(tag.clone()), "{tag} stood for another list");
        for known in [
            tag.clone(),
            format!("W/{tag}"),
            format!("\"x\", {tag}"),
            "*".to_owned(),
        ] {
            let answer = ask(&known).await.expect(304);
            assert_eq!(
                (answer.text.as_str(), answer.header("etag")),
                ("", Some(tag.as_str()))
            );
        }
        for other in ["\"x\"", "", "x", tag.trim_matches('"')] {
            ask(other).await.expect(200);
        }
    };
    fresh().await;
    let phone = owner.first(client, "phone").await;
    fresh().await;
    let laptop = owner.another(client, &phone, "laptop").await;
    fresh().await;
    owner
        .post(client, &owner.add(&laptop, &phone))
        .await
        .expect(200);
    fresh().await;
    // Nothing is appended, and yet a device ends.
    let key = format!("/platform/v1/approvers/alice/keys/{}", laptop.id());
    scene.admin.delete(&key).await.expect(204);
    fresh().await;
    scene.admin.delete(&owner.path()).await.expect(204);
    fresh().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn decisions_verify_under_the_key_of_a_device_as_long_as_it_is_in_force() {
    let scene = DeviceScene::with(2, |config| config.decisions.verify = Verify::Required).await;
    let (owner, alice) = (&scene.owner, &scene.alice);
    let bot = scene.cluster.enforcer("build-bot").await;
    let decide = async |device: &Device| {
        let request = request_id();
        bot.submit(&request, "alice", sealed()).await.expect(202);
        let body = with(&full(&request, HASH), "/signerKeyId", json!(device.id()));
        alice
            .decide(&request, signed(body, &device.signing_key()))
            .await
    };
    let phone = Device::new("phone");
    decide(&phone).await.refused(403, "SIGNATURE_INVALID");
    scene.post(&owner.add(&phone, &phone)).await.expect(201);
    let laptop = owner.another(&alice.client, &phone, "laptop").await;
    for device in [&phone, &laptop] {
        let decided = decide(device).await.expect(200);
        assert_eq!(decided.body("/verified"), true);
    }
    let listed = alice.client.get("/platform/v1/approvers/alice/keys").await;
    let keys = listed.expect(200).json()["items"].clone();
    let keys: Vec<_> = keys
        .as_array()
        .unwrap()
        .iter()
        .map(|key| key["signerKeyId"].clone())
        .collect();
    assert_eq!(keys, [phone.id(), laptop.id()]);
    let gone = owner.revoke(&phone, laptop.keys.id());
    owner
        .delete(&alice.client, &laptop.id(), &gone)
        .await
        .expect(200);
    decide(&laptop).await.refused(403, "KEY_REVOKED");
    decide(&phone).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_change_is_on_the_record_once() {
    let scene = DeviceScene::new(1).await;
    let (owner, client) = (&scene.owner, &scene.alice.client);
    let phone = owner.first(client, "phone").await;
    let laptop = owner.another(client, &phone, "laptop").await;
    let endorsed = owner.add(&laptop, &phone);
    for _ in 0..2 {
        scene.post(&endorsed).await.expect(200);
        let gone = owner.revoke(&phone, laptop.keys.id());
        owner.delete(client, &laptop.id(), &gone).await.expect(200);
        scene.admin.delete(&owner.path()).await.expect(204);
    }
    let (phone, laptop) = (phone.id(), laptop.id());
    let sql = "select string_agg(concat_ws(' ', action, subject, detail, actor, principal is not null, address), '|' order by at)
                 from audit_events where action like 'device%'";
    let audit = scene.cluster.database.text(sql).await;
    let chief = scene.admin.key().split('_').nth(1).unwrap();
    let hers = "approver:alice t 127.0.0.1";
    let expected = [
        format!("device.added alice/{phone} by {phone} phone {hers}"),
        format!("device.added alice/{laptop} by {phone} laptop {hers}"),
        format!("device.endorsed alice/{phone} by {laptop} phone {hers}"),
        format!("device.revoked alice/{laptop} by {phone} {hers}"),
        format!("devices.reset alice 1 ended admin:{chief} t 127.0.0.1"),
    ];
    assert_eq!(audit.split('|').collect::<Vec<_>>(), expected);
}
