//! The end of exchanges, artifacts and idempotency keys: when they are deleted, and what stays.

mod rounds;

use std::time::Duration;

use countersign::protocol::id::{NodeId, TextId as _};
use countersign::store::{Store, seconds};
use reqwest::Method;
use serde_json::json;
use sqlx::PgConnection;
use tokio_util::task::TaskTracker;

use crate::support::database::finish;
use crate::support::exchanges::{DAY, decided, delivered, parties, pending};
use crate::support::{Cluster, HASH, OTHER_HASH, compact, in_time, request_id, sealed, until};

/// In how many rows of all tables this exchange occurs.
async fn traces(cluster: &Cluster, request: &str) -> i64 {
    let tables = "select string_agg(format('(select count(*) from %I where request_id = ''%%s'')', c.table_name), ' + ')
                    from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
                   where c.table_schema = 'public' and c.column_name = 'request_id' and t.table_type = 'BASE TABLE'";
    let sum = cluster.database.text(tables).await.replace("%s", request);
    cluster.database.number(&format!("select {sum}")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_forgets_finished_exchanges_whole_and_keeps_pending_ones() {
    let cluster = Cluster::with(2, |config| {
        config.retention.exchange_seconds = 3_600;
        config.retention.every_seconds = 1;
    })
    .await;
    let (enforcer, approver) = parties(&cluster).await;
    let admin = cluster.admin().await;
    let mut finished = vec![
        decided(&enforcer, &approver).await,
        delivered(&enforcer, &approver).await,
        pending(&enforcer, Duration::from_secs(600)).await,
    ];
    let request = pending(&enforcer, DAY).await;
    enforcer.withdraw(&request).await.expect(200);
    finished.push(request);
    let request = pending(&enforcer, DAY).await;
    approver.refresh(&request, json!({})).await.expect(202);
    let path = format!("/platform/v1/exchanges/{request}/cancel");
    admin.post(&path, &json!({})).await.expect(200);
    finished.push(request);
    let waiting = pending(&enforcer, 20 * DAY).await;
    let before = traces(&cluster, &waiting).await;
    assert_eq!(before, 4, "exchange, payload, item, event");

    cluster.pass(Duration::from_secs(3_000));
    let young = decided(&enforcer, &approver).await;
    cluster.pass(Duration::from_secs(1_500));
    for request in &finished {
        until(
            "a finished exchange is gone",
            Duration::from_secs(10),
            async || traces(&cluster, request).await == 0,
        )
        .await;
        enforcer.status(request).await.refused(404, "NOT_FOUND");
    }
    assert_eq!(traces(&cluster, &waiting).await, before);
    assert_eq!(enforcer.state(&waiting).await, "pendingApproval");
    assert_eq!(enforcer.state(&young).await, "decided");
    assert_eq!(approver.inbox_ids().await, [waiting.as_str()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn scrubbing_removes_artifacts_and_keeps_hashes_and_decisions() {
    let cluster = Cluster::with(2, |config| {
        config.retention.scrub_seconds = 60;
        config.retention.every_seconds = 1;
    })
    .await;
    let (enforcer, approver) = parties(&cluster).await;
    let decided = decided(&enforcer, &approver).await;
    let expired = pending(&enforcer, Duration::from_secs(100)).await;
    let waiting = pending(&enforcer, DAY).await;
    cluster.pass(Duration::from_secs(200));
    let left = format!(
        "select count(*) from exchange_payloads where part = 'artifact' and request_id <> '{waiting}'"
    );
    until("artifacts are gone", Duration::from_secs(10), async || {
        cluster.database.number(&left).await == 0
    })
    .await;
    let status = enforcer.status(&decided).await.expect(200);
    assert_eq!(status.body("/artifactHash"), HASH);
    assert_eq!(status.body("/decision/decision"), "reject");
    enforcer.wait(&decided, 1).await.expect(200);
    let page = approver.expired("").await.expect(200);
    assert_eq!(page.body("/items/0/requestId"), expired.as_str());
    assert_eq!(page.body("/items/0/body/artifactHash"), HASH);
    assert_eq!(page.body("/items/0/body/ciphertext"), json!(null));
    let page = approver.inbox("").await.expect(200);
    assert_eq!(page.body("/items/0/requestId"), waiting.as_str());
    assert_eq!(page.body("/items/0/body/ciphertext/data"), "c2VhbGVk");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_asked_is_forgotten_some_time_after_it_was_last_asked() {
    let cluster = Cluster::with(2, |config| {
        config.retention.exchange_seconds = 10 * DAY.as_secs();
        config.retention.every_seconds = 1;
    })
    .await;
    let (enforcer, _) = parties(&cluster).await;
    let keys = async || {
        let path = "/platform/v1/approvers/alice/keys";
        enforcer.client.get(path).await.status
    };
    assert_eq!(keys().await, 404);
    let asked_at = "select string_agg(asked_at::text, ' ') from asked_approvers";
    pending(&enforcer, 20 * DAY).await;
    let first = cluster.database.text(asked_at).await;
    pending(&enforcer, 20 * DAY).await;
    assert_eq!(cluster.database.text(asked_at).await, first, "once a day");
    cluster.pass(8 * DAY);
    pending(&enforcer, 20 * DAY).await;
    assert_ne!(cluster.database.text(asked_at).await, first);
    cluster.pass(8 * DAY);
    assert_eq!(keys().await, 200);
    cluster.pass(8 * DAY);
    until("it is forgotten", Duration::from_secs(10), async || {
        keys().await == 404
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idempotency_keys_are_bound_for_a_day() {
    let cluster = Cluster::with(2, |config| config.retention.every_seconds = 1).await;
    let (enforcer, _) = parties(&cluster).await;
    let submit = async |hash: &str| {
        let mut body = sealed();
        body["artifactHash"] = json!(hash);
        body["expiresAt"] = json!(in_time(20 * 24 * 3_600));
        let envelope = enforcer.submission(&request_id(), "alice", body);
        let call = enforcer.client.call(Method::POST, "/v1/artifacts");
        call.header("idempotency-key", "mine")
            .json(&envelope)
            .send()
            .await
    };
    submit(HASH).await.expect(202);
    cluster.pass(Duration::from_secs(24 * 3_600 - 60));
    submit(OTHER_HASH)
        .await
        .refused(409, "IDEMPOTENCY_KEY_REUSED");
    let keys = "select count(*) from idempotency_keys";
    assert_eq!(cluster.database.number(keys).await, 1);
    cluster.pass(Duration::from_secs(120));
    until("the key is gone", Duration::from_secs(10), async || {
        cluster.database.number(keys).await == 0
    })
    .await;
    submit(OTHER_HASH).await.expect(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn forgetting_waits_for_locks_in_the_order_of_everyone_else() {
    let cluster = Cluster::start(1).await;
    let (enforcer, approver) = parties(&cluster).await;
    // The older one sorts behind the younger.
    for request in ["b", "a"] {
        enforcer
            .submit(request, "alice", sealed())
            .await
            .expect(202);
        approver
            .decide(request, compact("approve"))
            .await
            .expect(200);
    }
    let database = cluster.database.clone();
    let mut config = crate::support::cluster::config(&database);
    config.database.lock_timeout_ms = 20_000;
    config.database.statement_timeout_ms = 30_000;
    let node = NodeId::parse("another").unwrap();
    let metrics = std::sync::Arc::new(countersign::telemetry::Metrics::new(&cluster.clock));
    let store = Store::open(
        &config,
        &node,
        &cluster.clock,
        &metrics,
        &TaskTracker::new(),
    )
    .unwrap();
    let mut other = database.connect().await;
    let lock = async |other: &mut PgConnection, request: &str| {
        let sql = format!("select from inbox_items where request_id = '{request}' for update");
        let locked = sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(other).await;
        locked.expect("no deadlock");
    };
    finish(&mut other, "begin").await;
    lock(&mut other, "a").await;
    let forgetting = store
        .database
        .delete_exchanges(&cluster.tenant, seconds(0), None);
    let crossing = async {
        database.blocked(1).await;
        lock(&mut other, "b").await;
        finish(&mut other, "commit").await;
    };
    let (forgotten, ()) = tokio::join!(forgetting, crossing);
    assert_eq!(forgotten.unwrap().rows, 2);
    assert_eq!(traces(&cluster, "a").await + traces(&cluster, "b").await, 0);
}
