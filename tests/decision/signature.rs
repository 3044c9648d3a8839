//! Signatures on decisions: which must verify, under which key, and when.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use countersign::protocol::decision::Verify;
use countersign::protocol::signature::{PublicKey, Signature};
use serde_json::{Value, json};
use sqlx::Connection as _;

use super::{DECIDED, pending};
use crate::support::{
    Approver, Client, Cluster, HASH, compact, full, in_time, public_key, registration, sealed,
    signed, signing_key, with,
};

/// Registers one of alice's keys as an administrator.
async fn register(admin: &Client, id: &str, number: u8, extra: Value) {
    let mut body = extra;
    body["publicKey"] = json!(public_key(&signing_key(number)));
    admin
        .put(&format!("/platform/v1/approvers/alice/keys/{id}"), &body)
        .await
        .expect(200);
}

/// A compact decision that names a key.
fn by(id: &str) -> Value {
    with(&compact("approve"), "/signerKeyId", json!(id))
}

#[test]
fn the_published_vector_verifies_and_what_was_printed_beside_it_later_does_not() {
    let vector: Value =
        serde_json::from_str(include_str!("../vectors/ed25519.json")).expect("JSON");
    let text = |name: &str| vector[name].as_str().expect("text");
    let key = PublicKey::parse(text("publicKey")).expect("a key");
    let signature = Signature::parse(text("signature")).expect("a signature");
    let rows = vector["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 2);
    for row in rows {
        let message = row["message"].as_str().expect("a message");
        assert_eq!(key.verifies(message.as_bytes(), &signature), row["valid"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn once_an_approver_has_a_key_its_decisions_must_verify() {
    let (cluster, enforcer, alice) = super::parties(2).await;
    let admin = cluster.admin().await;
    let request = pending(&enforcer).await;
    let before = alice.decide(&request, compact("approve")).await.expect(200);
    assert_eq!(before.body("/verified"), false, "there is no key yet");

    register(&admin, "k1", 1, json!({})).await;
    register(&admin, "k2", 2, json!({})).await;
    let request = pending(&enforcer).await;
    let good = signed(by("k1"), &signing_key(1));
    let padded = URL_SAFE.encode(
        URL_SAFE_NO_PAD
            .decode(good["signature"].as_str().unwrap())
            .unwrap(),
    );
    assert!(padded.ends_with("=="));
    let refused = [
        compact("approve"),
        by("k1"),
        signed(by("k1"), &signing_key(2)),
        signed(by("k3"), &signing_key(1)),
        signed(by("K1"), &signing_key(1)),
        with(&good, "/nonce", json!("another")),
        with(&good, "/decision", json!("reject")),
        with(&good, "/reason", json!("added after signing")),
        with(
            &good,
            "/signature",
            json!(malleable(good["signature"].as_str().unwrap())),
        ),
    ];
    for body in refused {
        let answer = alice.decide(&request, body).await;
        answer.refused_at(403, "SIGNATURE_INVALID", "/body/signature");
    }
    assert_eq!(enforcer.state(&request).await, "pendingApproval");
    let accepted = alice.decide(&request, good.clone()).await.expect(200);
    assert_eq!(accepted.body("/verified"), true);
    // Padding is another spelling of the same signature.
    let again = with(&good, "/signature", json!(padded));
    let again = alice.decide(&request, again).await.expect(200);
    assert_eq!(
        (again.body("/duplicate"), again.body("/verified")),
        (json!(true), json!(true))
    );

    let request = pending(&enforcer).await;
    let mut body = full(&request, HASH);
    body["signerKeyId"] = json!("k2");
    body["policyHints"] = json!({ "z": 1.5, "a": "é" });
    let body = signed(body, &signing_key(2));
    let changed = with(&body, "/policyHints/z", json!(1.25));
    alice
        .decide(&request, changed)
        .await
        .refused(403, "SIGNATURE_INVALID");
    assert_eq!(
        alice
            .decide(&request, body)
            .await
            .expect(200)
            .body("/verified"),
        true
    );

    // A key is alice's alone.
    let bob = cluster.approver("bob").await;
    let request = crate::support::request_id();
    enforcer.submit(&request, "bob", sealed()).await.expect(202);
    let free = bob.decide(&request, compact("reject")).await.expect(200);
    assert_eq!(free.body("/verified"), false);
    let verified = "select string_agg(verified::text, ',' order by decided_at) from exchanges";
    assert_eq!(
        cluster.database.text(verified).await,
        "false,true,true,false"
    );
}

/// The signature with the group's order added to its scalar: valid to a lenient verifier.
fn malleable(signature: &str) -> String {
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde,
        0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let mut bytes = URL_SAFE_NO_PAD.decode(signature).unwrap();
    let mut carry = 0;
    for (byte, add) in bytes[32..].iter_mut().zip(ORDER) {
        let sum = u16::from(*byte) + u16::from(add) + carry;
        *byte = sum.to_le_bytes()[0];
        carry = sum >> 8;
    }
    assert_eq!(carry, 0);
    URL_SAFE_NO_PAD.encode(bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_counts_only_within_its_time_and_until_it_is_revoked() {
    let (cluster, enforcer, alice) = super::parties(2).await;
    let admin = cluster.admin().await;
    register(&admin, "early", 1, json!({ "notAfter": in_time(600) })).await;
    register(
        &admin,
        "late",
        2,
        json!({ "notBefore": in_time(600), "notAfter": in_time(1_200) }),
    )
    .await;
    register(&admin, "gone", 3, json!({})).await;
    let try_with = async |id: &str, number: u8| {
        let request = pending(&enforcer).await;
        alice
            .decide(&request, signed(by(id), &signing_key(number)))
            .await
    };
    try_with("early", 1).await.expect(200);
    try_with("late", 2).await.refused(403, "SIGNATURE_INVALID");
    let before = pending(&enforcer).await;
    let decision = signed(by("gone"), &signing_key(3));
    alice.decide(&before, decision.clone()).await.expect(200);
    let gone = "/platform/v1/approvers/alice/keys/gone";
    alice.client.delete(gone).await.expect(204);
    let refused = try_with("gone", 3).await;
    refused.refused_at(403, "KEY_REVOKED", "/body/signerKeyId");
    let answer = alice.decide(&before, decision).await;
    answer.refused(403, "KEY_REVOKED");
    assert_eq!(
        enforcer.state(&before).await,
        "decided",
        "what was decided stays"
    );

    cluster.pass(Duration::from_secs(601));
    try_with("early", 1).await.refused(403, "SIGNATURE_INVALID");
    try_with("late", 2).await.expect(200);
    cluster.pass(Duration::from_secs(600));
    try_with("late", 2).await.refused(403, "SIGNATURE_INVALID");

    // With every key revoked, alice is not back to having none.
    for id in ["early", "late"] {
        let path = format!("/platform/v1/approvers/alice/keys/{id}");
        admin.delete(&path).await.expect(204);
    }
    let request = pending(&enforcer).await;
    let answer = alice.decide(&request, compact("approve")).await;
    answer.refused(403, "SIGNATURE_INVALID");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_must_verify_is_a_setting() {
    let of = async |verify: Verify| {
        let cluster = Cluster::with(1, |config| config.decisions.verify = verify).await;
        let alice = cluster.approver("alice").await;
        (
            cluster.enforcer("build-bot").await,
            cluster.admin().await,
            alice,
            cluster,
        )
    };
    let verified = async |alice: &Approver, request: &str, body: Value| {
        alice
            .decide(request, body)
            .await
            .expect(200)
            .body("/verified")
    };

    let (enforcer, admin, alice, _cluster) = of(Verify::Required).await;
    let request = pending(&enforcer).await;
    let answer = alice.decide(&request, compact("approve")).await;
    answer.refused(403, "SIGNATURE_INVALID");
    register(&admin, "k1", 1, json!({})).await;
    let body = signed(by("k1"), &signing_key(1));
    assert_eq!(verified(&alice, &request, body).await, true);

    let (enforcer, admin, alice, _cluster) = of(Verify::Off).await;
    register(&admin, "k1", 1, json!({})).await;
    let request = pending(&enforcer).await;
    assert_eq!(verified(&alice, &request, by("k1")).await, false);
    let request = pending(&enforcer).await;
    let short = with(&by("k1"), "/signature", json!("short"));
    let answer = alice.decide(&request, short).await;
    answer.refused_at(400, "VALIDATION", "/body/signature");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_revoked_while_the_decision_waits_for_the_exchange_does_not_decide_it() {
    let (cluster, enforcer, alice) = super::parties(2).await;
    let admin = cluster.admin().await;
    register(&admin, "k1", 1, json!({})).await;
    let request = pending(&enforcer).await;
    let mut connection = cluster.database.connect().await;
    let mut transaction = connection.begin().await.unwrap();
    sqlx::raw_sql("select from exchanges for update")
        .execute(&mut *transaction)
        .await
        .unwrap();
    let decision = signed(by("k1"), &signing_key(1));
    let (answer, ()) = tokio::join!(alice.decide(&request, decision.clone()), async {
        cluster.busy("decide").await;
        let revoked = admin.delete("/platform/v1/approvers/alice/keys/k1").await;
        revoked.expect(204);
        transaction.commit().await.unwrap();
    });
    answer.refused_at(403, "KEY_REVOKED", "/body/signerKeyId");
    assert_eq!(enforcer.state(&request).await, "pendingApproval");
    assert_eq!(cluster.database.number(DECIDED).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_key_registered_while_a_decision_waits_for_the_exchange_counts() {
    let cluster = Cluster::start(2).await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    let request = crate::support::request_id();
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    let mut holding = cluster.database.locking(&request).await;
    let deciding = async { approver.decide(&request, compact("approve")).await };
    let registering = async {
        cluster.busy("decide").await;
        let key = registration(&cluster.tenant, "alice", "key-9", &signing_key(1));
        let path = "/platform/v1/approvers/alice/keys/key-9";
        approver.client.put(path, &key).await.expect(200);
        crate::support::database::finish(&mut holding, "commit").await;
    };
    let (decided, ()) = tokio::join!(deciding, registering);
    decided.refused(403, "SIGNATURE_INVALID");
    assert_eq!(enforcer.state(&request).await, "pendingApproval");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_a_node_has_used_is_not_trusted_past_what_becomes_of_it_elsewhere() {
    let (cluster, enforcer, alice) = super::parties(2).await;
    let admin = cluster.admin().await;
    let (here, elsewhere) = (alice.on(0), admin.on(1));
    let decide = async |number: u8| {
        let request = pending(&enforcer).await;
        let body = signed(by(&format!("k{number}")), &signing_key(number));
        here.decide(&request, body).await
    };
    for number in [1, 2] {
        register(&elsewhere, &format!("k{number}"), number, json!({})).await;
        decide(number).await.expect(200);
    }
    // Limited: the same key, and its time is over.
    register(&elsewhere, "k1", 1, json!({ "notAfter": in_time(-1) })).await;
    decide(1)
        .await
        .refused_at(403, "SIGNATURE_INVALID", "/body/signature");
    elsewhere
        .delete("/platform/v1/approvers/alice/keys/k2")
        .await
        .expect(204);
    decide(2)
        .await
        .refused_at(403, "KEY_REVOKED", "/body/signerKeyId");
    // Given time again, it counts at once.
    register(&elsewhere, "k1", 1, json!({})).await;
    decide(1).await.expect(200);
}
