//! Access rules: every route, with no credential, a bad one, another role's, another id's and
//! another tenant's.

mod credentials;
mod matrix;
mod revoked;
pub mod routes;
mod tenants;

use std::time::Duration;

use countersign::store::identity::credential::RoleName;
use reqwest::Method;
use serde_json::json;

use self::routes::{ROUTES, Role, Route, is_plain};
use crate::support::cluster::OPERATOR_KEY;
use crate::support::{Answer, Cluster, raw, sealed, until};

/// Plain JSON on some paths, Envelopes on the protocol's others.
#[track_caller]
fn framed(answer: &Answer, path: &str) {
    let (kind, is_envelope) = if is_plain(path) {
        ("application/json", false)
    } else {
        ("application/proto+json", true)
    };
    assert_eq!(answer.header("content-type"), Some(kind), "{path}");
    assert_eq!(answer.json()["msgType"] == "error", is_envelope, "{path}");
}

#[track_caller]
fn unauthenticated(answer: Answer, path: &str) {
    let answer = answer.refused(401, "UNAUTHENTICATED");
    let challenge = answer.header("www-authenticate").expect("a challenge");
    assert!(challenge.starts_with("Bearer"), "{challenge}");
    framed(&answer, path);
}

#[test]
fn every_handler_has_an_entry_in_the_table() {
    let mut handlers: Vec<_> = countersign::http::routes()
        .into_iter()
        .map(|(method, path)| (method.to_uppercase(), path))
        .collect();
    let mut table: Vec<_> = ROUTES
        .iter()
        .map(|route| {
            let template = route.path.split('?').next().unwrap();
            (route.method.to_owned(), template)
        })
        .collect();
    handlers.sort_unstable();
    table.sort_unstable();
    assert_eq!(table, handlers);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_good_credential_every_route_is_closed() {
    let cluster = Cluster::start(1).await;
    let key = cluster.key(&cluster.tenant, RoleName::Admin, None).await;
    let (id, secret) = key.strip_prefix("csk_").unwrap().split_once('_').unwrap();
    let nobody = cluster.client(None);
    let bad = [
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        format!("Basic {key}"),
        key.clone(),
        "Bearer csk_".to_owned(),
        format!("Bearer {id}_{secret}"),
        format!("Bearer csk_{id}_"),
        format!("Bearer csk_{id}_{secret}x"),
        format!("Bearer csk_{id}_{}", &secret[1..]),
        format!("Bearer csk_x{id}_{secret}"),
        format!("Bearer {OPERATOR_KEY}x"),
        format!("Bearer {}", OPERATOR_KEY.to_uppercase()),
    ];
    let before = cluster.database.counts().await;
    for route in ROUTES.iter().filter(|route| !route.roles.is_empty()) {
        let path = route.path_for("r");
        let call = || nobody.call(route.method(), &path);
        unauthenticated(call().send().await, &path);
        for value in &bad {
            unauthenticated(call().header("authorization", value).send().await, &path);
        }
        unauthenticated(call().header("x-api-key", "csk_a_b").send().await, &path);
    }
    assert_eq!(cluster.database.counts().await, before);

    let tenants = "/platform/v1/credentials";
    for (name, value) in [
        ("x-api-key", key.clone()),
        ("X-API-Key", OPERATOR_KEY.to_owned()),
        ("authorization", format!("bearer {key}")),
        ("authorization", format!("BEARER {key}")),
    ] {
        let call = nobody.call(Method::GET, tenants).header(name, &value);
        call.send().await.expect(200);
    }
    let live = nobody.get("/livez").await.expect(200);
    assert_eq!(live.json(), json!({ "status": "live" }));
    until("ready", Duration::from_secs(10), async || {
        let ready = nobody.get("/readyz").await.expect(200);
        ready.json() == json!({ "status": "ready" })
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_api_key_gets_a_hint_and_every_other_wrong_one_the_same_answer() {
    let cluster = Cluster::start(1).await;
    let key = cluster.key(&cluster.tenant, RoleName::Admin, None).await;
    let (id, secret) = key.strip_prefix("csk_").unwrap().split_once('_').unwrap();
    let nobody = cluster.client(None);
    let refused = async |name: &str, value: &str| {
        let call = nobody.call(Method::GET, "/platform/v1/credentials");
        let answer = call.header(name, value).send().await;
        let answer = answer.refused(401, "UNAUTHENTICATED").json();
        (answer["message"].clone(), answer["details"].clone())
    };
    let said = "a valid credential is required";
    let hint = "an API key as printed when it was made: csk_…, complete and without placeholders";
    for malformed in [
        "csk_…".to_owned(),
        "csk_".to_owned(),
        "csk_a_b".to_owned(),
        format!("csk_{id}"),
        format!("csk_{id}_{}", &secret[1..]),
        format!("{key}x"),
    ] {
        let expected = (json!(said), json!({ "expected": hint }));
        let bearer = format!("Bearer {malformed}");
        assert_eq!(refused("authorization", &bearer).await, expected);
        assert_eq!(refused("x-api-key", &malformed).await, expected);
    }
    for unknown in [
        format!("csk_nobody_{secret}"),
        format!("csk_{id}_{}", "x".repeat(secret.len())),
        "not-an-api-key".to_owned(),
        "not…ascii".to_owned(),
    ] {
        let expected = (json!(said), json!(null));
        assert_eq!(refused("x-api-key", &unknown).await, expected, "{unknown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_is_for_its_roles_alone_and_reads_no_body_to_find_out() {
    let cluster = Cluster::start(1).await;
    let url = cluster.urls().remove(0);
    let keys = [
        (
            Role::Enforcer,
            cluster.key(&cluster.tenant, RoleName::Enforcer, None).await,
        ),
        (
            Role::Approver,
            cluster
                .key(&cluster.tenant, RoleName::Approver, Some("alice"))
                .await,
        ),
        (
            Role::Admin,
            cluster.key(&cluster.tenant, RoleName::Admin, None).await,
        ),
        (Role::Operator, OPERATOR_KEY.to_owned()),
    ];
    let before = cluster.database.counts().await;
    for route in ROUTES.iter().filter(|route| !route.roles.is_empty()) {
        let path = route.path_for("r");
        // A body is announced and never comes: a node that waited for it would not answer.
        let head = format!(
            "{} {path} HTTP/1.1\r\ncontent-length: 1000000",
            route.method()
        );
        unauthenticated(raw::send(&url, &head, b"").await, &path);
        for (role, key) in &keys {
            let head = format!("{head}\r\nauthorization: Bearer {key}");
            if !route.roles.contains(role) {
                let answer = raw::send(&url, &head, b"").await.refused(403, "FORBIDDEN");
                assert!(answer.detail("expected").is_string(), "{path}");
                framed(&answer, &path);
            }
        }
    }
    assert_eq!(cluster.database.counts().await, before);

    // Allowed callers get past these checks. (Streams have tests of their own.)
    let streams = |route: &&Route| route.path.contains("/sse/") || route.path.contains("/ws?");
    for route in ROUTES.iter().filter(|route| !streams(route)) {
        let path = route.path_for("r");
        for (_, key) in keys.iter().filter(|(role, _)| route.roles.contains(role)) {
            let call = cluster.client(Some(key));
            let answer = call.call(route.method(), &path).send().await;
            assert!(
                ![401, 403, 405, 500].contains(&answer.status),
                "{path} {answer:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_methods_name_the_right_ones_and_unknown_paths_are_not_found() {
    let cluster = Cluster::start(1).await;
    let nobody = cluster.client(None);
    for route in ROUTES {
        let path = route.path_for("r");
        let answer = nobody.call(Method::PATCH, &path).send().await;
        let answer = answer.refused(405, "METHOD_NOT_ALLOWED");
        framed(&answer, &path);
        let allow = answer.header("allow").expect("Allow");
        let mut allowed: Vec<_> = allow
            .split(',')
            .filter(|method| *method != "HEAD")
            .collect();
        allowed.sort_unstable();
        let same = ROUTES
            .iter()
            .filter(|other| other.path.split('?').next() == route.path.split('?').next());
        let mut expected: Vec<_> = same.map(|route| route.method).collect();
        expected.sort_unstable();
        assert_eq!(allowed, expected, "{path}");
    }
    for path in [
        "//",
        "/v1",
        "/v1/artifacts/",
        "/v1/artifact5",
        "/v2/artifacts",
        "/platform/v1",
        "/V1/artifacts",
    ] {
        let answer = nobody.get(path).await.refused(404, "NOT_FOUND");
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_cannot_name_anything_is_refused_in_the_same_frame_as_others() {
    let cluster = Cluster::start(1).await;
    let keys = [
        (
            Role::Enforcer,
            cluster.key(&cluster.tenant, RoleName::Enforcer, None).await,
        ),
        (
            Role::Approver,
            cluster.key(&cluster.tenant, RoleName::Approver, None).await,
        ),
        (
            Role::Admin,
            cluster.key(&cluster.tenant, RoleName::Admin, None).await,
        ),
        (Role::Operator, OPERATOR_KEY.to_owned()),
    ];
    let named = ROUTES.iter().filter(|route| route.path.contains('{'));
    for route in named {
        let (_, key) = keys
            .iter()
            .find(|(role, _)| route.roles.is_empty() || route.roles.contains(role))
            .expect("a role");
        let client = cluster.client(Some(key));
        for bad in ["%ff", "%00", "a%0Ab", &"x".repeat(129)] {
            let path = route.path.split('{').next().unwrap().to_owned() + bad;
            let rest = route.path.split_once('}').unwrap().1;
            let rest = rest
                .replace("{requestId}", "r")
                .replace("{signerKeyId}", "k");
            let path = path + &rest;
            let answer = client.call(route.method(), &path).send().await;
            assert!([400, 404].contains(&answer.status), "{path} {answer:?}");
            framed(&answer, &path);
            assert!(
                ["VALIDATION", "NOT_FOUND"].contains(&answer.code().as_str()),
                "{answer:?}"
            );
        }
    }

    // Any id can be named in a path, once it is escaped.
    let enforcer = cluster.enforcer("build-bot").await;
    enforcer
        .submit("a/b?c=ü %", "alice", sealed())
        .await
        .expect(202);
    let status = enforcer.status("a%2Fb%3Fc=%C3%BC%20%25").await.expect(200);
    assert_eq!(status.body("/requestId"), "a/b?c=ü %");
}
