//! The page of the node's own host opens channels and calls without any setting; pages of other
//! hosts do not.

use reqwest::Method;
use serde_json::json;

use crate::support::push::Socket;
use crate::support::{Cluster, http};

/// Tries a WebSocket and an event stream as a browser does from a page of this origin, and tells
/// both statuses.
async fn channels(cluster: &Cluster, key: &str, origin: &str, host: Option<&str>) -> (u16, u16) {
    let url = &cluster.urls()[0];
    let socket = Socket::connect_from(url, "approver", "alice", key, origin, host).await;
    let call = http().build().unwrap();
    let call = call.get(format!("{url}/v1/sse/approvers/alice"));
    let call = call.bearer_auth(key).header("origin", origin);
    let call = match host {
        Some(host) => call.header("host", host),
        None => call,
    };
    let stream = call.send().await.unwrap().status().as_u16();
    (socket.err().unwrap_or(101), stream)
}

#[tokio::test(flavor = "multi_thread")]
async fn channels_open_for_the_page_of_the_same_host_and_no_other() {
    let cluster = Cluster::start(1).await;
    let approver = cluster.approver("alice").await;
    let key = approver.client.key();
    let own = cluster.urls().remove(0);
    assert_eq!(channels(&cluster, key, &own, None).await, (101, 200));
    // Behind a proxy that terminates TLS and passes the host on.
    for (origin, host) in [
        ("https://gateway.example.com", "gateway.example.com"),
        ("https://gateway.example.com", "gateway.example.com:443"),
        (
            "https://gateway.example.com:8443",
            "Gateway.Example.com:8443",
        ),
        ("http://localhost:8080", "localhost:8080"),
    ] {
        let opened = channels(&cluster, key, origin, Some(host)).await;
        assert_eq!(opened, (101, 200), "{origin} {host}");
    }
    for (origin, host) in [
        ("https://evil.example.com", "gateway.example.com"),
        (
            "https://gateway.example.com.evil.example",
            "gateway.example.com",
        ),
        ("https://gateway.example.com:8443", "gateway.example.com"),
        ("https://gateway.example.com", "gateway.example.com:80"),
        ("gateway.example.com", "gateway.example.com"),
        ("null", "gateway.example.com"),
        ("", "gateway.example.com"),
    ] {
        let refused = channels(&cluster, key, origin, Some(host)).await;
        assert_eq!(refused, (403, 403), "{origin} {host}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_own_page_calls_without_a_list_and_its_answers_are_shared_with_nobody() {
    let cluster = Cluster::start(1).await;
    let nobody = cluster.client(None);
    let own = cluster.urls().remove(0);
    let join = async |origin: &str| {
        let call = nobody.call(Method::POST, "/v1/join");
        let code = "A".repeat(43);
        call.header("origin", origin)
            .json(&json!({ "code": code }))
            .send()
            .await
    };
    // As far as without an origin.
    let answer = join(&own).await.refused(404, "NOT_FOUND");
    assert_eq!(answer.header("access-control-allow-origin"), None);
    join("https://evil.example.com")
        .await
        .refused(403, "FORBIDDEN");
}
