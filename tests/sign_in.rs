//! Sign-in on the approvers' page: what is configured by halves refuses to start, the page learns
//! what it needs, and a token learns who it is.

use countersign::config::{Config, Secret};
use countersign::store::identity::credential::RoleName;
use serde_json::{Value, json};

use crate::support::cluster::OPERATOR_KEY;
use crate::support::{Cluster, with};
use crate::tokens::issuer::{IssuerKey, claims, unix};
use crate::tokens::{alice, scene};

/// The error of `[page.oidc]` beside `[auth]`.
fn problem(oidc: &Value, auth: &Value) -> Option<String> {
    let mut config = Config::default();
    config.database.url = Secret::from("postgres://somewhere/db");
    config.page.oidc = serde_json::from_value(oidc.clone()).unwrap();
    config.auth = serde_json::from_value(auth.clone()).unwrap();
    config.validate().err().map(|error| error.to_string())
}

fn by_jwt() -> Value {
    json!({
        "jwt_issuer": "https://login.example.com/", "jwt_audience": "us", "jwt_jwks_url": "https://login.example.com/jwks",
    })
}

fn complete() -> Value {
    json!({ "issuer": "https://login.example.com/", "client_id": "page" })
}

#[test]
fn what_can_serve_a_sign_in_is_accepted() {
    let introspected = json!({
        "introspection_url": "https://login.example.com/introspect", "introspection_client_id": "us",
        "introspection_client_secret": "secret",
    });
    for auth in [by_jwt(), introspected] {
        assert_eq!(problem(&complete(), &auth), None);
    }
    assert_eq!(problem(&json!({}), &json!({})), None);
    for (key, value) in [
        ("issuer", json!("http://127.0.0.1:8090/realms/acme")),
        ("issuer", json!("http://[::1]:8090")),
        ("scope", json!("profile openid api://gateway/approve")),
        ("audience", json!("https://gateway.example.com")),
        ("resource", json!("https://gateway.example.com")),
        (
            "origins",
            json!(["https://api.example.com", "https://other.example.com:8443"]),
        ),
    ] {
        let oidc = with(&complete(), &format!("/{key}"), value);
        assert_eq!(problem(&oidc, &by_jwt()), None, "{oidc}");
    }
}

#[test]
fn what_is_configured_by_halves_names_the_key() {
    for (key, value, named) in [
        ("issuer", json!(""), "page.oidc.issuer: is needed"),
        ("client_id", json!(""), "page.oidc.client_id: is needed"),
        ("client_id", json!("a b"), "page.oidc.client_id"),
        (
            "issuer",
            json!("http://login.example.com"),
            "page.oidc.issuer: must be an https",
        ),
        (
            "issuer",
            json!("login.example.com"),
            "page.oidc.issuer: must be an https",
        ),
        (
            "issuer",
            json!("https://me:word@login.example.com"),
            "page.oidc.issuer",
        ),
        (
            "issuer",
            json!("https://login.example.com/?a=b"),
            "page.oidc.issuer: must be a URL",
        ),
        (
            "issuer",
            json!("https://login.example.com/#a"),
            "page.oidc.issuer: must be a URL",
        ),
        (
            "issuer",
            json!("https://login.example.com;script-src"),
            "page.oidc.issuer",
        ),
        ("issuer", json!("https://*.example.com"), "page.oidc.issuer"),
        ("scope", json!("profile"), "page.oidc.scope: must contain"),
        ("scope", json!("openid  profile"), "page.oidc.scope"),
        ("scope", json!("openid\nprofile"), "page.oidc.scope"),
        ("audience", json!("a b"), "page.oidc.audience"),
        ("resource", json!("a\tb"), "page.oidc.resource"),
        (
            "origins",
            json!(["https://api.example.com/"]),
            "page.oidc.origins: must be origins",
        ),
        (
            "origins",
            json!(["https://api.example.com/token"]),
            "page.oidc.origins",
        ),
        (
            "origins",
            json!(["https://API.example.com"]),
            "page.oidc.origins",
        ),
        ("origins", json!(["https://*"]), "page.oidc.origins"),
        (
            "origins",
            json!(["https://a.example;script-src"]),
            "page.oidc.origins",
        ),
        (
            "origins",
            json!(["http://api.example.com"]),
            "page.oidc.origins",
        ),
        ("origins", json!([""]), "page.oidc.origins"),
    ] {
        let oidc = with(&complete(), &format!("/{key}"), value);
        let problem = problem(&oidc, &by_jwt()).expect("a refusal");
        assert!(problem.starts_with(named), "{oidc}: {problem}");
    }
    for begun in [
        json!({ "client_id": "page" }),
        json!({ "audience": "us" }),
        json!({ "resource": "us" }),
        json!({ "origins": ["https://api.example.com"] }),
    ] {
        let problem = problem(&begun, &by_jwt()).expect("a refusal");
        assert!(problem.starts_with("page.oidc.issuer: is needed"));
    }
    let alone = problem(&complete(), &json!({})).expect("a refusal");
    assert!(alone.starts_with("page.oidc.issuer: needs auth.jwt_issuer"));
}

