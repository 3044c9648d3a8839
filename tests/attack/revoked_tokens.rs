//! Going on with a token that was taken away before it expires.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::process::{countersign, run};
use crate::support::push::{Socket, Stream};
use crate::support::{Cluster, Contract, in_time, until, with, without};
use crate::tokens::issuer::{IssuerKey, active, unix};
use crate::tokens::provider::{Provider, Says};
use crate::tokens::{INBOX, alice, by_introspection, by_jwt, not_taken, try_token};

const REVOCATIONS: &str = "/platform/v1/token-revocations";

async fn scene(key: &IssuerKey) -> (Cluster, Provider) {
    let provider = Provider::start(&[key]).await;
    let cluster = Cluster::with(2, |config| {
        by_jwt(config, &provider);
        by_introspection(config, &provider);
    })
    .await;
    (cluster, provider)
}

/// Waits until a token is refused on every node.
async fn refused_everywhere(cluster: &Cluster, token: &str) {
    let client = cluster.client(Some(token));
    let begun = Instant::now();
    for node in 0..cluster.nodes.len() {
        let client = client.on(node);
        until("it is refused", Duration::from_secs(6), async || {
            client.get(INBOX).await.status == 401
        })
        .await;
    }
    println!("refused on every node after {:?}", begun.elapsed());
    not_taken(try_token(cluster, token).await, "revoked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stolen_token_is_revoked_by_its_id_and_its_channels_end() {
    let key = IssuerKey::new("k1", "EdDSA");
    let (cluster, provider) = scene(&key).await;
    let admin = cluster.admin().await;
    let stolen = key.sign(&with(&alice(&cluster), "/jti", json!("t-1")));
    let other = key.sign(&with(&alice(&cluster), "/jti", json!("t-2")));
    let said = active(cluster.tenant.as_str(), "approver", "alice");
    provider.know("opaque", Says::Json(with(&said, "/jti", json!("t-3"))));
    for (token, id) in [(stolen.as_str(), "t-1"), ("opaque", "t-3")] {
        let [here, there] = [0, 1].map(|node| cluster.nodes[node].url.as_str());
        let mut socket = Socket::connect(here, "approver", "alice", token)
            .await
            .unwrap();
        let mut stream = Stream::connect(there, "approvers", "alice", token, None)
            .await
            .unwrap();
        try_token(&cluster, token).await.expect(200);
        let revoked = admin.post(REVOCATIONS, &json!({ "tokenId": id })).await;
        assert_eq!(revoked.expect(201).json()["tokenId"], id);
        refused_everywhere(&cluster, token).await;
        let (code, ()) = tokio::join!(socket.closed(), stream.ended());
        assert_eq!(code, 1008);
    }
    // The same person's other token is as good as before.
    try_token(&cluster, &other).await.expect(200);
    let audited = "select string_agg(action || ' ' || subject, ', ' order by at) from audit_events where action like 'token%'";
    assert_eq!(
        cluster.database.text(audited).await,
        "tokens.revoked token t-1, tokens.revoked token t-3"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn all_tokens_of_a_subject_or_of_a_tenant_are_revoked_by_when_they_were_issued() {
    let key = IssuerKey::new("k1", "EdDSA");
    let (cluster, _provider) = scene(&key).await;
    let admin = cluster.admin().await;
    let contract = Contract::of(&admin).await;
    let revoke = async |body: Value| {
        let method = reqwest::Method::POST;
        contract
            .call(&admin, method, REVOCATIONS, Some(&body))
            .await
    };
    let issued = |ago: i64, subject: &str| {
        let claims = with(&alice(&cluster), "/iat", json!(unix(-ago)));
        key.sign(&with(&claims, "/sub", json!(subject)))
    };
    let (old, new) = (issued(600, "alice@example"), issued(60, "alice@example"));
    let (others, undated) = (issued(600, "bob@example"), {
        let claims = with(&alice(&cluster), "/sub", json!("carol@example"));
        key.sign(&without(&claims, "/iat"))
    });
    for token in [&old, &new, &others, &undated] {
        try_token(&cluster, token).await.expect(200);
    }
    let before = in_time(-300);
    let wish = json!({ "subject": "alice@example", "issuedBefore": before });
    revoke(wish.clone()).await.expect(201);
    refused_everywhere(&cluster, &old).await;
    for token in [&new, &others, &undated] {
        try_token(&cluster, token).await.expect(200);
    }
    // Without a time, all up to now; and an earlier time takes nothing back.
    revoke(json!({ "subject": "alice@example" }))
        .await
        .expect(201);
    refused_everywhere(&cluster, &new).await;
    revoke(wish).await.expect(201);
    not_taken(try_token(&cluster, &new).await, "still revoked");
    // All of the tenant: also one that does not say when it was issued.
    revoke(json!({ "issuedBefore": in_time(-1) }))
        .await
        .expect(201);
    for token in [&others, &undated] {
        refused_everywhere(&cluster, token).await;
    }
    // Other tenants have tokens of their own, and API keys are no tokens.
    let there = cluster.administration.create_tenant("there").await.unwrap();
    let theirs = with(&alice(&cluster), "/tenant", json!(there.as_str()));
    let theirs = key.sign(&with(&theirs, "/sub", json!("alice@example")));
    try_token(&cluster, &theirs).await.expect(200);
    cluster.approver("alice").await.inbox("").await.expect(200);

    let method = reqwest::Method::GET;
    let listed = contract.call(&admin, method, REVOCATIONS, None).await;
    let listed = listed.expect(200).json();
    let subjects: Vec<_> = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["subject"].clone())
        .collect();
    assert_eq!(subjects, [json!("alice@example"), Value::Null], "{listed}");
    for (body, code, pointer) in [
        (json!({}), "VALIDATION", "/tokenId"),
        (json!({ "tokenId": "" }), "VALIDATION", "/tokenId"),
        (json!({ "subject": "a\nb" }), "VALIDATION", "/subject"),
        (
            json!({ "tokenId": "t", "subject": "s" }),
            "VALIDATION",
            "/subject",
        ),
        (
            json!({ "tokenId": "t", "issuedBefore": in_time(-9) }),
            "VALIDATION",
            "/issuedBefore",
        ),
        // Nobody could ever sign in again.
        (
            json!({ "issuedBefore": in_time(600) }),
            "TIMESTAMP",
            "/issuedBefore",
        ),
    ] {
        revoke(body).await.refused_at(400, code, pointer);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_revoked_on_the_command_line_and_forgotten_when_they_could_be_no_more() {
    let key = IssuerKey::new("k1", "EdDSA");
    let provider = Provider::start(&[&key]).await;
    let cluster = Cluster::with(1, |config| {
        by_jwt(config, &provider);
        config.retention.every_seconds = 1;
        config.retention.audit_seconds = 3_600;
    })
    .await;
    let token = key.sign(&with(&alice(&cluster), "/jti", json!("t-1")));
    try_token(&cluster, &token).await.expect(200);
    let command = |arguments: &[&str]| {
        run(countersign()
            .args(["--database-url", &cluster.database.url, "token"])
            .args(arguments)
            .args(["--tenant", cluster.tenant.as_str()]))
    };
    let (ok, text) = command(&["revoke"]);
    assert!(!ok && text.contains("--subject"), "{text}");
    assert!(command(&["revoke", "--id", "t-1"]).0);
    assert!(command(&["revoke", "--subject", "user-7"]).0);
    let (ok, text) = command(&["list"]);
    assert!(ok && text.contains("token t-1"), "{text}");
    assert!(text.contains("subject user-7  issued before"), "{text}");
    let begun = Instant::now();
    until("it is refused", Duration::from_secs(6), async || {
        try_token(&cluster, &token).await.status == 401
    })
    .await;
    println!("refused after {:?}", begun.elapsed());
    // No sooner than the longest lifetime.
    cluster.pass(Duration::from_secs(23 * 3_600));
    cluster.sweeps("retention", 2).await;
    not_taken(try_token(&cluster, &token).await, "still revoked");
    cluster.pass(Duration::from_secs(3_600 + 300));
    let left = "select count(*) from token_revocations";
    until("they are forgotten", Duration::from_secs(90), async || {
        cluster.database.number(left).await == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_from_an_issuer_whose_clock_is_ahead_is_revoked_with_the_others() {
    let key = IssuerKey::new("k1", "EdDSA");
    let (cluster, provider) = scene(&key).await;
    let admin = cluster.admin().await;
    let claims = with(&alice(&cluster), "/sub", json!("alice@example"));
    let jwt = key.sign(&with(&claims, "/iat", json!(unix(40))));
    let said = active(cluster.tenant.as_str(), "approver", "alice");
    let said = with(&said, "/sub", json!("alice@example"));
    provider.know("ahead", Says::Json(with(&said, "/iat", json!(unix(40)))));
    provider.know("too-far", Says::Json(with(&said, "/iat", json!(unix(600)))));
    for token in [jwt.as_str(), "ahead"] {
        try_token(&cluster, token).await.expect(200);
    }
    not_taken(try_token(&cluster, "too-far").await, "issued later");
    let wish = json!({ "subject": "alice@example" });
    let revoked = admin.post(REVOCATIONS, &wish).await.expect(201).json();
    let before = revoked["issuedBefore"].clone();
    // The answer says until when, and that may be said in so many words.
    assert!(before.as_str().unwrap() > in_time(50).as_str(), "{before}");
    for token in [jwt.as_str(), "ahead"] {
        refused_everywhere(&cluster, token).await;
    }
    let wish = json!({ "issuedBefore": before });
    admin.post(REVOCATIONS, &wish).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_token_that_does_not_say_when_it_was_issued_stays_revoked() {
    let key = IssuerKey::new("k1", "EdDSA");
    let provider = Provider::start(&[&key]).await;
    let cluster = Cluster::with(1, |config| {
        by_jwt(config, &provider);
        config.retention.every_seconds = 1;
    })
    .await;
    // It is valid for too long now, and the day before it expires it no longer is.
    let claims = with(&alice(&cluster), "/exp", json!(unix(30 * 24 * 3_600)));
    let claims = with(&without(&claims, "/iat"), "/jti", json!("t-1"));
    let [token, other] = ["t-1", "t-2"].map(|id| key.sign(&with(&claims, "/jti", json!(id))));
    not_taken(try_token(&cluster, &token).await, "valid for too long");
    let admin = cluster.admin().await;
    let revoked = admin.post(REVOCATIONS, &json!({ "tokenId": "t-1" })).await;
    revoked.expect(201);
    cluster.pass(Duration::from_secs((30 * 24 - 12) * 3_600));
    cluster.sweeps("retention", 2).await;
    try_token(&cluster, &other).await.expect(200);
    not_taken(try_token(&cluster, &token).await, "revoked");
}
