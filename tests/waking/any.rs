//! Waits for the end of any of several exchanges, as an approver's devices do.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::without_net;
use crate::support::{Answer, Client, Cluster, compact, request_id, sealed_for, until};

async fn wait_for_any(client: &Client, requests: &[String], seconds: u32) -> Answer {
    let path = format!("/v1/waits?timeout={seconds}");
    client.post(&path, &json!({ "requestIds": requests })).await
}

/// So many pending exchanges that ask Alice.
async fn asked(cluster: &Cluster, count: usize) -> Vec<String> {
    let enforcer = cluster.enforcer("build-bot").await;
    let mut requests = Vec::new();
    for _ in 0..count {
        let request = request_id();
        let artifact = sealed_for(Duration::from_secs(600));
        enforcer
            .submit(&request, "alice", artifact)
            .await
            .expect(202);
        requests.push(request);
    }
    requests
}

/// A wait on node 0 that is registered there.
async fn waiting(
    cluster: &Cluster,
    client: &Client,
    requests: &[String],
) -> tokio::task::JoinHandle<Answer> {
    let (client, requests) = (client.on(0), requests.to_vec());
    let count = requests.len();
    // A wait that ends only by its timeout was not woken.
    let wait = tokio::spawn(async move {
        let wait = wait_for_any(&client, &requests, 60);
        timeout(Duration::from_secs(20), wait)
            .await
            .expect("in time")
    });
    let exchanges = &cluster.nodes[0].gateway.exchanges;
    until(
        "the wait is registered",
        Duration::from_secs(5),
        async || exchanges.waiting() == count,
    )
    .await;
    wait
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_ends_one_of_them_answers_and_names_it() {
    let cluster = Cluster::with(2, without_net).await;
    let (alice, admin) = (cluster.approver("alice").await, cluster.admin().await);
    let enforcer = cluster.enforcer("build-bot").await;
    let requests = asked(&cluster, 5).await;
    for (end, request) in requests[..4].iter().enumerate() {
        let left = &requests[end..];
        let wait = waiting(&cluster, &alice.client, left).await;
        match end {
            0 => drop(
                alice
                    .on(1)
                    .decide(request, compact("approve"))
                    .await
                    .expect(200),
            ),
            1 => drop(enforcer.on(1).withdraw(request).await.expect(200)),
            2 => {
                let path = format!("/platform/v1/exchanges/{request}/cancel");
                drop(admin.on(1).post(&path, &json!({})).await.expect(200));
            }
            _ => cluster.pass(Duration::from_secs(601)),
        }
        let ended = wait.await.unwrap().expect(200).json();
        let named = ended["requestIds"].as_array().unwrap();
        if end < 3 {
            assert_eq!(named, &[Value::from(request.as_str())]);
        } else {
            // The last two expire at once.
            assert!(
                !named.is_empty()
                    && named
                        .iter()
                        .all(|id| left.contains(&id.as_str().unwrap().to_owned()))
            );
        }
        assert_eq!(cluster.nodes[0].gateway.exchanges.waiting(), 0);
    }
    // Those that have ended are named at once, all of them sooner or later.
    let mut left = requests;
    while !left.is_empty() {
        let ended = wait_for_any(&alice.client, &left, 30)
            .await
            .expect(200)
            .json();
        let before = left.len();
        left.retain(|request| {
            !ended["requestIds"]
                .as_array()
                .unwrap()
                .contains(&json!(request))
        });
        assert!(left.len() < before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_for_several_ends_with_its_time_and_with_its_node() {
    let mut cluster = Cluster::with(1, without_net).await;
    let alice = cluster.approver("alice").await;
    let requests = asked(&cluster, 3).await;
    let none = wait_for_any(&alice.client, &requests, 1).await.expect(204);
    assert_eq!(none.text, "");
    let wait = waiting(&cluster, &alice.client, &requests).await;
    cluster.nodes.remove(0).stop().await;
    wait.await.unwrap().expect(204);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hangs_up_waits_no_longer() {
    let cluster = Cluster::with(1, without_net).await;
    let alice = cluster.approver("alice").await;
    let requests = asked(&cluster, 3).await;
    waiting(&cluster, &alice.client, &requests).await.abort();
    let exchanges = &cluster.nodes[0].gateway.exchanges;
    until("nobody waits", Duration::from_secs(5), async || {
        exchanges.waiting() == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_caller_may_not_read_counts_as_ended() {
    let cluster = Cluster::with(1, without_net).await;
    let requests = asked(&cluster, 1).await;
    for stranger in [
        cluster.approver("bob").await.client,
        cluster.enforcer("other").await.client,
    ] {
        let ended = wait_for_any(&stranger, &requests, 30).await.expect(200);
        assert_eq!(ended.json()["requestIds"], json!(requests));
    }
    let unknown = [request_id()];
    let alice = cluster.approver("alice").await;
    let ended = wait_for_any(&alice.client, &unknown, 30).await.expect(200);
    assert_eq!(ended.json()["requestIds"], json!(unknown));
    // Those who may read it wait.
    for reader in [
        alice.client,
        cluster.enforcer("build-bot").await.client,
        cluster.admin().await,
    ] {
        wait_for_any(&reader, &requests, 1).await.expect(204);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_names_what_is_wrong_with_it() {
    let cluster = Cluster::with(1, |config| config.limits.waits_per_identity = 4).await;
    let alice = cluster.approver("alice").await.client;
    let many: Vec<_> = (0..201).map(|number| format!("r-{number}")).collect();
    for (body, pointer) in [
        (json!([]), ""),
        (json!({}), "/requestIds"),
        (json!({ "requestIds": "r-1" }), "/requestIds"),
        (json!({ "requestIds": [] }), "/requestIds"),
        (json!({ "requestIds": many }), "/requestIds"),
        (json!({ "requestIds": ["r-1", 2] }), "/requestIds/1"),
        (json!({ "requestIds": ["r-1", ""] }), "/requestIds/1"),
        (
            json!({ "requestIds": ["r-1", "r-2", "r-1"] }),
            "/requestIds/2",
        ),
        (json!({ "requestIds": ["r-1"], "more": 1 }), "/more"),
    ] {
        let refused = alice.post("/v1/waits", &body).await;
        assert_eq!(
            refused.refused(400, "VALIDATION").detail("pointer"),
            pointer
        );
    }
    for bad in ["0", "-1", "soon"] {
        let path = format!("/v1/waits?timeout={bad}");
        let refused = alice.post(&path, &json!({ "requestIds": ["r-1"] })).await;
        assert_eq!(
            refused.refused(400, "VALIDATION").detail("parameter"),
            "timeout"
        );
    }
    let operator = cluster.operator();
    wait_for_any(&operator, &many[..1], 1)
        .await
        .refused(403, "FORBIDDEN");
    wait_for_any(&cluster.client(None), &many[..1], 1)
        .await
        .refused(401, "UNAUTHENTICATED");
    // Each exchange of it counts as a wait.
    let requests = asked(&cluster, 5).await;
    wait_for_any(&alice, &requests, 30)
        .await
        .refused(429, "RATE_LIMITED");
    wait_for_any(&alice, &requests[..4], 1).await.expect(204);
}
