//! The log: why a token was refused, and never the token, a secret or a password.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::json;

use super::issuer::{IssuerKey, active};
use super::provider::Says;
use super::{INBOX, Provider, alice, by_introspection, by_jwt, try_token};
use crate::support::log::Log;
use crate::support::push::Socket;
use crate::support::{Cluster, with};

// On one thread, so that what the node logs is what this thread's subscriber gets.
#[tokio::test]
async fn no_log_line_has_a_token_or_a_secret() {
    let log = Log::keep("countersign=trace");
    let key = IssuerKey::new("k1", "EdDSA");
    let provider = Provider::start(&[&key]).await;
    let cluster = Cluster::with(1, |config| {
        by_jwt(config, &provider);
        by_introspection(config, &provider);
        config.auth.basic = true;
    })
    .await;
    let good = key.sign(&alice(&cluster));
    let expired = key.sign(&with(&alice(&cluster), "/exp", json!(1)));
    let stranger = IssuerKey::new("k2", "EdDSA").sign(&alice(&cluster));
    let forged = IssuerKey::new("k1", "EdDSA").sign(&alice(&cluster));
    let said = active(cluster.tenant.as_str(), "approver", "alice");
    provider.know("opaque-good-token", Says::Json(said));
    provider.know(
        "opaque-lie-token",
        Says::Text(500, "opaque-lie-token".into()),
    );
    let api_key = cluster.approver("alice").await.client.key().to_owned();
    let (id, secret) = api_key
        .strip_prefix("csk_")
        .unwrap()
        .split_once('_')
        .unwrap();
    let mut secrets = vec![
        secret.to_owned(),
        "client-secret-of-the-tests".to_owned(),
        crate::support::cluster::OPERATOR_KEY.to_owned(),
    ];
    for token in [
        good.as_str(),
        &expired,
        &stranger,
        &forged,
        &format!("{good}x"),
        "opaque-good-token",
        "opaque-bad-token",
        "opaque-lie-token",
        "not a token",
        &api_key,
        &format!("{api_key}x"),
    ] {
        try_token(&cluster, token).await;
        drop(Socket::connect(&cluster.nodes[0].url, "approver", "alice", token).await);
        secrets.extend(token.split('.').map(str::to_owned));
    }
    for password in [secret, "a-wrong-password"] {
        let value = STANDARD.encode(format!("{id}:{password}"));
        let nobody = cluster.client(None);
        let call = nobody.call(Method::GET, INBOX);
        let call = call.header("authorization", &format!("Basic {value}"));
        call.send().await;
        secrets.extend([password.to_owned(), value]);
    }
    let logged = log.text();
    for reason in [
        "it has expired",
        "does not verify",
        "not active",
        "cannot be introspected",
    ] {
        assert!(logged.contains(reason), "{reason}: {logged}");
    }
    for secret in secrets.iter().filter(|secret| secret.len() > 5) {
        assert!(!logged.contains(secret.as_str()), "{secret}: {logged}");
    }
}
