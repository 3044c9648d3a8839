//! Who may call what: every route, with no credential, a bad one, another role's, another id's and another tenant's.

mod routes;
mod tenants;

use std::time::Duration;

use countersign::store::credential::RoleName;
use reqwest::Method;
use serde_json::{Value, json};

use self::routes::{ROUTES, Role};
use crate::support::cluster::OPERATOR_KEY;
use crate::support::{
    Answer, Cluster, compact, envelope, in_time, now, raw, request_id, sealed, until,
};

/// Envelopes on the protocol's paths, plain JSON on the others.
#[track_caller]
fn framed(answer: &Answer, path: &str) {
    let (kind, is_envelope) = if path.starts_with("/v1/") {
        ("application/proto+json", true)
    } else {
        ("application/json", false)
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
    let source = include_str!("../src/http/mod.rs");
    let handlers: usize = ["(exchange::", "(inbox::", "(platform::", "(health::"]
        .map(|handler| source.matches(handler).count())
        .iter()
        .sum();
    assert_eq!(ROUTES.len(), handlers);
    for route in ROUTES {
        let template = route.path.split('?').next().unwrap();
        assert!(source.contains(&format!("\"{template}\"")), "{template}");
    }
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
            cluster.key(&cluster.tenant, RoleName::Approver, None).await,
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
        // A body is announced and never comes: whoever waited for it would not answer.
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

    // Whoever is allowed gets further than that: nothing of the sort comes back.
    for route in ROUTES {
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
async fn a_credential_bound_to_one_id_acts_as_no_other() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let other = cluster.enforcer("other-bot").await;
    let bob = cluster.approver("bob").await;
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    let forbidden = |answer: Answer, member: &str, name: &str| {
        let answer = answer.refused(403, "FORBIDDEN");
        assert_eq!(answer.detail(member), name, "{answer:?}");
    };
    let before = cluster.database.counts().await;

    for (method, path) in [
        (Method::GET, "/v1/approvers/alice/inbox".to_owned()),
        (Method::GET, "/v1/approvers/alice/inbox/expired".to_owned()),
        (
            Method::DELETE,
            format!("/v1/approvers/alice/inbox/{request}"),
        ),
        (Method::GET, "/platform/v1/approvers/alice/keys".to_owned()),
        (
            Method::PUT,
            "/platform/v1/approvers/alice/keys/k".to_owned(),
        ),
        (
            Method::DELETE,
            "/platform/v1/approvers/alice/keys/k".to_owned(),
        ),
    ] {
        // Without a body: the path is judged before it.
        forbidden(
            bob.client.call(method, &path).send().await,
            "parameter",
            "approverId",
        );
    }
    let listing = other
        .client
        .get("/platform/v1/exchanges?enforcerId=build-bot")
        .await;
    forbidden(listing, "parameter", "enforcerId");

    let as_bot = json!({ "enforcerId": "build-bot" });
    let as_alice = json!({ "approverId": "alice" });
    let ack = json!({ "msgId": request_id(), "status": "received", "ackAt": now() });
    let pointer = ("/sender/enforcerId", "/sender/approverId");
    let paths = [
        ("/v1/artifacts", "artifact.submit", sealed()),
        ("/v1/acks", "ack.submit", ack.clone()),
        ("/v1/exchanges/{}/withdraw", "exchange.withdrawn", json!({})),
    ];
    for (path, kind, body) in paths {
        let message = envelope(kind, &request, as_bot.clone(), body);
        let answer = other
            .client
            .post(&path.replace("{}", &request), &message)
            .await;
        forbidden(answer, "pointer", pointer.0);
    }
    let paths = [
        ("/v1/decisions", "decision.submit", compact("approve")),
        ("/v1/acks", "ack.submit", ack),
        ("/v1/exchanges/{}/refresh", "refresh.request", json!({})),
        ("/v1/requests/{}/refresh", "refresh.request", json!({})),
    ];
    for (path, kind, body) in paths {
        let message = envelope(kind, &request, as_alice.clone(), body);
        let answer = bob
            .client
            .post(&path.replace("{}", &request), &message)
            .await;
        forbidden(answer, "pointer", pointer.1);
    }
    assert_eq!(cluster.database.counts().await, before);

    // Those an exchange does not concern do not learn that it exists.
    for client in [&other.client, &bob.client] {
        let answer = client.get(&format!("/v1/exchanges/{request}")).await;
        answer.refused(404, "NOT_FOUND");
    }
    let wait = format!("/v1/exchanges/{request}/wait?timeout=1");
    other.client.get(&wait).await.refused(404, "NOT_FOUND");

    // An unbound credential acts as any id of its role.
    let any = cluster.key(&cluster.tenant, RoleName::Approver, None).await;
    let any = cluster.client(Some(&any));
    any.get("/v1/approvers/alice/inbox").await.expect(200);
    any.get("/v1/approvers/bob/inbox").await.expect(200);
    let message = envelope("decision.submit", &request, as_alice, compact("approve"));
    any.post("/v1/decisions", &message).await.expect(200);
    let who = "select decided_by from exchanges";
    assert_eq!(cluster.database.text(who).await, "alice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_ends_with_its_time_its_revocation_or_its_tenant() {
    let cluster = Cluster::start(3).await;
    let (admin, operator) = (cluster.admin().await, cluster.operator());
    let listing = "/v1/approvers/alice/inbox";
    let make = async |extra: Value| {
        let mut body = extra;
        body["role"] = json!("approver");
        let made = admin
            .post("/platform/v1/credentials", &body)
            .await
            .expect(201)
            .json();
        let key = made["apiKey"].as_str().unwrap().to_owned();
        (made["credentialId"].as_str().unwrap().to_owned(), key)
    };
    let (_, timed) = make(json!({ "expiresAt": in_time(600) })).await;
    let (id, revoked) = make(json!({})).await;
    let (_, untouched) = make(json!({})).await;
    // Every node knows each of them before anything changes.
    for key in [&timed, &revoked, &untouched] {
        for node in 0..3 {
            cluster
                .client(Some(key))
                .on(node)
                .get(listing)
                .await
                .expect(200);
        }
    }
    let stops = async |key: &str, why: &str| {
        let all = cluster.client(Some(key));
        let nodes = [all.on(0), all.on(1), all.on(2)];
        let refused = async || {
            let answers = nodes.iter().map(|node| node.get(listing));
            let answers = futures_util::future::join_all(answers).await;
            answers.iter().all(|answer| answer.status == 401)
        };
        until(why, Duration::from_secs(5), refused).await;
        unauthenticated(all.get(listing).await, listing);
    };
    admin
        .delete(&format!("/platform/v1/credentials/{id}"))
        .await
        .expect(204);
    stops(&revoked, "a revocation works on every node").await;
    cluster.pass(Duration::from_secs(601));
    unauthenticated(cluster.client(Some(&timed)).get(listing).await, listing);
    for node in 0..3 {
        cluster
            .client(Some(&untouched))
            .on(node)
            .get(listing)
            .await
            .expect(200);
    }
    let tenant = format!("/platform/v1/tenants/{}", cluster.tenant);
    operator.delete(&tenant).await.expect(204);
    stops(&untouched, "a disabled tenant's credentials stop").await;
    stops(admin.key(), "its administrators too").await;
    operator.get("/platform/v1/tenants").await.expect(200);
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
        "/",
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
            .find(|(role, _)| route.roles.contains(role))
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

    // What can be an id can be named, however it has to be escaped.
    let enforcer = cluster.enforcer("build-bot").await;
    enforcer
        .submit("a/b?c=ü %", "alice", sealed())
        .await
        .expect(202);
    let status = enforcer.status("a%2Fb%3Fc=%C3%BC%20%25").await.expect(200);
    assert_eq!(status.body("/requestId"), "a/b?c=ü %");
}
