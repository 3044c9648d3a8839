//! Faults on purpose, with nodes that are processes: killed between commit and wake, and a
//! PostgreSQL that goes away.

mod mendable;
mod silent;
mod standby;
mod starting;

use std::time::Duration;

use crate::support::cluster::CLUSTER_SECRET;
use crate::support::cluster::OPERATOR_KEY;
use crate::support::process::{Process, countersign, run};
use crate::support::proxy::Proxy;
use crate::support::{Answer, Client, Cluster, compact, request_id, sealed, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_node_killed_between_commit_and_wake_delays_its_waiters_and_loses_nothing() {
    let cluster = Cluster::start(1).await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    let proxy = Proxy::start(&cluster.database.url).await;
    let directory = tempfile::tempdir().unwrap();
    let ready = directory.path().join("url");
    let mut doomed = Process::start(
        countersign()
            .args([
                "--database-url",
                &cluster.database.url,
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--ready-file",
            ])
            .arg(&ready)
            .env("COUNTERSIGN_SECURITY__CLUSTER_SECRET", CLUSTER_SECRET)
            .env("COUNTERSIGN_DATABASE__LISTEN_URL", &proxy.url),
    );
    let url = doomed.await_file(&ready);

    // From now on the node's messages to others are lost: as if it died right after each commit.
    proxy.swallow_up(true);
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    let gateway = cluster.nodes[0].gateway.clone();
    let wait = async { enforcer.wait(&request, 30).await };
    let decide_and_die = async {
        until(
            "the wait is registered",
            Duration::from_secs(5),
            async || gateway.exchanges.waiting() == 1,
        )
        .await;
        let there = approver.at(vec![url]);
        there.decide(&request, compact("approve")).await.expect(200);
        doomed.kill();
    };
    // The net looks every 5 s ± 20 %.
    let (answer, ()) = tokio::time::timeout(Duration::from_secs(15), async {
        tokio::join!(wait, decide_and_die)
    })
    .await
    .expect("answered by the net");
    answer.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_database_calls_are_unavailable_and_afterwards_all_is_as_it_was() {
    let cluster = Cluster::start(1).await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    let proxy = Proxy::start(&cluster.database.url).await;
    let mut behind = crate::support::cluster::config(&cluster.database);
    behind.database.url = countersign::config::Secret::from(proxy.url.as_str());
    let node = crate::support::cluster::start_node(behind, &cluster.clock).await;
    let there = |key: &str| Client::new(vec![node.url.clone()], Some(key));
    let (enforcer_there, approver_there) =
        (there(enforcer.client.key()), there(approver.client.key()));

    let request = request_id();
    let submission = enforcer.submission(&request, "alice", sealed());
    enforcer_there
        .post("/v1/artifacts", &submission)
        .await
        .expect(202);
    proxy.refuse(true);
    proxy.cut();
    let inbox = "/v1/approvers/alice/inbox";
    let away = approver_there.get(inbox).await.refused(503, "UNAVAILABLE");
    assert!(away.header("retry-after").is_some());
    until(
        "even known credentials are not believed for long",
        Duration::from_secs(8),
        async || {
            enforcer_there
                .get(&format!("/v1/exchanges/{request}"))
                .await
                .status
                == 503
        },
    )
    .await;
    let unready = Client::new(vec![node.url.clone()], None)
        .get("/readyz")
        .await;
    assert_eq!(unready.status, 503, "{unready:?}");
    let unknown = there("csk_nobody_nothing").get(inbox).await;
    unknown.refused(503, "UNAVAILABLE");
    let another = enforcer.submission(&request_id(), "alice", sealed());
    enforcer_there
        .post("/v1/artifacts", &another)
        .await
        .refused(503, "UNAVAILABLE");

    proxy.refuse(false);
    until(
        "the node is ready again",
        Duration::from_secs(15),
        async || {
            Client::new(vec![node.url.clone()], None)
                .get("/readyz")
                .await
                .status
                == 200
        },
    )
    .await;
    enforcer_there
        .post("/v1/artifacts", &another)
        .await
        .expect(202);
    enforcer_there
        .post("/v1/artifacts", &submission)
        .await
        .expect(202);
    assert_eq!(
        cluster
            .database
            .number("select count(*) from exchanges")
            .await,
        2
    );
    let operator = there(OPERATOR_KEY).get("/platform/v1/tenants").await;
    operator.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn terminated_backends_cost_retries_and_nothing_else() {
    let cluster = Cluster::start(2).await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    let terminate = "select count(pg_terminate_backend(pid)) from pg_stat_activity
                      where datname = current_database() and pid <> pg_backend_pid()";
    for round in 1..=30 {
        let request = request_id();
        let killing = async { cluster.database.number(terminate).await };
        let submitted = retried(async || enforcer.submit(&request, "alice", sealed()).await);
        tokio::join!(submitted, killing).0.expect(202);
        let killing = async { cluster.database.number(terminate).await };
        let decision = compact("approve");
        let decided = retried(async || approver.decide(&request, decision.clone()).await);
        tokio::join!(decided, killing).0.expect(200);
        let count = "select count(*) from exchange_events where to_state = 'decided'";
        assert_eq!(
            cluster.database.number(count).await,
            round,
            "each decided exactly once"
        );
    }
}

/// Calls as a client should: a 503 is to be tried again.
async fn retried(call: impl AsyncFn() -> Answer) -> Answer {
    for _ in 0..5 {
        let answer = call().await;
        if answer.status != 503 {
            return answer;
        }
        assert_eq!(answer.json()["body"]["retryable"], true);
    }
    call().await
}

/// Waits until `/readyz` says so.
async fn becomes_ready(client: &Client, status: u16) {
    let what = format!("/readyz says {status}");
    until(&what, Duration::from_secs(15), async || {
        client.get("/readyz").await.status == status
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_died_while_idle_are_noticed_before_they_are_used() {
    let cluster = Cluster::start(1).await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    enforcer
        .submit(&request_id(), "alice", sealed())
        .await
        .expect(202);
    approver.inbox("").await.expect(200);
    let idle = "from pg_stat_activity where datname = current_database() and application_name = 'countersign'
                  and state = 'idle' and state_change < clock_timestamp() - interval '1500 milliseconds'";
    let count = format!("select count(*) {idle}");
    until(
        "connections are idle",
        Duration::from_secs(10),
        async || cluster.database.number(&count).await > 1,
    )
    .await;
    let terminate = format!("select count(pg_terminate_backend(pid)) {idle}");
    assert!(cluster.database.number(&terminate).await > 1);
    approver.inbox("").await.expect(200);
    enforcer
        .submit(&request_id(), "alice", sealed())
        .await
        .expect(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_takes_no_writes_is_no_place_to_send_requests_to() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let name = cluster.database.url.rsplit('/').next().unwrap();
    // As a node finds it whose connections led to a primary, and now lead to a standby.
    let turn = async |to: &str| {
        let change = format!("begin read write; alter database {name} {to}; commit");
        cluster.database.run(&change).await;
        let terminate = "select count(pg_terminate_backend(pid)) from pg_stat_activity
                          where datname = current_database() and pid <> pg_backend_pid()";
        cluster.database.number(terminate).await;
    };
    let says = async |status: u16, word: &str| {
        let patience = Duration::from_secs(15);
        until(word, patience, async || {
            let answer = cluster.client(None).get("/readyz").await;
            answer.status == status && answer.json()["status"] == word
        })
        .await;
    };
    let check = || {
        run(countersign()
            .arg("check")
            .env("COUNTERSIGN_DATABASE__URL", &cluster.database.url))
    };
    says(200, "ready").await;
    turn("set default_transaction_read_only = on").await;
    says(503, "the database takes no writes").await;
    let refused = enforcer.submit(&request_id(), "alice", sealed()).await;
    refused.refused(503, "UNAVAILABLE");
    let (ok, text) = check();
    assert!(!ok && text.contains("read-only; point "), "{text}");

    turn("reset default_transaction_read_only").await;
    says(200, "ready").await;
    let submitted = enforcer.submit(&request_id(), "alice", sealed()).await;
    submitted.expect(202);
    let (ok, text) = check();
    assert!(ok, "{text}");
}