#[test]
fn the_page_may_call_the_issuers_origin_and_those_that_are_listed() {
    let mut config = Config::default();
    assert!(config.page.oidc.connect_origins().is_empty());
    config.page.oidc.issuer = "https://login.example.com:8443/realms/acme".into();
    config.page.oidc.origins = vec!["https://api.example.com".into()];
    assert_eq!(
        config.page.oidc.connect_origins(),
        ["https://login.example.com:8443", "https://api.example.com"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn anyone_may_ask_how_to_sign_in_and_is_told_nothing_else() {
    let plain = Cluster::start(1).await;
    let answer = plain.client(None).get("/v1/page").await.expect(200);
    assert_eq!(answer.json(), json!({ "oidc": null }));

    let cluster = Cluster::with(1, |config| {
        config.auth = serde_json::from_value(json!({
            "jwt_issuer": "https://login.example.com/", "jwt_audience": "us", "jwt_secret": "s".repeat(32),
            "jwt_algorithms": ["HS256"],
        }))
        .unwrap();
        config.page.oidc = serde_json::from_value(complete()).unwrap();
        config.page.oidc.audience = "https://gateway.example.com".into();
        config.page.oidc.origins = vec!["https://api.example.com".into()];
    })
    .await;
    for path in ["/", "/sw.js"] {
        let page = cluster.client(None).get(path).await.expect(200);
        let policy = page.header("content-security-policy").unwrap();
        let connect = policy
            .split("; ")
            .find(|part| part.starts_with("connect-src"));
        assert_eq!(
            connect,
            Some("connect-src 'self' https://login.example.com https://api.example.com")
        );
    }
    let answer = cluster.client(None).get("/v1/page").await.expect(200);
    assert_eq!(answer.header("cache-control"), Some("public, max-age=60"));
    assert_eq!(
        answer.json(),
        json!({ "oidc": {
            "issuer": "https://login.example.com/", "clientId": "page", "scope": "openid offline_access",
            "audience": "https://gateway.example.com",
        } })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_learns_who_it_is() {
    let key = IssuerKey::new("k1", "ES256");
    let (cluster, _provider) = scene(1, &[&key]).await;
    let tenant = cluster.tenant.as_str();
    let whoami = async |credential: &str| {
        let client = cluster.client(Some(credential));
        client.get("/v1/whoami").await
    };

    let end = unix(600);
    let token = key.sign(&with(&alice(&cluster), "/exp", json!(end)));
    let answer = whoami(&token).await.expect(200);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let mut answer = answer.json();
    let said = answer["expiresAt"].take();
    let said = time::OffsetDateTime::parse(
        said.as_str().expect("an end"),
        &time::format_description::well_known::Rfc3339,
    );
    assert_eq!(said.unwrap().unix_timestamp(), end);
    assert_eq!(
        answer,
        json!({ "tenantId": tenant, "role": "approver", "boundId": "alice", "expiresAt": null })
    );

    let bot = key.sign(&claims(tenant, "enforcer", "build-bot"));
    let answer = whoami(&bot).await.expect(200).json();
    assert_eq!(
        (&answer["role"], &answer["boundId"]),
        (&json!("enforcer"), &json!("build-bot"))
    );
    for (role, bound) in [
        (RoleName::Approver, Some("bob")),
        (RoleName::Enforcer, None),
        (RoleName::Admin, None),
    ] {
        let api_key = cluster.key(&cluster.tenant, role, bound).await;
        let mut expected = json!({ "tenantId": tenant, "role": role });
        if let Some(id) = bound {
            expected["boundId"] = id.into();
        }
        assert_eq!(whoami(&api_key).await.expect(200).json(), expected);
    }
    whoami(OPERATOR_KEY).await.refused(403, "FORBIDDEN");
    whoami("nonsense").await.refused(401, "UNAUTHENTICATED");
}
