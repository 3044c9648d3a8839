//! Channels opened with tokens: they end with the token, with its tenant, and when it is revoked.

use std::time::{Duration, Instant};

use serde_json::json;

use super::issuer::{IssuerKey, active, claims, unix};
use super::provider::Says;
use super::{Provider, alice, by_introspection, by_jwt, not_taken, scene, try_token};
use crate::support::push::{Socket, Stream};
use crate::support::{Cluster, until, with};

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_ends_when_its_token_does() {
    let key = IssuerKey::new("k1", "EdDSA");
    let provider = Provider::start(&[&key]).await;
    let cluster = Cluster::with(1, |config| {
        by_jwt(config, &provider);
        by_introspection(config, &provider);
        config.auth.jwt_leeway_seconds = 0;
    })
    .await;
    let end = unix(6);
    let signed = key.sign(&with(&alice(&cluster), "/exp", json!(end)));
    let said = active(cluster.tenant.as_str(), "approver", "alice");
    provider.know("opaque", Says::Json(with(&said, "/exp", json!(end))));
    let url = &cluster.nodes[0].url;
    for token in [signed.as_str(), "opaque"] {
        let mut socket = Socket::connect(url, "approver", "alice", token)
            .await
            .unwrap();
        let mut stream = Stream::connect(url, "approvers", "alice", token, None)
            .await
            .unwrap();
        if token == "opaque" {
            let (code, ()) = tokio::join!(socket.closed(), stream.ended());
            assert_eq!(code, 1008);
            assert!((0..8).contains(&(unix(0) - end)), "{}", unix(0) - end);
        }
    }
    for token in [signed.as_str(), "opaque"] {
        not_taken(try_token(&cluster, token).await, token);
        let refused = Socket::connect(url, "approver", "alice", token).await;
        assert_eq!(refused.err(), Some(401));
    }
    until("both are gone", Duration::from_secs(5), async || {
        cluster.nodes[0].gateway.channels.channel_count() == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_jwt_channel_is_closed_with_1008_at_its_end() {
    let key = IssuerKey::new("k1", "ES256");
    let (cluster, _provider) = scene(1, &[&key]).await;
    let bot = claims(cluster.tenant.as_str(), "enforcer", "build-bot");
    let token = key.sign(&with(&bot, "/exp", json!(unix(3))));
    let url = &cluster.nodes[0].url;
    let mut socket = Socket::connect(url, "enforcer", "build-bot", &token)
        .await
        .unwrap();
    let mut stream = Stream::connect(url, "enforcers", "build-bot", &token, None)
        .await
        .unwrap();
    let (code, ()) = tokio::join!(socket.closed(), stream.ended());
    assert_eq!(code, 1008);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_tenant_stops_its_tokens_everywhere_within_5_s() {
    let key = IssuerKey::new("k1", "EdDSA");
    let (cluster, _provider) = scene(2, &[&key]).await;
    let other = cluster.administration.create_tenant("other").await.unwrap();
    let token = key.sign(&alice(&cluster));
    let others = key.sign(&claims(other.as_str(), "approver", "alice"));
    let mut sockets = Vec::new();
    for node in &cluster.nodes {
        let socket = Socket::connect(&node.url, "approver", "alice", &token).await;
        sockets.push(socket.unwrap());
    }
    let url = &cluster.nodes[0].url;
    let mut spared = Socket::connect(url, "approver", "alice", &others)
        .await
        .unwrap();
    let tenant = &cluster.tenant;
    cluster
        .operator()
        .delete(&format!("/platform/v1/tenants/{tenant}"))
        .await
        .expect(204);
    let disabled = Instant::now();
    let client = cluster.client(Some(&token));
    let nodes = [client.on(0), client.on(1)];
    until("both nodes refuse it", Duration::from_secs(6), async || {
        let (one, two) = tokio::join!(nodes[0].get(super::INBOX), nodes[1].get(super::INBOX));
        one.status == 401 && two.status == 401
    })
    .await;
    for socket in &mut sockets {
        assert_eq!(socket.closed().await, 1008);
    }
    assert!(disabled.elapsed() < Duration::from_secs(6), "within 5 s");
    not_taken(try_token(&cluster, &token).await, "disabled");
    try_token(&cluster, &others).await.expect(200);
    assert!(spared.is_silent(Duration::from_millis(500)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_token_loses_its_channels_too() {
    let provider = Provider::start(&[]).await;
    let cluster = Cluster::with(1, |config| {
        by_introspection(config, &provider);
        config.auth.introspection_cache_seconds = 2;
    })
    .await;
    let said = active(cluster.tenant.as_str(), "approver", "alice");
    provider.know("revoked", Says::Json(said.clone()));
    provider.know("unheard-of", Says::Json(said));
    let url = &cluster.nodes[0].url;
    let mut socket = Socket::connect(url, "approver", "alice", "revoked")
        .await
        .unwrap();
    let mut stream = Stream::connect(url, "approvers", "alice", "revoked", None)
        .await
        .unwrap();
    let mut spared = Socket::connect(url, "approver", "alice", "unheard-of")
        .await
        .unwrap();
    provider.know("revoked", Says::Json(json!({ "active": false })));
    // A channel that nobody can judge stays.
    provider.know("unheard-of", Says::Text(500, String::new()));
    let (code, ()) = tokio::join!(socket.closed(), stream.ended());
    assert_eq!(code, 1008);
    assert!(spared.is_silent(Duration::from_secs(3)).await);
    // But not for ever.
    cluster.pass(Duration::from_secs(301));
    assert_eq!(spared.closed().await, 1008);
}
