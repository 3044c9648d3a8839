//! Opaque tokens: what the authorization server says, how long it is believed, and what happens
//! while it says nothing.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::config::Secret;
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use super::issuer::{IssuerKey, active, unix};
use super::provider::Says;
use super::{Provider, by_introspection, exchange, not_taken, try_token};
use crate::support::{Cluster, Enforcer, crowd, request_id, sealed, with, without};

async fn scene(timeout_ms: u64) -> (Cluster, Provider) {
    let provider = Provider::start(&[]).await;
    let cluster = Cluster::with(1, |config| {
        by_introspection(config, &provider);
        config.auth.introspection_timeout_ms = timeout_ms;
    })
    .await;
    (cluster, provider)
}

fn alice(cluster: &Cluster) -> Value {
    active(cluster.tenant.as_str(), "approver", "alice")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_opaque_token_serves_a_whole_exchange() {
    let provider = Provider::start(&[]).await;
    let cluster = Cluster::with(1, |config| {
        by_introspection(config, &provider);
        config.auth.introspection_client_id = "gate way".into();
        config.auth.introspection_client_secret = Secret::from("s:e%c/r+t");
    })
    .await;
    let tenant = cluster.tenant.as_str();
    let bot = active(tenant, "enforcer", "build-bot");
    provider.know("bot", Says::Json(bot.clone()));
    provider.know("alice", Says::Json(alice(&cluster)));
    exchange(&cluster, "bot", "alice").await;
    let basic = provider.authorization();
    let basic = STANDARD
        .decode(basic.strip_prefix("Basic ").unwrap())
        .unwrap();
    assert_eq!(basic, b"gate%20way:s%3Ae%25c%2Fr%2Bt");

    // A client without a user stands for itself; a token without an end, or that looks signed, is
    // as good as any.
    let client = with(&without(&bot, "/sub"), "/client_id", json!("ci"));
    provider.know("client", Says::Json(without(&client, "/exp")));
    let signed = IssuerKey::new("k", "EdDSA").sign(&alice(&cluster));
    provider.know(&signed, Says::Json(alice(&cluster)));
    try_token(&cluster, &signed).await.expect(200);
    let client = cluster.client(Some("client"));
    client.get("/platform/v1/exchanges").await.expect(200);
    assert_eq!(provider.asked(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_not_active_or_not_for_us_is_not_taken() {
    let (cluster, provider) = scene(2_000).await;
    let good = alice(&cluster);
    let bad = [
        json!({ "active": false }),
        with(&good, "/active", json!(false)),
        with(&good, "/exp", json!(unix(-1))),
        without(&good, "/sub"),
        with(&good, "/sub", json!("a\nb")),
        without(&good, "/tenant"),
        without(&good, "/role"),
        with(&good, "/tenant", json!("no-such-tenant")),
        with(&good, "/tenant", json!(5)),
        with(&good, "/role", json!("operator")),
        with(&good, "/countersign_id", json!("")),
        with(&good, "/countersign_id", json!(null)),
    ];
    for (number, answer) in bad.into_iter().enumerate() {
        let token = format!("bad-{number}");
        provider.know(&token, Says::Json(answer.clone()));
        not_taken(try_token(&cluster, &token).await, &answer.to_string());
    }
    not_taken(try_token(&cluster, "never-heard-of").await, "unknown");
    let asked = provider.asked();
    for plain in ["a b", &"x".repeat(8_193)] {
        not_taken(try_token(&cluster, plain).await, plain);
    }
    assert_eq!(provider.asked(), asked, "not worth a question");

    let cluster = Cluster::with(1, |config| {
        by_introspection(config, &provider);
        config.auth.introspection_audience = "countersign-tests".into();
    })
    .await;
    let good = alice(&cluster);
    provider.know("for-us", Says::Json(good.clone()));
    provider.know("for-all", Says::Json(without(&good, "/aud")));
    provider.know("for-them", Says::Json(with(&good, "/aud", json!("them"))));
    try_token(&cluster, "for-us").await.expect(200);
    not_taken(try_token(&cluster, "for-all").await, "no audience");
    not_taken(try_token(&cluster, "for-them").await, "their audience");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_sensible_answer_a_token_is_neither_good_nor_bad() {
    let (cluster, provider) = scene(2_000).await;
    let good = alice(&cluster);
    let huge = with(&good, "/padding", json!("x".repeat(2 << 20)));
    let lies = [
        Says::Text(200, String::new()),
        Says::Text(200, "<html>".into()),
        Says::Text(200, format!("{good}x")),
        Says::Text(
            200,
            good.to_string().replacen('{', r#"{"active":false,"#, 1),
        ),
        Says::Json(json!([])),
        Says::Json(json!({})),
        Says::Json(json!("active")),
        Says::Json(with(&good, "/active", json!("true"))),
        Says::Json(with(&good, "/active", json!(1))),
        Says::Json(with(&good, "/active", json!(null))),
        Says::Json(with(&good, "/exp", json!("soon"))),
        Says::Json(huge),
        Says::Text(201, good.to_string()),
        Says::Text(401, good.to_string()),
        Says::Text(404, good.to_string()),
        Says::Text(500, good.to_string()),
        Says::Redirect(format!("{}/introspect", provider.url)),
    ];
    for (number, lie) in lies.into_iter().enumerate() {
        let token = format!("lie-{number}");
        provider.know(&token, lie.clone());
        let answer = try_token(&cluster, &token).await;
        assert_eq!(answer.status, 503, "{lie:?}: {answer:?}");
        let answer = answer.refused(503, "UNAVAILABLE");
        assert!(answer.header("retry-after").is_some());
        // Nothing of it is remembered.
        provider.know(&token, Says::Json(good.clone()));
        try_token(&cluster, &token).await.expect(200);
    }

    provider.know("late", Says::Late(Duration::from_secs(20), good.clone()));
    let started = Instant::now();
    try_token(&cluster, "late")
        .await
        .refused(503, "UNAVAILABLE");
    assert!(
        started.elapsed() < Duration::from_secs(6),
        "{:?}",
        started.elapsed()
    );
    provider.know("known", Says::Json(good.clone()));
    try_token(&cluster, "known").await.expect(200);
    let api_key = cluster.approver("alice").await;
    drop(provider);
    try_token(&cluster, "new").await.refused(503, "UNAVAILABLE");
    try_token(&cluster, "known").await.expect(200);
    api_key.inbox("").await.expect(200);
    cluster.pass(Duration::from_secs(61));
    try_token(&cluster, "known")
        .await
        .refused(503, "UNAVAILABLE");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_believed_for_a_minute_and_never_past_the_tokens_end() {
    let (cluster, provider) = scene(2_000).await;
    let good = with(&alice(&cluster), "/exp", json!(unix(3_600)));
    provider.know("token", Says::Json(good.clone()));
    for _ in 0..5 {
        try_token(&cluster, "token").await.expect(200);
    }
    assert_eq!(provider.asked(), 1);
    provider.know("token", Says::Json(json!({ "active": false })));
    cluster.pass(Duration::from_secs(50));
    try_token(&cluster, "token").await.expect(200);
    assert_eq!(provider.asked(), 1);
    cluster.pass(Duration::from_secs(11));
    not_taken(try_token(&cluster, "token").await, "revoked");
    not_taken(try_token(&cluster, "token").await, "revoked");
    assert_eq!(provider.asked(), 2, "and that is believed, too");
    provider.know("token", Says::Json(good.clone()));
    cluster.pass(Duration::from_secs(6));
    try_token(&cluster, "token").await.expect(200);
    assert_eq!(provider.asked(), 3);

    let passed = 67;
    provider.know(
        "short",
        Says::Json(with(&good, "/exp", json!(unix(passed + 20)))),
    );
    try_token(&cluster, "short").await.expect(200);
    cluster.pass(Duration::from_secs(21));
    not_taken(try_token(&cluster, "short").await, "over");
    assert_eq!(provider.asked(), 5, "asked again at its end");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_present_one_token_ask_once_and_many_tokens_ask_64_at_a_time() {
    let (cluster, provider) = scene(3_000).await;
    let good = alice(&cluster);
    let client = &cluster.client(None);
    let call = async |token: String| {
        let call = client.call(Method::GET, super::INBOX);
        call.header("x-api-key", &token).send().await
    };
    let _crowd = crowd(200).await;
    provider.know(
        "shared",
        Says::Late(Duration::from_millis(400), good.clone()),
    );
    for answer in join_all((0..50).map(|_| call("shared".into()))).await {
        answer.expect(200);
    }
    assert_eq!(provider.asked(), 1);
    // The first caller may be gone before the answer is there.
    provider.know("left", Says::Late(Duration::from_millis(500), good.clone()));
    let left = tokio::time::timeout(Duration::from_millis(100), call("left".into())).await;
    assert!(left.is_err(), "it hung up");
    call("left".into()).await.expect(200);
    assert_eq!(provider.asked(), 2);

    for number in 0..200 {
        let late = Says::Late(Duration::from_millis(50), good.clone());
        provider.know(&format!("token-{number}"), late);
    }
    let calls = join_all((0..200).map(|number| call(format!("token-{number}")))).await;
    for answer in calls {
        answer.expect(200);
    }
    assert_eq!(provider.asked(), 202);
    assert!(
        (2..=64).contains(&provider.most_asking()),
        "{}",
        provider.most_asking()
    );

    // Those who do not get their turn in time are told to come back.
    for number in 0..130 {
        let late = Says::Late(Duration::from_secs(20), good.clone());
        provider.know(&format!("slow-{number}"), late);
    }
    let asked = provider.asked();
    let started = Instant::now();
    let calls = join_all((0..130).map(|number| call(format!("slow-{number}")))).await;
    for answer in calls {
        answer.refused(503, "UNAVAILABLE");
    }
    assert!(
        started.elapsed() < Duration::from_secs(12),
        "{:?}",
        started.elapsed()
    );
    // On a busy machine the last come when the first have given up, and get a turn.
    let asked = provider.asked() - asked;
    assert!((64..=130).contains(&asked), "{asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_bad_tokens_does_not_push_out_the_good_ones() {
    let provider = Provider::start(&[]).await;
    let cluster = Cluster::with(1, |config| {
        by_introspection(config, &provider);
        config.auth.introspection_cache_entries = 10;
    })
    .await;
    for number in 0..20 {
        provider.know(&format!("good-{number}"), Says::Json(alice(&cluster)));
    }
    try_token(&cluster, "good-0").await.expect(200);
    for number in 0..100 {
        not_taken(try_token(&cluster, &format!("bad-{number}")).await, "bad");
    }
    assert_eq!(provider.asked(), 101);
    try_token(&cluster, "good-0").await.expect(200);
    assert_eq!(provider.asked(), 101, "it is still known");
    // More good ones than there is room for: all of them work, and some are asked about again.
    for round in 1..=2 {
        for number in 0..20 {
            let good = format!("good-{number}");
            try_token(&cluster, &good).await.expect(200);
        }
        assert!(provider.asked() >= 101 + 10 * round, "{}", provider.asked());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_and_a_client_of_one_name_are_two_callers() {
    let provider = Provider::start(&[]).await;
    let cluster = Cluster::with(1, |config| by_introspection(config, &provider)).await;
    let said = active(cluster.tenant.as_str(), "enforcer", "build-bot");
    provider.know("user", Says::Json(with(&said, "/sub", json!("ci"))));
    let client = with(&without(&said, "/sub"), "/client_id", json!("ci"));
    provider.know("client", Says::Json(client));
    for token in ["user", "client"] {
        let bot = Enforcer {
            client: cluster.client(Some(token)),
            id: "build-bot".into(),
        };
        let message = bot.submission(&request_id(), "alice", sealed());
        let call = bot
            .client
            .call(Method::POST, "/v1/artifacts")
            .json(&message);
        // The same key for another exchange would be refused to the same caller.
        call.header("idempotency-key", "once")
            .send()
            .await
            .expect(202);
    }
    let principals = "select string_agg(principal, ' ' order by principal) from idempotency_keys";
    assert_eq!(
        cluster.database.text(principals).await,
        "oauth:client_id:ci oauth:sub:ci"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_asked_about_in_the_trace_of_the_call_that_brought_it() {
    let (cluster, provider) = scene(2_000).await;
    for parent in [
        Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        None,
    ] {
        let token = format!("token-{}", parent.is_some());
        provider.know(&token, Says::Json(alice(&cluster)));
        let client = cluster.client(Some(&token));
        let mut call = client.call(Method::GET, "/v1/approvers/alice/inbox");
        if let Some(parent) = parent {
            call = call.header("traceparent", parent);
        }
        call.send().await.expect(200);
        assert_eq!(provider.traceparent().as_deref(), parent);
    }
}
