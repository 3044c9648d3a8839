//! The issuer's keys: how they change, what happens while they cannot be read, and that nobody
//! makes us read them often.

use std::time::Duration;

use serde_json::json;
use tokio::net::TcpListener;

use super::issuer::IssuerKey;
use super::provider::Says;
use super::{AUDIENCE, ISSUER, Provider, alice, by_jwt, not_taken, scene, try_token};
use crate::support::{Cluster, crowd, until};

const PATIENCE: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_works_at_once_and_a_removed_one_stops() {
    let (old, new) = (
        IssuerKey::new("old", "ES256"),
        IssuerKey::new("new", "EdDSA"),
    );
    let provider = Provider::start(&[&old]).await;
    let cluster = Cluster::with(1, |config| {
        by_jwt(config, &provider);
        config.auth.jwt_jwks_refresh_seconds = 2;
    })
    .await;
    let (by_old, by_new) = (old.sign(&alice(&cluster)), new.sign(&alice(&cluster)));
    try_token(&cluster, &by_old).await.expect(200);
    provider.publish(&[&old, &new]);
    try_token(&cluster, &by_new).await.expect(200);
    try_token(&cluster, &by_old).await.expect(200);
    provider.publish(&[&new]);
    until("the removed key stops", PATIENCE, async || {
        try_token(&cluster, &by_old).await.status == 401
    })
    .await;
    try_token(&cluster, &by_new).await.expect(200);
    // Even all of them can be taken back.
    provider.publish(&[]);
    until("every key is gone", PATIENCE, async || {
        try_token(&cluster, &by_new).await.status == 401
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_unknown_keys_sends_us_to_the_issuer_once_in_30_s() {
    let key = IssuerKey::new("known", "EdDSA");
    let (cluster, provider) = scene(1, &[&key]).await;
    let good = key.sign(&alice(&cluster));
    try_token(&cluster, &good).await.expect(200);
    let read = provider.keys_read();
    provider.publish_as(Says::Late(
        Duration::from_millis(200),
        json!({ "keys": [key.jwk()] }),
    ));
    let client = &cluster.client(None);
    let flood = async |count: usize| {
        let calls = (0..count).map(|number| {
            let stranger = IssuerKey::new(&format!("unknown-{number}"), "EdDSA");
            let token = stranger.sign(&alice(&cluster));
            async move {
                let call = client.call(reqwest::Method::GET, super::INBOX);
                call.header("x-api-key", &token).send().await
            }
        });
        for answer in futures_util::future::join_all(calls).await {
            not_taken(answer, "an unknown key");
        }
    };
    let crowd = crowd(500).await;
    flood(crowd.size).await;
    assert_eq!(provider.keys_read(), read + 1);
    cluster.pass(Duration::from_secs(15));
    flood(20).await;
    assert_eq!(provider.keys_read(), read + 1);
    cluster.pass(Duration::from_secs(16));
    flood(100).await;
    assert_eq!(provider.keys_read(), read + 2);
    try_token(&cluster, &good).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_starts_without_its_issuer_and_keeps_the_keys_it_has_seen() {
    let key = IssuerKey::new("k1", "ES256");
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let cluster = Cluster::with(1, |config| {
        config.auth.jwt_issuer = ISSUER.into();
        config.auth.jwt_audience = AUDIENCE.into();
        config.auth.jwt_jwks_url = format!("http://{address}/jwks");
    })
    .await;
    let token = key.sign(&alice(&cluster));
    for _ in 0..3 {
        let refused = try_token(&cluster, &token)
            .await
            .refused(503, "UNAVAILABLE");
        assert!(refused.header("retry-after").is_some());
    }
    cluster.approver("alice").await.inbox("").await.expect(200);

    let provider = Provider::start_at(&address, &[]).await;
    for nonsense in [
        Says::Text(200, "not JSON".into()),
        Says::Text(500, "{}".into()),
        Says::Json(json!([])),
        Says::Json(json!({ "keys": {} })),
        Says::Redirect("/elsewhere".into()),
        Says::Text(200, format!("{{\"keys\": [{}]}}", " ".repeat(2 << 20))),
    ] {
        provider.publish_as(nonsense);
        cluster.pass(Duration::from_secs(31));
        try_token(&cluster, &token)
            .await
            .refused(503, "UNAVAILABLE");
    }
    provider.publish(&[&key]);
    cluster.pass(Duration::from_secs(2));
    try_token(&cluster, &token).await.expect(200);

    // From now on it may be gone, or say nonsense: the keys are known.
    provider.publish_as(Says::Text(200, "not JSON".into()));
    cluster.pass(Duration::from_secs(31));
    let stranger = IssuerKey::new("unknown", "EdDSA").sign(&alice(&cluster));
    // Nobody can say that this one is bad.
    try_token(&cluster, &stranger)
        .await
        .refused(503, "UNAVAILABLE");
    try_token(&cluster, &token).await.expect(200);
    drop(provider);
    cluster.pass(Duration::from_secs(31));
    try_token(&cluster, &stranger)
        .await
        .refused(503, "UNAVAILABLE");
    try_token(&cluster, &token).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_in_a_file_are_read_again_when_it_changes() {
    let (old, new) = (
        IssuerKey::new("old", "RS256"),
        IssuerKey::new("new", "ES256"),
    );
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("jwks.json");
    let write = |key: &IssuerKey| {
        let text = json!({ "keys": [key.jwk()] }).to_string();
        std::fs::write(&file, text).unwrap();
    };
    write(&old);
    let cluster = Cluster::with(1, |config| {
        config.auth.jwt_issuer = ISSUER.into();
        config.auth.jwt_audience = AUDIENCE.into();
        config.auth.jwt_jwks_file = Some(file.clone());
    })
    .await;
    let (by_old, by_new) = (old.sign(&alice(&cluster)), new.sign(&alice(&cluster)));
    try_token(&cluster, &by_old).await.expect(200);
    write(&new);
    try_token(&cluster, &by_new).await.expect(200);
    not_taken(try_token(&cluster, &by_old).await, "removed");
    std::fs::remove_file(&file).unwrap();
    cluster.pass(Duration::from_secs(31));
    try_token(&cluster, &by_new).await.expect(200);
    try_token(&cluster, &by_old)
        .await
        .refused(503, "UNAVAILABLE");
}
