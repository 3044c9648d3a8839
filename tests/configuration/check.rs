//! `countersign check` finds what would keep a node from working, says what to do, and goes on to
//! the next.

use std::process::Command;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::routing::get;
use serde_json::{Value, json};

use crate::support::database::Database;
use crate::support::process::{countersign, run};
use crate::support::tls::Authority;
use crate::support::with;

/// The findings of `check --json`, by check.
fn findings(command: &mut Command) -> (bool, Value) {
    let output = command.args(["check", "--json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["ok"], json!(output.status.success()), "{report}");
    let mut by_check = json!({});
    for finding in report["findings"].as_array().unwrap() {
        let check = finding["check"].as_str().unwrap();
        assert_eq!(by_check[check], Value::Null, "{check} stands twice");
        by_check[check] = finding.clone();
    }
    (output.status.success(), by_check)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_would_work_is_found_so() {
    let database = Database::create().await;
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let pair = Authority::new("an authority").server();
    let public = crate::support::public_key(&crate::support::signing_key(1));
    let keys = json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "x": public }] });
    let keys = write("keys.json", &keys.to_string());
    let node = || {
        let mut command = countersign();
        command
            .env("COUNTERSIGN_DATABASE__URL", &database.url)
            .env("COUNTERSIGN_SECURITY__CLUSTER_SECRET", super::SECRET)
            .env("COUNTERSIGN_TLS__MODE", "on")
            .env(
                "COUNTERSIGN_TLS__CERT_FILE",
                write("cert", &pair.certificate),
            )
            .env("COUNTERSIGN_TLS__KEY_FILE", write("key", &pair.key))
            .env("COUNTERSIGN_AUTH__JWT_ISSUER", "https://issuer.example")
            .env("COUNTERSIGN_AUTH__JWT_AUDIENCE", "us")
            .env("COUNTERSIGN_AUTH__JWT_JWKS_FILE", &keys);
        command
    };
    let checks = [
        "configuration",
        "tls",
        "issuer's keys",
        "database",
        "schema",
        "row security",
        "retention",
        "credentials",
        "clock",
        "connections",
        "notifications",
    ];
    let (ok, found) = findings(&mut node());
    assert!(ok, "{found}");
    let found = found.as_object().unwrap();
    assert_eq!(found.len(), checks.len(), "{found:?}");
    for check in checks {
        assert_eq!(found[check]["status"], "ok", "{found:?}");
    }
    // And for people: a line for each.
    let (ok, text) = run(node().arg("check"));
    assert!(ok, "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), checks.len(), "{text}");
    for (line, check) in lines.iter().zip(checks) {
        assert!(line.starts_with(&format!("ok       {check} ")), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_thing_that_is_wrong_is_found_with_a_remedy_and_hides_no_other() {
    let (database, elsewhere) = (Database::create().await, Database::create().await);
    let name = database.url.rsplit('/').next().unwrap();
    database
        .run(&format!(
            "create function public.clock_timestamp() returns timestamptz language sql
                 as $$ select pg_catalog.clock_timestamp() + interval '90 s' $$;
             alter database {name} set search_path = public, pg_catalog;
             alter database {name} connection limit 20;
             delete from _sqlx_migrations where version = 4"
        ))
        .await;
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("keys.json"), "{}").unwrap();
    std::fs::write(path("cert.pem"), "no certificate").unwrap();
    std::fs::write(path("key.pem"), "no key").unwrap();
    let node = || {
        let mut command = countersign();
        command
            .env("COUNTERSIGN_DATABASE__URL", &database.url)
            .env("COUNTERSIGN_DATABASE__LISTEN_URL", &elsewhere.url)
            .env("COUNTERSIGN_TLS__MODE", "on")
            .env("COUNTERSIGN_TLS__CERT_FILE", path("cert.pem"))
            .env("COUNTERSIGN_TLS__KEY_FILE", path("key.pem"))
            .env("COUNTERSIGN_AUTH__JWT_ISSUER", "https://issuer.example")
            .env("COUNTERSIGN_AUTH__JWT_AUDIENCE", "us")
            .env("COUNTERSIGN_AUTH__JWT_JWKS_FILE", path("keys.json"));
        command
    };
    let (ok, found) = findings(&mut node());
    assert!(!ok, "{found}");
    for (check, status, message, remedy) in [
        ("tls", "failed", "tls.cert_file", "replace"),
        ("issuer's keys", "failed", "JWK", "auth.jwt_jwks_file"),
        (
            "cluster secret",
            "warning",
            "second node",
            "security.cluster_secret_file",
        ),
        (
            "schema",
            "failed",
            "4 (audit and row security)",
            "countersign migrate",
        ),
        ("clock", "failed", "ahead", "time server"),
        ("connections", "failed", "allows 20", "database.pool_size"),
        (
            "notifications",
            "failed",
            "did not arrive",
            "database.listen_url",
        ),
    ] {
        let finding = &found[check];
        assert_eq!(finding["status"], status, "{finding}");
        for (member, part) in [("message", message), ("remedy", remedy)] {
            let text = finding[member].as_str().unwrap();
            assert!(text.contains(part), "{finding}");
        }
    }
    for check in ["configuration", "database"] {
        assert_eq!(found[check]["status"], "ok", "{found}");
    }
    // Settings that do no harm if they are deliberate.
    let (_, found) = findings(
        node()
            .env("COUNTERSIGN_WAKE__MODE", "poll")
            .env("COUNTERSIGN_DATABASE__POOL_SIZE", "6"),
    );
    assert_eq!(found["notifications"], Value::Null);
    assert_eq!(found["connections"]["status"], "ok", "{found}");
    std::fs::remove_file(path("keys.json")).unwrap();
    let (_, found) = findings(node().env("COUNTERSIGN_DATABASE__POOL_SIZE", "14"));
    assert_eq!(found["issuer's keys"]["status"], "warning", "{found}");
    assert_eq!(found["connections"]["status"], "warning", "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_with_which_nobody_could_sign_in_is_found() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = format!("http://{}/realm/", listener.local_addr().unwrap());
    let said = Arc::new(Mutex::new(Value::Null));
    let answer = {
        let said = Arc::clone(&said);
        async move || said.lock().unwrap().to_string()
    };
    let path = "/realm/.well-known/openid-configuration";
    let router = Router::new().route(path, get(answer));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let database = Database::create().await;
    let check = async |issuer: &str, origins: &str| {
        let mut command = countersign();
        command
            .env("COUNTERSIGN_DATABASE__URL", &database.url)
            .env("COUNTERSIGN_AUTH__JWT_ISSUER", issuer)
            .env("COUNTERSIGN_AUTH__JWT_AUDIENCE", "us")
            .env("COUNTERSIGN_AUTH__JWT_SECRET", super::SECRET)
            .env("COUNTERSIGN_AUTH__JWT_ALGORITHMS", "[\"HS256\"]")
            .env("COUNTERSIGN_PAGE__OIDC__ISSUER", issuer)
            .env("COUNTERSIGN_PAGE__OIDC__CLIENT_ID", "page")
            .env("COUNTERSIGN_PAGE__OIDC__ORIGINS", origins);
        let found = tokio::task::spawn_blocking(move || findings(&mut command));
        let (_, mut found) = found.await.unwrap();
        found["sign-in"].take()
    };
    let good = json!({
        "issuer": issuer, "authorization_endpoint": "https://login.example.com/authorize",
        "token_endpoint": format!("{issuer}token"), "revocation_endpoint": "https://api.example.com/revoke",
    });
    let listed = "[\"https://api.example.com\"]";
    for (document, origins, status, message) in [
        (good.clone(), listed, "ok", "the page may call it"),
        (
            good.clone(),
            "[]",
            "failed",
            "the page may not call revocation_endpoint, https://api.example.com/revoke",
        ),
        (
            with(&good, "/token_endpoint", json!("https://x.example.com/")),
            listed,
            "failed",
            "the page may not call token_endpoint",
        ),
        (
            with(&good, "/token_endpoint", Value::Null),
            listed,
            "failed",
            "the provider names no token_endpoint",
        ),
        (
            with(&good, "/issuer", json!(issuer.trim_end_matches('/'))),
            listed,
            "failed",
            "the provider calls itself",
        ),
        (
            Value::Null,
            listed,
            "failed",
            "the provider calls itself null",
        ),
    ] {
        said.lock().unwrap().clone_from(&document);
        let found = check(&issuer, origins).await;
        assert_eq!(found["status"], status, "{found}");
        assert!(
            found["message"].as_str().unwrap().contains(message),
            "{found}"
        );
    }
    let away = check(&format!("{issuer}elsewhere"), listed).await;
    assert_eq!(away["status"], "warning", "{away}");
}
