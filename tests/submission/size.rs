//! How much may be sent, and as what.

use reqwest::Method;
use serde_json::{Value, json};

use super::EXCHANGES;
use crate::support::{Cluster, compact, envelope, hashed, open, raw, request_id, sealed};

/// An open artifact whose payload's text has this many bytes.
fn open_of(bytes: usize) -> Value {
    let mut artifact = open(&request_id());
    artifact["payload"] = json!({ "t": "x".repeat(bytes - r#"{"t":""}"#.len()) });
    hashed(artifact)
}

#[tokio::test(flavor = "multi_thread")]
async fn payloads_and_bodies_over_their_limits_are_refused() {
    let cluster = Cluster::with(1, |config| {
        config.limits.artifact_bytes = 2_000;
        config.limits.envelope_bytes = 1_000;
        config.limits.body_bytes = 1_500;
    })
    .await;
    let enforcer = cluster.enforcer("build-bot").await;
    let sealed_of = |bytes: usize| {
        let mut body = sealed();
        body["ciphertext"]["data"] = json!("x".repeat(bytes));
        body
    };
    enforcer
        .submit(&request_id(), "alice", sealed_of(2_000))
        .await
        .expect(202);
    let answer = enforcer
        .submit(&request_id(), "alice", sealed_of(2_001))
        .await;
    let answer = answer.refused_at(413, "TOO_LARGE", "/body/ciphertext/data");
    assert_eq!(answer.detail("limit"), 2_000);
    for (bytes, status) in [(2_000, 202), (2_001, 413)] {
        let artifact = open_of(bytes);
        let request = artifact["requestId"].as_str().unwrap().to_owned();
        let answer = enforcer
            .submit(&request, "alice", artifact)
            .await
            .expect(status);
        if status == 413 {
            answer.refused_at(413, "TOO_LARGE", "/body/payload");
        }
    }

    let mut message = enforcer.submission(&request_id(), "alice", sealed());
    message["trace"] = json!({ "pad": "" });
    let room = 3_000 - message.to_string().len();
    message["trace"]["pad"] = json!("x".repeat(room + 1));
    let refused = enforcer.client.post("/v1/artifacts", &message).await;
    let refused = refused.refused(413, "TOO_LARGE");
    assert_eq!(refused.detail("limit"), 3_000);
    assert_eq!(refused.header("connection"), Some("close"));
    message["trace"]["pad"] = json!("x".repeat(room));
    enforcer
        .client
        .post("/v1/artifacts", &message)
        .await
        .expect(202);

    let approver = cluster.approver("alice").await;
    let request = message["requestId"].as_str().unwrap();
    let mut decision = compact("approve");
    decision["reason"] = json!("x".repeat(1_500));
    let refused = approver.decide(request, decision.clone()).await;
    assert_eq!(refused.refused(413, "TOO_LARGE").detail("limit"), 1_500);
    decision["reason"] = json!("x".repeat(500));
    approver.decide(request, decision).await.expect(200);
    assert_eq!(cluster.database.number(EXCHANGES).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_mebibytes_pass_and_a_longer_body_is_refused_before_it_is_read() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let approver = cluster.approver("alice").await;
    let request = request_id();
    let mut body = sealed();
    body["ciphertext"]["data"] = json!("x".repeat(2 << 20));
    enforcer
        .submit(&request, "alice", body.clone())
        .await
        .expect(202);
    let item = approver.inbox("").await.expect(200).body("/items/0/body");
    assert_eq!(item["ciphertext"], body["ciphertext"]);

    let url = enforcer.client.url(0);
    let head = |path: &str, key: &str, length: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n{length}"
        )
    };
    let key = enforcer.client.key();
    let over = (2_u64 << 20) + (64 << 10) + 1;
    for length in [over, 1_u64 << 40] {
        let head = head("/v1/artifacts", key, &format!("content-length: {length}"));
        let refused = raw::send(url, &head, b"").await.refused(413, "TOO_LARGE");
        assert_eq!(refused.detail("limit"), over - 1);
    }
    let key = approver.client.key();
    let small = head("/v1/decisions", key, "content-length: 262145");
    let refused = raw::send(url, &small, b"").await;
    assert_eq!(refused.refused(413, "TOO_LARGE").detail("limit"), 262_144);
    let chunked = head("/v1/decisions", key, "transfer-encoding: chunked");
    let mut chunk = b"40001\r\n".to_vec();
    chunk.resize(chunk.len() + 0x40001, b' ');
    let refused = raw::send(url, &chunked, &chunk).await;
    assert_eq!(refused.refused(413, "TOO_LARGE").detail("limit"), 262_144);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_must_be_said_to_be_json_and_not_be_compressed() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let send = async |headers: &[(&str, &str)]| {
        let message = enforcer.submission(&request_id(), "alice", sealed());
        let mut call = enforcer.client.call(Method::POST, "/v1/artifacts");
        for (name, value) in headers {
            call = call.header(name, value);
        }
        call.bytes(message.to_string().into_bytes()).send().await
    };
    for refused in [
        None,
        Some("text/plain"),
        Some("application/other+json"),
        Some("application/jsonp"),
        Some(""),
    ] {
        let headers: Vec<_> = refused
            .map(|kind| ("content-type", kind))
            .into_iter()
            .collect();
        let answer = send(&headers).await.refused(415, "UNSUPPORTED_MEDIA_TYPE");
        assert_eq!(
            answer.header("content-type"),
            Some("application/proto+json")
        );
    }
    let json = ("content-type", "application/json");
    for encoding in ["gzip", "br", "identity, gzip"] {
        let answer = send(&[json, ("content-encoding", encoding)]).await;
        answer.refused(415, "UNSUPPORTED_MEDIA_TYPE");
    }
    assert_eq!(cluster.database.number(EXCHANGES).await, 0);
    for kind in [
        "application/json",
        "application/proto+json",
        "Application/PROTO+JSON; charset=utf-8",
        "application/json;charset=UTF-8",
    ] {
        send(&[("content-type", kind)]).await.expect(202);
    }
    send(&[json, ("content-encoding", "identity")])
        .await
        .expect(202);
    let withdrawal = envelope(
        "exchange.withdrawn",
        "r",
        json!({ "enforcerId": "build-bot" }),
        json!({}),
    );
    let call = enforcer
        .client
        .call(Method::POST, "/v1/exchanges/r/withdraw");
    let call = call.bytes(withdrawal.to_string().into_bytes());
    call.send().await.refused(415, "UNSUPPORTED_MEDIA_TYPE");
}
