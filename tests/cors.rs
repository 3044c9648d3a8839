//! Browsers: pages of listed origins may call and read, refusals included; no other page changes
//! anything.

use reqwest::Method;
use serde_json::json;

use crate::access::routes::ROUTES;
use crate::support::{Answer, Client, Cluster, http, request_id, sealed};

const LISTED: &str = "https://desk.example.com";
const OTHER: &str = "https://evil.example.com";

async fn listing() -> Cluster {
    Cluster::with(1, |config| config.server.origins = vec![LISTED.to_owned()]).await
}

async fn from(client: &Client, method: Method, path: &str, origin: &str) -> Answer {
    client
        .call(method, path)
        .header("origin", origin)
        .send()
        .await
}

/// Whether an answer may be read by pages of that origin, and says to caches that it depends on who
/// asks.
#[track_caller]
fn is_shared(answer: &Answer, origin: &str) -> bool {
    assert_eq!(answer.header("vary"), Some("Origin"), "{answer:?}");
    assert_eq!(answer.header("access-control-allow-credentials"), None);
    match answer.header("access-control-allow-origin") {
        None => false,
        Some(allowed) => {
            assert_eq!(allowed, origin);
            true
        }
    }
}

async fn preflight(client: &Client, path: &str, origin: &str, method: &str) -> Answer {
    let call = client.call(Method::OPTIONS, path).header("origin", origin);
    let call = call.header("access-control-request-method", method);
    let call = call.header("access-control-request-headers", "authorization");
    call.send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_lets_listed_origins_ask_first_and_no_others() {
    let cluster = listing().await;
    let nobody = cluster.client(None);
    for route in ROUTES {
        let path = route.path_for("r");
        let answer = preflight(&nobody, &path, LISTED, route.method).await;
        assert_eq!((answer.status, answer.text.as_str()), (204, ""), "{path}");
        assert!(is_shared(&answer, LISTED), "{path}");
        let allowed = answer.header("access-control-allow-methods").unwrap();
        assert!(allowed.split(", ").any(|one| one == route.method));
        let headers = answer.header("access-control-allow-headers").unwrap();
        for needed in [
            "Authorization",
            "Content-Type",
            "X-API-Key",
            "X-PAT",
            "X-Client-Id",
            "X-Client-Secret",
            "Idempotency-Key",
            "If-None-Match",
            "Last-Event-ID",
        ] {
            assert!(headers.split(", ").any(|one| one == needed), "{needed}");
        }
        for stranger in [OTHER, "null", "https://desk.example.com.evil.example"] {
            let answer = preflight(&nobody, &path, stranger, route.method).await;
            let answer = answer.refused(405, "METHOD_NOT_ALLOWED");
            assert!(!is_shared(&answer, stranger), "{path}");
            assert_eq!(answer.header("access-control-allow-methods"), None);
        }
        // Without the question it is a method like any other.
        let plain = from(&nobody, Method::OPTIONS, &path, LISTED).await;
        assert!(is_shared(&plain.refused(405, "METHOD_NOT_ALLOWED"), LISTED));
        let bare = nobody.call(Method::OPTIONS, &path).send().await;
        bare.refused(405, "METHOD_NOT_ALLOWED");
    }
    let nowhere = preflight(&nobody, "/nowhere", LISTED, "GET").await;
    assert!(is_shared(&nowhere.refused(404, "NOT_FOUND"), LISTED));
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_and_refusals_can_be_read_by_listed_origins_alone() {
    let cluster = listing().await;
    let enforcer = cluster.enforcer("build-bot").await;
    let nobody = cluster.client(None);
    for (client, path, status) in [
        (&nobody, "/v1/status", 200),
        (&nobody, "/v1/exchanges/r", 401),
        (&nobody, "/platform/v1/tenants", 401),
        (&nobody, "/nowhere", 404),
        (&enforcer.client, "/v1/exchanges/r", 404),
        (&enforcer.client, "/v1/approvers/alice/inbox", 403),
        (&enforcer.client, "/v1/exchanges/r/wait?timeout=x", 400),
        (&enforcer.client, "/platform/v1/exchanges", 200),
    ] {
        let answer = from(client, Method::GET, path, LISTED).await;
        assert_eq!(answer.status, status, "{path}");
        assert!(is_shared(&answer, LISTED), "{path}");
        let exposed = answer.header("access-control-expose-headers").unwrap();
        for needed in [
            "ETag",
            "Retry-After",
            "Exchange-State",
            "Idempotency-Replayed",
            "X-Request-Id",
        ] {
            assert!(exposed.split(", ").any(|one| one == needed), "{needed}");
        }
        let answer = from(client, Method::GET, path, OTHER).await;
        assert_eq!(answer.status, status, "{path}");
        assert!(!is_shared(&answer, OTHER), "{path}");
        assert!(!is_shared(&client.get(path).await, ""), "{path}");
    }
    // An event stream is read by listed origins, and refused to others.
    let path = "/v1/sse/enforcers/build-bot";
    let refused = from(&enforcer.client, Method::GET, path, OTHER).await;
    assert!(!is_shared(&refused.refused(403, "FORBIDDEN"), OTHER));
    let stream = (http().build().unwrap())
        .get(format!("{}{path}", cluster.urls()[0]))
        .bearer_auth(enforcer.client.key())
        .header("origin", LISTED)
        .send()
        .await
        .unwrap();
    assert_eq!(stream.status(), 200);
    assert_eq!(stream.headers()["access-control-allow-origin"], LISTED);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_list_nothing_is_shared() {
    let cluster = Cluster::start(1).await;
    let nobody = cluster.client(None);
    for answer in [
        from(&nobody, Method::GET, "/v1/status", LISTED).await,
        preflight(&nobody, "/v1/status", LISTED, "GET").await,
    ] {
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_from_elsewhere_changes_nothing() {
    let cluster = listing().await;
    let enforcer = cluster.enforcer("build-bot").await;
    let admin = cluster.admin().await;
    let own = cluster.urls().remove(0);
    let submit = async |origin: &str| {
        let sent = enforcer.submission(&request_id(), "alice", sealed());
        let call = enforcer.client.call(Method::POST, "/v1/artifacts");
        call.header("origin", origin).json(&sent).send().await
    };
    let before = cluster.database.counts().await;
    let elsewhere = own.replace("http://", "http://x");
    let port = own.replace("127.0.0.1", "localhost");
    for origin in [
        OTHER,
        "null",
        "",
        "https://desk.example.com:8443",
        &elsewhere,
        &port,
    ] {
        let refused = submit(origin).await.refused(403, "FORBIDDEN");
        assert_eq!(refused.json()["msgType"], "error");
        assert_eq!(refused.detail("parameter"), "Origin");
        assert!(!is_shared(&refused, origin));
    }
    for route in ROUTES.iter().filter(|route| route.method != "GET") {
        let call = admin.call(route.method(), &route.path_for("r"));
        let call = call.header("origin", OTHER).json(&json!({}));
        let refused = call.send().await.refused(403, "FORBIDDEN");
        assert_eq!(refused.detail("parameter"), "Origin", "{}", route.path);
    }
    assert_eq!(cluster.database.counts().await, before);
    // Its own pages, those of listed origins, and whatever is no browser.
    submit(&own).await.expect(202);
    submit(&own.to_uppercase().replace("HTTP", "http"))
        .await
        .expect(202);
    assert!(is_shared(&submit(LISTED).await.expect(202), LISTED));
    enforcer
        .submit(&request_id(), "alice", sealed())
        .await
        .expect(202);
}
