//! A request that a proxy and a node could read differently.

use crate::support::{Cluster, raw};

#[tokio::test(flavor = "multi_thread")]
async fn two_headers_that_could_name_two_callers_are_refused() {
    let cluster = Cluster::start(1).await;
    let alice = cluster.approver("alice").await;
    let bob = cluster.approver("bob").await;
    let (url, key) = (&cluster.nodes[0].url, alice.client.key());
    let other = bob.client.key();
    let twice = [
        (
            format!("authorization: Bearer {key}\r\nauthorization: Bearer {other}"),
            "Authorization",
        ),
        (
            format!("authorization: Bearer {key}\r\nauthorization: Bearer {key}"),
            "Authorization",
        ),
        (
            format!("x-api-key: {key}\r\nx-api-key: {other}"),
            "X-API-Key",
        ),
        (format!("x-pat: {key}\r\nx-pat: {other}"), "X-PAT"),
        (
            format!("x-client-id: {key}\r\nx-client-id: {other}"),
            "X-Client-Id",
        ),
        (
            format!("x-client-secret: {key}\r\nx-client-secret: {other}"),
            "X-Client-Secret",
        ),
        // A second one is added to every request of this kind.
        (
            format!("authorization: Bearer {key}\r\nhost: elsewhere"),
            "Host",
        ),
    ];
    for (headers, name) in twice {
        let head = format!("GET /v1/approvers/alice/inbox HTTP/1.1\r\n{headers}");
        let answer = raw::send(url, &head, b"").await.refused(400, "VALIDATION");
        assert_eq!(answer.detail("parameter"), name);
    }
}
