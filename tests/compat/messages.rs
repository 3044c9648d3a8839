//! Submissions, acknowledgements and withdrawals of the dialect.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{compat_enforcer, refused};
use crate::support::{
    Cluster, compact, envelope, hashed, in_time, now, open, request_id, sealed, with,
};

fn time(value: &Value) -> OffsetDateTime {
    OffsetDateTime::parse(value.as_str().expect("a time"), &Rfc3339).expect("a time")
}

/// A sealed artifact that expires when it is created, as the libraries send it by default.
fn expiring_now() -> Value {
    with(&sealed(), "/expiresAt", json!(now()))
}

#[tokio::test(flavor = "multi_thread")]
async fn null_means_absent_and_the_ciphertext_is_passed_on_as_it_was_sent() {
    let cluster = Cluster::start(1).await;
    let (bot, alice) = (
        compat_enforcer(&cluster, "build-bot").await,
        cluster.approver("alice").await,
    );
    let ciphertext =
        r#"{ "alg":"AES-256-GCM","data":"c2VhbGVk", "nonce":null,"tag": null,"aad":null }"#;
    let request = request_id();
    let body = with(&sealed(), "/metadata", json!(null));
    let sent = bot.submission(&request, "alice", with(&body, "/ciphertext", json!("HERE")));
    let sent = sent.to_string().replace("\"HERE\"", ciphertext);
    let call = bot.client.call(Method::POST, "/v1/artifacts").text(&sent);
    call.send().await.expect(202);
    let inbox = alice.inbox("").await.expect(200);
    assert!(inbox.text.contains(ciphertext), "{}", inbox.text);
    assert!(!inbox.text.contains("metadata"), "{}", inbox.text);

    // Not for anybody else.
    let strict = cluster.enforcer("strict-bot").await;
    for (pointer, at) in [
        ("/metadata", "/body/metadata"),
        ("/ciphertext/nonce", "/body/ciphertext/nonce"),
        ("/ciphertext/tag", "/body/ciphertext/tag"),
        ("/ciphertext/aad", "/body/ciphertext/aad"),
    ] {
        let body = with(&sealed(), pointer, json!(null));
        let answer = strict.submit(&request_id(), "alice", body).await;
        answer.refused_at(400, "VALIDATION", at);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn null_is_refused_for_a_required_member() {
    let cluster = Cluster::start(1).await;
    let bot = compat_enforcer(&cluster, "build-bot").await;
    let before = cluster.database.counts().await;
    for pointer in [
        "/artifactType",
        "/artifactHash",
        "/expiresAt",
        "/ciphertext",
        "/ciphertext/alg",
        "/ciphertext/data",
    ] {
        let body = with(&sealed(), pointer, json!(null));
        let answer = bot.submit(&request_id(), "alice", body).await;
        refused(&answer, 400, "validation");
    }
    for member in [
        "requestId",
        "createdAt",
        "sender",
        "recipient",
        "body",
        "trace",
        "expiresAt",
    ] {
        let mut sent = bot.submission(&request_id(), "alice", sealed());
        sent[member] = json!(null);
        assert_eq!(
            bot.client.post("/v1/artifacts", &sent).await.status,
            400,
            "{member}"
        );
    }
    assert_eq!(cluster.database.counts().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_request_that_expires_at_once_lives_ten_minutes_everywhere() {
    let cluster = Cluster::start(1).await;
    let (bot, alice) = (
        compat_enforcer(&cluster, "build-bot").await,
        cluster.approver("alice").await,
    );
    let request = request_id();
    let accepted = bot
        .submit(&request, "alice", expiring_now())
        .await
        .expect(202);
    let expires_at = accepted.body("/expiresAt");
    let left = time(&expires_at) - time(&json!(now()));
    assert!((595.0..=600.0).contains(&left.as_seconds_f64()), "{left}");
    assert_eq!(
        bot.status(&request).await.expect(200).body("/expiresAt"),
        expires_at
    );
    let item = &alice.inbox("").await.expect(200).body("/items/0");
    assert_eq!(time(&item["expiresAt"]), time(&expires_at));
    assert_eq!(time(&item["body"]["expiresAt"]), time(&expires_at));
    // A repeat is one, and moves nothing.
    let again = bot
        .submit(&request, "alice", expiring_now())
        .await
        .expect(202);
    assert_eq!(
        (again.body("/duplicate"), again.body("/expiresAt")),
        (json!(true), expires_at)
    );
    cluster.pass(Duration::from_secs(601));
    assert_eq!(bot.state(&request).await, "expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_else_that_has_expired_is_revived() {
    let cluster = Cluster::start(1).await;
    let bot = compat_enforcer(&cluster, "build-bot").await;
    let strict = cluster.enforcer("strict-bot").await;
    let before = cluster.database.counts().await;
    // Of a strict client.
    let answer = strict.submit(&request_id(), "alice", expiring_now()).await;
    answer.refused(422, "EXPIRED");
    // An expiry of its own, which is over.
    let over = with(&sealed(), "/expiresAt", json!(in_time(-5)));
    refused(
        &bot.submit(&request_id(), "alice", over).await,
        410,
        "expired",
    );
    // A replay of what was sent two minutes ago.
    let mut old = bot.submission(
        &request_id(),
        "alice",
        with(&sealed(), "/expiresAt", json!(in_time(-120))),
    );
    old["createdAt"] = json!(in_time(-120));
    refused(
        &bot.client.post("/v1/artifacts", &old).await,
        410,
        "expired",
    );
    let fresh = bot.submission(&request_id(), "alice", expiring_now());
    cluster.pass(Duration::from_secs(90));
    refused(
        &bot.client.post("/v1/artifacts", &fresh).await,
        410,
        "expired",
    );
    assert_eq!(cluster.database.counts().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_artifact_and_other_ways_to_submit_are_read_strictly() {
    let cluster = Cluster::start(1).await;
    let bot = compat_enforcer(&cluster, "build-bot").await;
    let before = cluster.database.counts().await;
    let request = request_id();
    let artifact = hashed(with(&open(&request), "/expiresAt", json!(now())));
    refused(
        &bot.submit(&request, "alice", artifact).await,
        410,
        "expired",
    );
    let artifact = hashed(with(&open(&request), "/metadata", json!(null)));
    refused(
        &bot.submit(&request, "alice", artifact).await,
        422,
        "invalid_artifact",
    );
    // The envelope names the same expiry, so the client has chosen it.
    let mut sent = bot.submission(&request, "alice", expiring_now());
    sent["expiresAt"] = sent["body"]["expiresAt"].clone();
    refused(
        &bot.client.post("/v1/artifacts", &sent).await,
        410,
        "expired",
    );
    let generic = bot.submission(&request, "alice", expiring_now());
    let answer = bot.client.post("/v1/artifact", &generic).await;
    refused(&answer, 410, "expired");
    assert_eq!(cluster.database.counts().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn delivered_acknowledges_a_decision_and_nothing_moves_an_exchange_that_is_none() {
    let cluster = Cluster::start(1).await;
    let (bot, alice) = (
        compat_enforcer(&cluster, "build-bot").await,
        cluster.approver("alice").await,
    );
    let ack = |message: &str| {
        let body = json!({ "msgId": message, "status": "delivered", "ackAt": now() });
        envelope("ack.submit", message, json!({}), body)
    };
    let request = request_id();
    let mut sent = bot.submission(&request, "alice", sealed());
    let own = request_id();
    sent["msgId"] = json!(own);
    bot.client.post("/v1/artifacts", &sent).await.expect(202);
    let asked = alice.inbox("").await.expect(200).body("/items/0/msgId");
    for message in [own.as_str(), asked.as_str().unwrap(), "msg-1"] {
        let answer = bot.client.post("/v1/acks", &ack(message)).await;
        refused(&answer, 404, "not_found");
        assert_eq!(bot.state(&request).await, "pendingApproval");
    }
    alice.decide(&request, compact("approve")).await.expect(200);
    let decided = bot.wait(&request, 5).await.expect(200).json();
    let message = decided["msgId"].as_str().unwrap();
    for message in [own.as_str(), asked.as_str().unwrap()] {
        refused(
            &bot.client.post("/v1/acks", &ack(message)).await,
            404,
            "not_found",
        );
        assert_eq!(bot.state(&request).await, "decided");
    }
    let strict = cluster.enforcer("build-bot").await;
    let answer = strict.client.post("/v1/acks", &ack(message)).await;
    answer.refused_at(400, "VALIDATION", "/body/status");
    let acked = bot.client.post("/v1/acks", &ack(message)).await.expect(200);
    assert_eq!(acked.body("/status"), "processed");
    assert_eq!(bot.state(&request).await, "delivered");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawal_may_have_the_body_null() {
    let cluster = Cluster::start(1).await;
    let bot = compat_enforcer(&cluster, "build-bot").await;
    let strict = cluster.enforcer("build-bot").await;
    let other = compat_enforcer(&cluster, "other-bot").await;
    let request = request_id();
    bot.submit(&request, "alice", sealed()).await.expect(202);
    let path = format!("/v1/exchanges/{request}/withdraw");
    let answer = strict.client.post(&path, &json!(null)).await;
    answer.refused(400, "VALIDATION");
    refused(
        &other.client.post(&path, &json!(null)).await,
        404,
        "not_found",
    );
    bot.client.post(&path, &json!(null)).await.expect(200);
    assert_eq!(bot.state(&request).await, "withdrawn");
}
