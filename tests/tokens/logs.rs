//! What is logged: why a token was refused, and never the token, a secret or a password.

use std::io::Write;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use super::issuer::{IssuerKey, active};
use super::provider::Says;
use super::{INBOX, Provider, alice, by_introspection, by_jwt, try_token};
use crate::support::push::Socket;
use crate::support::{Cluster, with};

/// Log lines, kept.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

// On one thread, so that what the node logs is what this thread's subscriber gets.
#[tokio::test]
async fn no_log_line_has_a_token_or_a_secret() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter("countersign=trace")
        .with_ansi(false)
        .with_writer(lines.clone())
        .finish();
    // Where there is only one, a line first reached by another test's thread would be off for good.
    let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::new());
    let _guard = tracing::subscriber::set_default(subscriber);
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
    let logged = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
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
