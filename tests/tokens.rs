//! Tokens from elsewhere: JWT, OAuth 2.0 by introspection, and Basic, beside API keys; what they
//! may do, when they end, and how they are forged.

mod attacks;
mod basic;
mod channels;
mod claims;
mod configuration;
mod introspection;
pub mod issuer;
mod keys;
mod logs;
pub mod provider;

use countersign::config::{Config, Secret};
use reqwest::Method;
use serde_json::{Value, json};

use self::issuer::{AUDIENCE, ISSUER, IssuerKey, SHARED_SECRET, claims};
use self::provider::Provider;
use crate::support::push::{Socket, Stream};
use crate::support::{
    Answer, Approver, Cluster, Enforcer, compact, envelope, request_id, sealed, with, without,
};

/// Where a token of the approver `alice` is tried.
pub const INBOX: &str = "/v1/approvers/alice/inbox";

/// Takes JWTs of this provider.
pub fn by_jwt(config: &mut Config, provider: &Provider) {
    config.auth.jwt_issuer = ISSUER.into();
    config.auth.jwt_audience = AUDIENCE.into();
    config.auth.jwt_jwks_url = format!("{}/jwks", provider.url);
}

/// Takes opaque tokens of this provider.
pub fn by_introspection(config: &mut Config, provider: &Provider) {
    config.auth.introspection_url = format!("{}/introspect", provider.url);
    config.auth.introspection_client_id = "gateway".into();
    config.auth.introspection_client_secret = Secret::from("client-secret-of-the-tests");
}

/// Nodes that take JWTs of a provider that publishes these keys.
pub async fn scene(nodes: usize, keys: &[&IssuerKey]) -> (Cluster, Provider) {
    let provider = Provider::start(keys).await;
    let cluster = Cluster::with(nodes, |config| by_jwt(config, &provider)).await;
    (cluster, provider)
}

/// Reads the inbox of `alice` with a token.
pub async fn try_token(cluster: &Cluster, token: &str) -> Answer {
    cluster.client(Some(token)).get(INBOX).await
}

/// Claims of a good token for `alice`.
pub fn alice(cluster: &Cluster) -> Value {
    claims(cluster.tenant.as_str(), "approver", "alice")
}

/// Asserts the one refusal that every bad token gets.
#[track_caller]
pub fn not_taken(answer: Answer, what: &str) {
    assert_eq!(answer.status, 401, "{what}: {answer:?}");
    let answer = answer.refused(401, "UNAUTHENTICATED");
    assert_eq!(
        answer.header("www-authenticate"),
        Some("Bearer realm=\"countersign\", error=\"invalid_token\""),
        "{what}"
    );
    assert_eq!(answer.body("/message"), "a valid credential is required");
    assert_eq!(answer.detail("expected"), Value::Null, "{what}");
}

