//! Waits, and the wakes that end them: across nodes, with notifications lost, and with none at all.

mod any;
mod causes;

use std::time::Duration;

use countersign::config::{Config, Secret, WakeMode};
use futures_util::future::join_all;
use serde_json::json;

use crate::support::cluster::{config, start_node};
use crate::support::proxy::Proxy;
use crate::support::{Cluster, compact, crowd, request_id, sealed, sealed_for, until};

/// Rules the sweep out: every wake has another cause.
fn without_net(config: &mut Config) {
    config.wake.sweep_ms = 600_000;
}

/// An enforcer on node 0 that waits, once the wait is really registered there.
async fn waiting(
    cluster: &Cluster,
    request: &str,
) -> tokio::task::JoinHandle<crate::support::Answer> {
    let enforcer = cluster.enforcer("build-bot").await;
    let enforcer = enforcer.on(0);
    let request = request.to_owned();
    let before = cluster.nodes[0].gateway.exchanges.waiting();
    let wait = tokio::spawn(async move { enforcer.wait(&request, 30).await });
    until(
        "the wait is registered",
        Duration::from_secs(5),
        async || cluster.nodes[0].gateway.exchanges.waiting() > before,
    )
    .await;
    wait
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_on_one_node_is_answered_by_a_decision_on_another() {
    let cluster = Cluster::with(2, without_net).await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    for _ in 0..20 {
        let request = request_id();
        enforcer
            .submit(&request, "alice", sealed())
            .await
            .expect(202);
        let wait = waiting(&cluster, &request).await;
        approver
            .on(1)
            .decide(&request, compact("reject"))
            .await
            .expect(200);
        let delivered = wait.await.unwrap().expect(200);
        assert_eq!(delivered.json()["msgType"], "decision.deliver");
        assert_eq!(delivered.body("/decision"), "reject");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_at_once_with_the_state_that_brings_no_decision() {
    let cluster = Cluster::with(2, without_net).await;
    let (enforcer, admin) = (cluster.enforcer("build-bot").await, cluster.admin().await);

    for state in ["withdrawn", "cancelled", "expired"] {
        let request = request_id();
        enforcer
            .submit(&request, "alice", sealed_for(Duration::from_secs(600)))
            .await
            .expect(202);
        let wait = waiting(&cluster, &request).await;
        match state {
            "withdrawn" => drop(enforcer.withdraw(&request).await.expect(200)),
            "cancelled" => {
                let path = format!("/platform/v1/exchanges/{request}/cancel");
                drop(admin.post(&path, &json!({})).await.expect(200));
            }
            _ => cluster.pass(Duration::from_secs(601)),
        }
        let ended = wait.await.unwrap().expect(204);
        assert_eq!(ended.header("exchange-state"), Some(state));
        assert_eq!(ended.text, "");
        let again = enforcer.wait(&request, 30).await.expect(204);
        assert_eq!(again.header("exchange-state"), Some(state));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_with_the_life_of_its_exchange_without_any_wake() {
    let cluster = Cluster::with(1, without_net).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed_for(Duration::from_millis(800)))
        .await
        .expect(202);
    let ended = enforcer.wait(&request, 30).await.expect(204);
    assert_eq!(ended.header("exchange-state"), Some("expired"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_without_news_ends_with_its_timeout_and_nothing_else() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    let ended = enforcer.wait(&request, 1).await.expect(204);
    assert_eq!(ended.header("exchange-state"), None);
    for bad in ["0", "-1", "1.5", "soon", "", "%20"] {
        let path = format!("/v1/exchanges/{request}/wait?timeout={bad}");
        let refused = enforcer.client.get(&path).await.refused(400, "VALIDATION");
        assert_eq!(refused.detail("parameter"), "timeout");
    }
    enforcer
        .wait(&request_id(), 30)
        .await
        .refused(404, "NOT_FOUND");
    cluster
        .enforcer("other")
        .await
        .wait(&request, 30)
        .await
        .refused(404, "NOT_FOUND");
    let approver = cluster.approver("alice").await;
    approver
        .client
        .get(&format!("/v1/exchanges/{request}/wait"))
        .await
        .refused(403, "FORBIDDEN");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_notifications_the_net_answers_every_wait() {
    let cluster = Cluster::with(2, |config| config.wake.mode = WakeMode::Poll).await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    let listening = "select count(*) from pg_stat_activity where datname = current_database() and query ilike 'listen%'";
    assert_eq!(cluster.database.number(listening).await, 0);
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    let wait = waiting(&cluster, &request).await;
    approver
        .on(1)
        .decide(&request, compact("approve"))
        .await
        .expect(200);
    wait.await.unwrap().expect(200);
    let ready = cluster.client(None).get("/readyz").await.expect(200);
    assert_eq!(ready.json()["status"], "ready");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminated_listener_comes_back_and_everyone_looks() {
    let cluster = Cluster::with(2, without_net).await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    let terminate = "select count(pg_terminate_backend(pid)) from pg_stat_activity
                      where datname = current_database() and query ilike 'listen%'";
    for round in 0..5 {
        let request = request_id();
        enforcer
            .submit(&request, "alice", sealed())
            .await
            .expect(202);
        let wait = waiting(&cluster, &request).await;
        assert!(
            cluster.database.number(terminate).await > 0 || round > 0,
            "there is a listener to terminate"
        );
        approver
            .on(1)
            .decide(&request, compact("approve"))
            .await
            .expect(200);
        wait.await.unwrap().expect(200);
    }
}

/// Two nodes, the first of which hears and speaks through a proxy.
async fn with_proxy() -> (Cluster, Proxy) {
    let mut cluster = Cluster::with(1, without_net).await;
    let proxy = Proxy::start(&cluster.database.url).await;
    let mut behind = config(&cluster.database);
    behind.node.id = "behind-the-proxy".into();
    behind.database.listen_url = Secret::from(proxy.url.as_str());
    behind.wake.sweep_ms = 600_000;
    behind.wake.canary_ms = 500;
    let node = start_node(behind, &cluster.clock).await;
    cluster.nodes.insert(0, node);
    (cluster, proxy)
}

#[tokio::test(flavor = "multi_thread")]
async fn when_every_notification_is_lost_the_canary_tells_and_polling_takes_over() {
    let (cluster, proxy) = with_proxy().await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    let status =
        async || cluster.client(None).get("/readyz").await.expect(200).json()["status"].to_string();
    until(
        "notifications arrive",
        Duration::from_secs(10),
        async || status().await.contains("\"ready"),
    )
    .await;

    proxy.swallow_down(true);
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    let wait = waiting(&cluster, &request).await;
    approver
        .on(1)
        .decide(&request, compact("approve"))
        .await
        .expect(200);
    let answered = tokio::time::timeout(Duration::from_secs(15), wait).await;
    answered
        .expect("long before the wait itself ends")
        .unwrap()
        .expect(200);
    let seen_from_first = async || {
        cluster
            .client(None)
            .on(0)
            .get("/readyz")
            .await
            .expect(200)
            .json()["status"]
            .to_string()
    };
    assert!(
        seen_from_first().await.contains("degraded"),
        "degraded is reported, and is not unready"
    );

    proxy.swallow_down(false);
    proxy.cut();
    until(
        "notifications arrive again",
        Duration::from_secs(20),
        async || seen_from_first().await.contains("\"ready"),
    )
    .await;
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    let wait = waiting(&cluster, &request).await;
    approver
        .on(1)
        .decide(&request, compact("approve"))
        .await
        .expect(200);
    wait.await.unwrap().expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_holds_no_connection() {
    let crowd = crowd(300).await;
    let most = crowd.size;
    let cluster = Cluster::with(1, |config| config.limits.waits_per_identity = most).await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    let gateway = &cluster.nodes[0].gateway;
    let enforcer = &enforcer;
    let waits = async { join_all((0..most).map(|_| enforcer.wait(&request, 30))).await };
    let meanwhile = async {
        until("all wait", Duration::from_secs(20), async || {
            gateway.exchanges.waiting() == most
        })
        .await;
        // The fallback poll has one now and then.
        until(
            "every connection is in the pool",
            Duration::from_secs(20),
            async || {
                let (open, idle) = gateway.health.pool_usage();
                open == idle
            },
        )
        .await;
        enforcer
            .wait(&request, 30)
            .await
            .refused(429, "RATE_LIMITED")
            .header("retry-after")
            .expect("a hint");
        approver
            .decide(&request, compact("approve"))
            .await
            .expect(200);
    };
    let (answers, ()) = tokio::join!(waits, meanwhile);
    assert!(answers.iter().all(|answer| answer.status == 200));
    until(
        "all turns are given back",
        Duration::from_secs(5),
        async || gateway.exchanges.waiting() == 0,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draining_node_answers_its_waits_and_ends() {
    let mut cluster = Cluster::with(2, without_net).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    let wait = waiting(&cluster, &request).await;
    let node = cluster.nodes.remove(0);
    tokio::time::timeout(Duration::from_secs(15), node.stop())
        .await
        .expect("it ends before its time is up");
    let ended = wait.await.unwrap().expect(204);
    assert_eq!(ended.header("exchange-state"), None);
    assert_eq!(enforcer.on(1).state(&request).await, "pendingApproval");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_hears_its_canaries_is_left_in_peace() {
    let cluster = Cluster::with(1, |config| {
        config.wake.canary_ms = 100;
        config.wake.canary_timeout_ms = 1_000;
    })
    .await;
    let listener = "select coalesce(max(pid), 0)::bigint from pg_stat_activity
                     where datname = current_database() and query ilike 'listen%'";
    let canaries = "select coalesce(max(query_start), now())::text from pg_stat_activity
                     where datname = current_database() and application_name = 'countersign-notify'";
    until("it listens", Duration::from_secs(5), async || {
        cluster.database.number(listener).await > 0
    })
    .await;
    let pid = cluster.database.number(listener).await;
    let seen = tokio::sync::Mutex::new(std::collections::HashSet::new());
    until(
        "thirty canaries were sent",
        Duration::from_secs(30),
        async || {
            let sent = cluster.database.text(canaries).await;
            let mut seen = seen.lock().await;
            seen.insert(sent);
            seen.len() > 30
        },
    )
    .await;
    assert_eq!(
        cluster.database.number(listener).await,
        pid,
        "the connection is still the first one"
    );
}
