//! Signing keys: an approver registers its first, ever; more need an administrator.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
use countersign::protocol::signature::PublicKey;
use serde_json::{Value, json};

use super::items;
use crate::support::{Cluster, in_time, printed, public_key, registration, signing_key, with};

const KEYS: &str = "/platform/v1/approvers/alice/keys";

fn path(id: &str) -> String {
    format!("{KEYS}/{id}")
}

fn body(number: u8) -> Value {
    json!({ "publicKey": public_key(&signing_key(number)) })
}

/// The same from its holder, who is alice.
fn proven(cluster: &Cluster, id: &str, number: u8) -> Value {
    registration(&cluster.tenant, "alice", id, &signing_key(number))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approver_registers_its_first_key_and_never_another() {
    let cluster = Cluster::start(2).await;
    let alice = cluster.approver("alice").await.client;
    let admin = cluster.admin().await;
    assert_eq!(
        items(&alice.get(KEYS).await.expect(200)),
        Vec::<Value>::new()
    );
    let made = alice
        .put(&path("k1"), &proven(&cluster, "k1", 1))
        .await
        .expect(200);
    assert_eq!(made.header("content-type"), Some("application/json"));
    assert_eq!(
        made.json(),
        json!({ "approverId": "alice", "signerKeyId": "k1", "publicKey": body(1)["publicKey"] })
    );
    alice
        .put(&path("k1"), &proven(&cluster, "k1", 1))
        .await
        .expect(200);
    alice
        .put(&path("k2"), &proven(&cluster, "k2", 2))
        .await
        .refused(403, "FORBIDDEN");
    alice
        .put(&path("k2"), &proven(&cluster, "k2", 1))
        .await
        .refused(403, "FORBIDDEN");
    let answer = alice.put(&path("k1"), &proven(&cluster, "k1", 2)).await;
    answer.refused_at(409, "ALREADY_EXISTS", "/publicKey");
    admin.put(&path("k2"), &body(2)).await.expect(200);
    let answer = admin.put(&path("k2"), &body(3)).await;
    answer.refused_at(409, "ALREADY_EXISTS", "/publicKey");
    admin.put(&path("k2"), &body(2)).await.expect(200);

    let listed = items(&alice.get(KEYS).await.expect(200));
    assert_eq!(listed, items(&admin.get(KEYS).await.expect(200)));
    let ids: Vec<_> = listed
        .iter()
        .map(|key| key["signerKeyId"].clone())
        .collect();
    assert_eq!(ids, ["k1", "k2"]);
    assert_eq!(
        listed[0],
        json!({ "signerKeyId": "k1", "publicKey": body(1)["publicKey"], "createdAt": listed[0]["createdAt"] })
    );

    // Revoked, a key stays on the list and its name stays taken, for everyone.
    for id in ["k1", "k2"] {
        assert_eq!(alice.delete(&path(id)).await.expect(204).text, "");
    }
    alice.delete(&path("k3")).await.refused(404, "NOT_FOUND");
    admin.delete(&path("k3")).await.refused(404, "NOT_FOUND");
    let listed = items(&alice.get(KEYS).await.expect(200));
    assert!(
        listed.iter().all(|key| key["revokedAt"].is_string()),
        "{listed:?}"
    );
    alice
        .put(&path("k3"), &proven(&cluster, "k3", 3))
        .await
        .refused(403, "FORBIDDEN");
    for client in [&alice, &admin] {
        let answer = client.put(&path("k1"), &proven(&cluster, "k1", 1)).await;
        assert!([403, 409].contains(&answer.status), "{answer:?}");
    }
    let revived = "select count(*) from signing_keys where revoked_at is null";
    assert_eq!(cluster.database.number(revived).await, 0);
    admin.put(&path("k3"), &body(3)).await.expect(200);

    // Of two first keys at once, one is the first.
    let bob = cluster.approver("bob").await.client;
    let (left, right) = (bob.on(0), bob.on(1));
    let bobs = "/platform/v1/approvers/bob/keys";
    let (one, two) = (format!("{bobs}/one"), format!("{bobs}/two"));
    let first = registration(&cluster.tenant, "bob", "one", &signing_key(4));
    let second = registration(&cluster.tenant, "bob", "two", &signing_key(5));
    let (one, two) = tokio::join!(left.put(&one, &first), right.put(&two, &second));
    let mut statuses = [one.status, two.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 403]);
    let count = "select count(*) from signing_keys where approver_id = 'bob'";
    assert_eq!(cluster.database.number(count).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_cannot_be_trusted_is_not_registered() {
    let cluster = Cluster::start(1).await;
    let alice = cluster.approver("alice").await.client;
    let admin = cluster.admin().await;
    let good = *signing_key(1).verifying_key().as_bytes();
    let encode = |bytes: &[u8]| json!(URL_SAFE_NO_PAD.encode(bytes));
    let low = |first: u8| {
        let mut bytes = [0; 32];
        bytes[0] = first;
        bytes
    };
    // y = -1, of order two.
    let mut minus_one = [0xff; 32];
    (minus_one[0], minus_one[31]) = (0xec, 0x7f);
    let no_point = (2..=255)
        .map(low)
        .find(|bytes| ed25519_dalek::VerifyingKey::from_bytes(bytes).is_err())
        .expect("half of all numbers are no point");
    let with_plus = (0..=255)
        .map(|number| STANDARD.encode(signing_key(number).verifying_key().as_bytes()))
        .find(|text| text.contains('+') || text.contains('/'))
        .expect("the other alphabet");
    let bad = [
        encode(&low(0)),
        encode(&low(1)),
        encode(&minus_one),
        encode(&no_point),
        encode(&good[1..]),
        encode(&[good.as_slice(), &[0]].concat()),
        json!(with_plus),
        json!("not base64url!"),
        json!(""),
        json!(7),
        json!(null),
    ];
    for key in bad {
        for client in [&alice, &admin] {
            let answer = client.put(&path("k"), &json!({ "publicKey": key })).await;
            answer.refused_at(400, "VALIDATION", "/publicKey");
        }
    }
    let good = proven(&cluster, "k", 1);
    let at = json!(in_time(60));
    let upside_down = with(&with(&good, "/notBefore", at.clone()), "/notAfter", at);
    for (body, code, pointer) in [
        (json!({}), "VALIDATION", "/publicKey"),
        (
            with(&good, "/surprise", json!(1)),
            "VALIDATION",
            "/surprise",
        ),
        (
            with(&good, "/notBefore", json!("now")),
            "TIMESTAMP",
            "/notBefore",
        ),
        (
            with(&good, "/notAfter", json!(1)),
            "VALIDATION",
            "/notAfter",
        ),
        (upside_down, "VALIDATION", "/notAfter"),
    ] {
        let answer = alice.put(&path("k"), &body).await;
        answer.refused_at(400, code, pointer);
    }
    let long = format!("{KEYS}/{}", "k".repeat(129));
    let answer = alice.put(&long, &good).await.refused(400, "VALIDATION");
    assert_eq!(answer.detail("parameter"), "signerKeyId");
    let count = "select count(*) from signing_keys";
    assert_eq!(
        cluster.database.number(count).await,
        0,
        "none of them was the first"
    );

    let mut padded = proven(&cluster, "k", 1);
    let bytes = URL_SAFE_NO_PAD
        .decode(padded["publicKey"].as_str().unwrap())
        .unwrap();
    padded["publicKey"] = json!(URL_SAFE.encode(&bytes));
    padded["notBefore"] = json!(in_time(-60));
    padded["notAfter"] = json!(in_time(60));
    alice.put(&path("k"), &padded).await.expect(200);
    let listed = items(&alice.get(KEYS).await.expect(200)).remove(0);
    assert_eq!(
        listed["publicKey"],
        body(1)["publicKey"],
        "one spelling for each key"
    );
    assert!(PublicKey::from_bytes(&bytes).is_some());
    for name in ["notBefore", "notAfter"] {
        assert_eq!(listed[name], printed(&padded[name]));
    }
    // An approver cannot prolong a key that it may not add; an administrator can.
    let open_ended = proven(&cluster, "k", 1);
    let mut longer = open_ended.clone();
    longer["notBefore"] = padded["notBefore"].clone();
    longer["notAfter"] = json!(in_time(600));
    for other in [&open_ended, &longer] {
        let answer = alice.put(&path("k"), other).await;
        answer.refused(403, "FORBIDDEN");
    }
    alice.put(&path("k"), &padded).await.expect(200);
    let listed = items(&alice.get(KEYS).await.expect(200)).remove(0);
    assert_eq!(listed["notAfter"], printed(&padded["notAfter"]));
    admin.put(&path("k"), &open_ended).await.expect(200);
    let listed = items(&alice.get(KEYS).await.expect(200)).remove(0);
    assert!(listed.get("notAfter").is_none(), "{listed}");
}
