//! A configuration by halves, or one that could be mixed up, refuses to start; secrets are read
//! from files and never printed.

use countersign::config::{Config, Secret};
use serde_json::{Value, json};

/// A secret that is long enough.
const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// The error of `[auth]` being `base` with one key changed.
fn problem(base: &Value, key: &str, value: &Value) -> Option<String> {
    let mut auth = base.clone();
    if !key.is_empty() {
        auth[key] = value.clone();
    }
    let mut config = Config::default();
    config.database.url = Secret::from("postgres://somewhere/db");
    config.auth = serde_json::from_value(auth).unwrap();
    config.validate().err().map(|error| error.to_string())
}

#[test]
fn what_is_configured_by_halves_or_could_be_mixed_up_refuses_to_start() {
    let jwt = json!({
        "jwt_issuer": "https://issuer.example", "jwt_audience": "us", "jwt_jwks_url": "https://issuer.example/jwks",
    });
    let shared = json!({
        "jwt_issuer": "https://issuer.example", "jwt_audience": "us", "jwt_secret": SECRET, "jwt_algorithms": ["HS256"],
    });
    let opaque = json!({
        "introspection_url": "https://issuer.example/introspect", "introspection_client_id": "us",
        "introspection_client_secret": "secret",
    });
    for (base, key, value) in [
        (&json!({}), "", json!(null)),
        (&json!({}), "basic", json!(true)),
        (&jwt, "", json!(null)),
        (&jwt, "jwt_jwks_url", json!("http://127.0.0.1:8081/jwks")),
        (&jwt, "jwt_jwks_url", json!("http://localhost/jwks")),
        (&shared, "", json!(null)),
        (&opaque, "", json!(null)),
        (
            &opaque,
            "introspection_url",
            json!("http://[::1]/introspect"),
        ),
    ] {
        assert_eq!(problem(base, key, &value), None);
    }
    for (base, key, value, named) in [
        (&jwt, "jwt_issuer", json!(""), "jwt_issuer"),
        (&jwt, "jwt_audience", json!(""), "jwt_audience"),
        (&jwt, "jwt_jwks_url", json!(""), "jwt_jwks_url"),
        (&jwt, "jwt_jwks_file", json!("keys"), "jwt_jwks_url"),
        (&shared, "jwt_jwks_file", json!("keys"), "jwt_jwks_url"),
        (&jwt, "jwt_secret", json!(SECRET), "jwt_jwks_url"),
        (
            &jwt,
            "jwt_jwks_url",
            json!("http://issuer.example/jwks"),
            "jwt_jwks_url",
        ),
        (
            &jwt,
            "jwt_jwks_url",
            json!("http://127.0.0.1.example/"),
            "jwt_jwks_url",
        ),
        (
            &jwt,
            "jwt_jwks_url",
            json!("https://me:word@issuer.example/"),
            "jwt_jwks_url",
        ),
        (
            &jwt,
            "jwt_jwks_url",
            json!("ftp://issuer.example/jwks"),
            "jwt_jwks_url",
        ),
        (&jwt, "jwt_jwks_url", json!("/jwks"), "jwt_jwks_url"),
        (&jwt, "jwt_jwks_url", json!("issuer"), "jwt_jwks_url"),
        (&shared, "jwt_secret", json!(&SECRET[1..]), "jwt_secret"),
        (
            &shared,
            "jwt_algorithms",
            json!(["HS256", "RS256"]),
            "jwt_algorithms",
        ),
        (
            &shared,
            "jwt_algorithms",
            json!(["RS256"]),
            "jwt_algorithms",
        ),
        (
            &jwt,
            "jwt_algorithms",
            json!(["RS256", "HS256"]),
            "jwt_algorithms",
        ),
        (&jwt, "jwt_algorithms", json!(["HS256"]), "jwt_algorithms"),
        (&jwt, "jwt_algorithms", json!([]), "jwt_algorithms"),
        (&jwt, "jwt_leeway_seconds", json!(301), "jwt_leeway_seconds"),
        (
            &jwt,
            "jwt_max_lifetime_seconds",
            json!(i64::MAX),
            "jwt_max_lifetime_seconds",
        ),
        (&jwt, "jwt_tenant_claim", json!(""), "jwt_tenant_claim"),
        (&json!({}), "jwt_secret", json!(SECRET), "jwt_issuer"),
        (&opaque, "introspection_url", json!(""), "introspection_url"),
        (
            &opaque,
            "introspection_url",
            json!("http://10.0.0.1/"),
            "introspection_url",
        ),
        (
            &opaque,
            "introspection_client_id",
            json!(""),
            "introspection_client_id",
        ),
        (
            &opaque,
            "introspection_client_secret",
            json!(""),
            "introspection_client_id",
        ),
        (
            &opaque,
            "introspection_cache_seconds",
            json!(61),
            "introspection_cache_seconds",
        ),
        (
            &jwt,
            "introspection_audience",
            json!("us"),
            "introspection_url",
        ),
    ] {
        let problem = problem(base, key, &value).unwrap_or_else(|| panic!("{key} = {value}"));
        assert!(
            problem.starts_with(&format!("auth.{named}:")),
            "{key} = {value}: {problem}"
        );
        assert!(!problem.contains("0123456789"), "{problem}");
    }
}

#[test]
fn secrets_come_from_files_and_are_not_printed() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let jwt = write("jwt", "jwt-secret-0123456789abcdef0123456789\n");
    let client = write("client", "client-secret-0123456789\n");
    let file = write(
        "countersign.toml",
        &format!(
            "database.url = 'postgres://somewhere/db'\n[auth]\njwt_issuer = 'i'\njwt_audience = 'a'\n\
             jwt_algorithms = ['HS256']\njwt_secret_file = '{jwt}'\nintrospection_url = 'https://i.example'\n\
             introspection_client_id = 'us'\nintrospection_client_secret_file = '{client}'\nbasic = true\n"
        ),
    );
    let config = Config::load(Some(file.as_ref())).unwrap();
    config.validate().unwrap();
    assert_eq!(
        config.auth.jwt_secret.expose(),
        "jwt-secret-0123456789abcdef0123456789"
    );
    assert_eq!(
        config.auth.introspection_client_secret.expose(),
        "client-secret-0123456789"
    );
    let printed = format!("{config:?}");
    assert!(!printed.contains("secret-0123456789"), "{printed}");

    let unknown = write("unknown.toml", "[auth]\njwt_algorithms = ['none']\n");
    assert!(Config::load(Some(unknown.as_ref())).is_err());
}
