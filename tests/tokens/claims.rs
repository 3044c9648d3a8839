//! A token's claims: missing, wrong, doubled, or past their time.

use std::time::Duration;

use serde_json::{Value, json};

use super::issuer::{IssuerKey, unix};
use super::{AUDIENCE, alice, not_taken, scene, try_token};
use crate::support::{with, without};

#[tokio::test(flavor = "multi_thread")]
async fn claims_that_are_missing_wrong_or_doubled_refuse_the_token() {
    let key = IssuerKey::new("k1", "EdDSA");
    let (cluster, _provider) = scene(1, &[&key]).await;
    let good = alice(&cluster);
    let refused = async |claims: Value, what: &str| {
        not_taken(try_token(&cluster, &key.sign(&claims)).await, what);
    };
    for name in ["iss", "aud", "exp", "sub", "tenant", "role"] {
        refused(without(&good, &format!("/{name}")), name).await;
        for odd in [
            json!(null),
            json!({}),
            json!(""),
            json!([]),
            json!(true),
            json!(["x", 1]),
        ] {
            refused(with(&good, &format!("/{name}"), odd), name).await;
        }
    }
    let long = "x".repeat(129);
    let wrong = [
        ("/iss", json!("https://issuer.example/")),
        ("/iss", json!("HTTPS://issuer.example")),
        ("/iss", json!(["https://issuer.example"])),
        ("/aud", json!("countersign-test")),
        ("/aud", json!(["countersign-test", "x"])),
        ("/aud", json!([AUDIENCE, 5])),
        ("/aud", json!({ (AUDIENCE): AUDIENCE })),
        ("/exp", json!("4102444800")),
        ("/exp", json!(1e300)),
        ("/exp", json!(-1)),
        ("/exp", json!(0)),
        ("/exp", json!(unix(-61))),
        // Valid for longer than a day.
        ("/exp", json!(unix(86_400 + 120))),
        ("/iat", json!(unix(-86_400))),
        ("/iat", json!("today")),
        // Later than clocks may differ.
        ("/iat", json!(unix(65))),
        ("/iat", json!(unix(550))),
        // An ID token is for the client that asked who signed in.
        ("/nonce", json!("n")),
        ("/at_hash", json!("h")),
        ("/c_hash", json!("h")),
        ("/nbf", json!(unix(65))),
        ("/nbf", json!("soon")),
        ("/nbf", json!(null)),
        ("/sub", json!("a\u{0}b")),
        ("/sub", json!("a\nb")),
        ("/sub", json!("x".repeat(256))),
        ("/tenant", json!("no-such-tenant")),
        ("/tenant", json!(format!("{} ", cluster.tenant))),
        ("/tenant", json!(cluster.tenant.as_str().to_uppercase())),
        ("/tenant", json!(long)),
        ("/role", json!("operator")),
        ("/role", json!("Approver")),
        ("/role", json!("approver admin")),
        ("/role", json!(["approver"])),
        ("/role", json!("root")),
        ("/countersign_id", json!("")),
        ("/countersign_id", json!(long)),
        ("/countersign_id", json!("a\tb")),
        ("/countersign_id", json!(null)),
        ("/countersign_id", json!(5)),
        ("/countersign_id", json!(["alice"])),
    ];
    for (pointer, value) in wrong {
        refused(
            with(&good, pointer, value.clone()),
            &format!("{pointer} {value}"),
        )
        .await;
    }
    // Just within the leeway of a minute.
    for (pointer, value) in [("/exp", unix(-40)), ("/nbf", unix(40)), ("/iat", unix(40))] {
        let token = key.sign(&with(&good, pointer, json!(value)));
        try_token(&cluster, &token).await.expect(200);
    }

    // Texts that two parsers could read differently, or that are no claims.
    let good = good.to_string();
    let header = key.header().to_string();
    let inside = good.strip_prefix('{').unwrap();
    let payloads = [
        format!(r#"{{"role":"admin",{inside}"#),
        format!(r#"{{"tenant":"x",{inside}"#),
        format!(r#"{{"ex\u0070":9999999999,{inside}"#),
        format!("[{good}]"),
        format!("{good} {good}"),
        format!("{good}x"),
        good.replace("\"role\"", "role"),
        "null".to_owned(),
        "5".to_owned(),
        "\"text\"".to_owned(),
        "[]".to_owned(),
        "{}".to_owned(),
        String::from("{"),
        "[".repeat(5_000),
        good.replace("alice", "al\u{0}ice"),
        good.replace("alice", "\\ud800"),
    ];
    for payload in payloads {
        let token = key.sign_text(&header, &payload);
        not_taken(try_token(&cluster, &token).await, &payload);
    }
    let inside = header.strip_prefix('{').unwrap();
    for header in [
        format!(r#"{{"alg":"none",{inside}"#),
        format!(r#"{{"kid":"x",{inside}"#),
        format!("[{header}]"),
        format!("{header}x"),
        "null".to_owned(),
        with(&key.header(), "/kid", json!(5)).to_string(),
        with(&key.header(), "/kid", json!(null)).to_string(),
    ] {
        not_taken(
            try_token(&cluster, &key.sign_text(&header, &good)).await,
            &header,
        );
    }

    // The time is this node's.
    let token = key.sign(&alice(&cluster));
    try_token(&cluster, &token).await.expect(200);
    cluster.pass(Duration::from_secs(650));
    try_token(&cluster, &token).await.expect(200);
    cluster.pass(Duration::from_secs(20));
    not_taken(
        try_token(&cluster, &token).await,
        "its time has passed here",
    );
}