/// A whole exchange, over every transport, with these two tokens.
async fn exchange(cluster: &Cluster, enforcer: &str, approver: &str) {
    let url = &cluster.nodes[0].url;
    let (enforcer_token, approver_token) = (enforcer, approver);
    let enforcer = Enforcer {
        client: cluster.client(Some(enforcer)),
        id: "build-bot".into(),
    };
    let approver = Approver {
        client: cluster.client(Some(approver)),
        id: "alice".into(),
    };
    let mut socket = Socket::connect(url, "enforcer", "build-bot", enforcer_token)
        .await
        .unwrap();
    let mut stream = Stream::connect(url, "approvers", "alice", approver_token, None)
        .await
        .unwrap();
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    assert_eq!(stream.expect().await.1["requestId"], request.as_str());
    assert_eq!(approver.inbox_ids().await, [request.as_str()]);
    approver
        .decide(&request, compact("approve"))
        .await
        .expect(200);
    let delivered = socket.expect_type("decision.deliver").await;
    assert_eq!(delivered["requestId"], request.as_str());
    enforcer.wait(&request, 5).await.expect(200);

    // A token is for its role and its id alone.
    enforcer.client.get(INBOX).await.refused(403, "FORBIDDEN");
    approver
        .client
        .get("/v1/approvers/bob/inbox")
        .await
        .refused(403, "FORBIDDEN");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_jwt_of_each_algorithm_serves_a_whole_exchange() {
    for algorithm in ["RS256", "ES256", "EdDSA"] {
        let key = IssuerKey::new("k1", algorithm);
        let (cluster, _provider) = scene(1, &[&key]).await;
        let tenant = cluster.tenant.as_str();
        let enforcer = key.sign(&claims(tenant, "enforcer", "build-bot"));
        let approver = key.sign(&claims(tenant, "approver", "alice"));
        exchange(&cluster, &enforcer, &approver).await;
    }
    let key = IssuerKey::new("k1", "HS256");
    let cluster = Cluster::with(1, |config| {
        config.auth.jwt_issuer = ISSUER.into();
        config.auth.jwt_audience = AUDIENCE.into();
        config.auth.jwt_secret = Secret::from(SHARED_SECRET);
        config.auth.jwt_algorithms = vec![countersign::protocol::token::Algorithm::Hs256];
    })
    .await;
    let tenant = cluster.tenant.as_str();
    let enforcer = key.sign(&claims(tenant, "enforcer", "build-bot"));
    let approver = key.sign(&claims(tenant, "approver", "alice"));
    exchange(&cluster, &enforcer, &approver).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_algorithm_on_the_list_verifies_and_no_other() {
    use countersign::protocol::token::Algorithm;
    let names = [
        "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA",
    ];
    let keys: Vec<IssuerKey> = names.map(|name| IssuerKey::new(name, name)).into();
    let provider = Provider::start(&keys.iter().collect::<Vec<_>>()).await;
    let all = Cluster::with(1, |config| {
        by_jwt(config, &provider);
        config.auth.jwt_algorithms = names.map(|name| Algorithm::parse(name).unwrap()).into();
    })
    .await;
    for key in &keys {
        try_token(&all, &key.sign(&alice(&all))).await.expect(200);
    }
    let defaults = Cluster::with(1, |config| by_jwt(config, &provider)).await;
    for key in &keys {
        let answer = try_token(&defaults, &key.sign(&alice(&defaults))).await;
        if ["RS256", "ES256", "EdDSA"].contains(&key.algorithm) {
            answer.expect(200);
        } else {
            not_taken(answer, key.algorithm);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_token_claims_is_what_it_may_do() {
    let key = IssuerKey::new("k1", "EdDSA");
    let (cluster, _provider) = scene(1, &[&key]).await;
    let tenant = cluster.tenant.as_str();

    // An audience may be one of several, and a time may have a fraction.
    let several = with(&alice(&cluster), "/aud", json!(["elsewhere", AUDIENCE]));
    try_token(&cluster, &key.sign(&several)).await.expect(200);
    let half = with(&alice(&cluster), "/exp", json!(issuer::unix(60)));
    try_token(&cluster, &key.sign(&half)).await.expect(200);
    // Without a key's name, the only key will do.
    let nameless = key.sign_text(r#"{"alg":"EdDSA"}"#, &alice(&cluster).to_string());
    try_token(&cluster, &nameless).await.expect(200);

    let admin = key.sign(&without(&claims(tenant, "admin", "x"), "/countersign_id"));
    let admin = cluster.client(Some(&admin));
    let listed = admin.get("/platform/v1/credentials").await.expect(200);
    assert_eq!(listed.json()["items"], json!([]));
    admin
        .get("/platform/v1/tenants")
        .await
        .refused(403, "FORBIDDEN");

    // Another tenant's token does not see this one's exchanges.
    let there = cluster.administration.create_tenant("there").await.unwrap();
    let bot = key.sign(&claims(tenant, "enforcer", "build-bot"));
    let bot = cluster.client(Some(&bot));
    let request = request_id();
    let mut message = envelope(
        "artifact.submit",
        &request,
        json!({ "enforcerId": "build-bot" }),
        sealed(),
    );
    message["recipient"] = json!({ "approverId": "alice" });
    let call = bot.call(Method::POST, "/v1/artifacts").json(&message);
    let call = call.header("idempotency-key", "once");
    call.send().await.expect(202);
    let stranger = key.sign(&claims(there.as_str(), "approver", "alice"));
    let inbox = try_token(&cluster, &stranger).await.expect(200);
    assert_eq!(inbox.body("/items"), json!([]));

    // Its name among idempotency keys is no credential's.
    let principal = "select principal from idempotency_keys";
    assert_eq!(
        cluster.database.text(principal).await,
        "jwt:sub:user-build-bot"
    );
    // The history also says who issued the token.
    let principal = "select principal from exchange_events where to_state = 'pendingApproval'";
    assert_eq!(
        cluster.database.text(principal).await,
        format!("jwt:sub:user-build-bot from {ISSUER}")
    );
    let made = cluster.admin().await;
    let id = made.key().split('_').nth(1).unwrap();
    assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_works_beside_the_others_and_is_listed() {
    let key = IssuerKey::new("k1", "ES256");
    let provider = Provider::start(&[&key]).await;
    let cluster = Cluster::with(1, |config| {
        by_jwt(config, &provider);
        by_introspection(config, &provider);
        config.auth.basic = true;
    })
    .await;
    let tenant = cluster.tenant.as_str();
    let opaque = "opaque+token/of=alice==";
    provider.know(
        opaque,
        provider::Says::Json(issuer::active(tenant, "approver", "alice")),
    );
    let api_key = cluster.approver("alice").await.client.key().to_owned();
    let signed = key.sign(&alice(&cluster));
    for token in [opaque, &api_key, &signed] {
        try_token(&cluster, token).await.expect(200);
    }
    cluster
        .operator()
        .get("/platform/v1/tenants")
        .await
        .expect(200);
    let nobody = cluster.client(None);
    let call = nobody
        .call(Method::GET, INBOX)
        .header("x-api-key", &api_key);
    call.send().await.expect(200);
    assert_eq!(provider.asked(), 1, "only the opaque one is asked about");

    // A token that looks signed is judged as such: a bad one is not asked about either.
    not_taken(try_token(&cluster, "a.b.c").await, "three parts");
    assert_eq!(provider.asked(), 1);
    let unknown = format!("csk_no_{}", "x".repeat(43));
    not_taken(try_token(&cluster, &unknown).await, "an API key");
    assert_eq!(provider.asked(), 1);

    let status = nobody.get("/v1/status").await.expect(200).json();
    let all = json!(["apiKey", "jwt", "oauth2", "basic"]);
    assert_eq!(status["authentication"], all);
    let plain = Cluster::start(1).await;
    let status = plain.client(None).get("/v1/status").await.expect(200);
    assert_eq!(status.json()["authentication"], json!(["apiKey"]));
    not_taken(try_token(&plain, &signed).await, "no JWT here");
    not_taken(try_token(&plain, opaque).await, "no OAuth here");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_challenge_says_what_would_be_taken_and_whether_a_token_was_not() {
    let cluster = Cluster::with(1, |config| config.auth.basic = true).await;
    let nobody = cluster.client(None);
    let challenges = |answer: Answer| -> Vec<String> {
        let all = answer.headers.get_all("www-authenticate").iter();
        all.map(|value| value.to_str().unwrap().to_owned())
            .collect()
    };
    let basic = "Basic realm=\"countersign\", charset=\"UTF-8\"";
    let bare = "Bearer realm=\"countersign\"";
    let invalid = "Bearer realm=\"countersign\", error=\"invalid_token\"";
    for path in [INBOX, "/platform/v1/credentials"] {
        assert_eq!(challenges(nobody.get(path).await), [bare, basic]);
        let bad = cluster.client(Some("csk_a_b")).get(path).await;
        assert_eq!(challenges(bad), [invalid, basic]);
        let bad = nobody.call(Method::GET, path);
        let bad = bad.header("authorization", "Basic YTpi").send().await;
        assert_eq!(challenges(bad), [bare, basic]);
    }
}
