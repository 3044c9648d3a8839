//! Much that came a moment ago and is not acknowledged: a wake does not walk through it again, and
//! still nothing that commits out of order is missed.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

use sqlx::{Connection as _, Executor as _};

use super::approver_socket;
use crate::support::push::Socket;
use crate::support::scrape::scrape;
use crate::support::{Approver, Cluster, Enforcer, request_id, sealed, until};

/// Unacknowledged requests in the inbox.
const UNACKED: i64 = 1_500;
/// Requests between two looks.
const REQUESTS: i64 = 40;
/// Rows that a request and its push may read.
const MOST_READ: i64 = 300;

/// A node that offers nothing again while the test lasts.
async fn scene() -> (Cluster, Enforcer, Approver) {
    let cluster = Cluster::with(1, |config| {
        config.push.reoffer_seconds = 600;
        config.push.reoffer_max_seconds = 600;
    })
    .await;
    let enforcer = cluster.enforcer("build-bot").await;
    let approver = cluster.approver("alice").await;
    (cluster, enforcer, approver)
}

/// Requests to alice that were created that many seconds ago, all but in one moment.
async fn fill(cluster: &Cluster, count: i64, seconds_ago: i64) {
    let statement = filling(cluster, count, seconds_ago);
    cluster.database.run(&statement).await;
}

fn filling(cluster: &Cluster, count: i64, seconds_ago: i64) -> String {
    let (tenant, body) = (&cluster.tenant, sealed());
    format!(
            "with made as materialized (
                 select gen_random_uuid() as id, now() - interval '{seconds_ago} seconds' + n * interval '1 us' as at
                   from generate_series(1, {count}) as n
             ), exchange as (
                 insert into exchanges (tenant_id, request_id, submission_id, operation_id, state, seq, enforcer_id, form,
                                        artifact_type, artifact_hash, accepted_at, expires_at)
                 select '{tenant}', id::text, id, id, 'pendingApproval', 1, 'build-bot', 'sealed', 'command.review',
                        repeat('ab', 32), at, at + interval '1 day'
                   from made
             ), payload as (
                 insert into exchange_payloads (tenant_id, request_id, part, body)
                 select '{tenant}', id::text, 'artifact', '{body}' from made
             )
             insert into inbox_items (tenant_id, request_id, approver_id, message_id, created_at, expires_at)
             select '{tenant}', id::text, 'alice', id, at, at + interval '1 day' from made"
    )
}

/// Takes what is pushed until so many different requests came.
async fn receive(socket: &mut Socket, seen: &mut HashSet<String>, count: usize) {
    while seen.len() < count {
        let asked = socket.expect_type("approval.request").await;
        seen.insert(asked["requestId"].as_str().unwrap().to_owned());
    }
}

/// Submits, and takes what is pushed until it comes.
async fn push(enforcer: &Enforcer, socket: &mut Socket, seen: &mut HashSet<String>) {
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    while !seen.contains(&request) {
        receive(socket, seen, seen.len() + 1).await;
    }
}

/// Rows of inboxes read so far, once the database has counted this many of them as written.
async fn read(cluster: &Cluster, written: i64) -> i64 {
    until(
        "the database has counted",
        Duration::from_secs(20),
        async || {
            let counted = "select n_tup_ins from pg_stat_user_tables where relname = 'inbox_items'";
            cluster.database.number(counted).await >= written
        },
    )
    .await;
    let read =
        "select sum(idx_tup_read)::bigint from pg_stat_user_indexes where relname = 'inbox_items'";
    cluster.database.number(read).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_wake_reads_does_not_grow_with_what_came_in_the_last_minute() {
    let (cluster, enforcer, approver) = scene().await;
    fill(&cluster, UNACKED, 20).await;
    cluster.database.run("analyze").await;
    let mut socket = approver_socket(&cluster, 0, &approver).await;
    let mut seen = HashSet::new();
    receive(&mut socket, &mut seen, usize::try_from(UNACKED).unwrap()).await;
    let mut least = i64::MAX;
    for round in 0..3 {
        let before = read(&cluster, UNACKED + round * REQUESTS).await;
        for _ in 0..REQUESTS {
            push(&enforcer, &mut socket, &mut seen).await;
        }
        let after = read(&cluster, UNACKED + (round + 1) * REQUESTS).await;
        // In one of them the whole minute may be looked at again, which is every five seconds.
        least = least.min((after - before) / REQUESTS);
    }
    println!("rows of the inbox read for one push behind {UNACKED} others: {least}");
    assert!(least <= MOST_READ, "{least} rows read for one push");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_commits_long_after_its_time_is_pushed_all_the_same() {
    let (cluster, enforcer, approver) = scene().await;
    let mut socket = approver_socket(&cluster, 0, &approver).await;
    let mut seen = HashSet::new();
    for _ in 0..80 {
        push(&enforcer, &mut socket, &mut seen).await;
    }
    // As if its transaction had taken half a minute: older than any that a wake looks at.
    fill(&cluster, 1, 30).await;
    // It may come before the next one does.
    let all = seen.len() + 2;
    push(&enforcer, &mut socket, &mut seen).await;
    tokio::time::timeout(
        Duration::from_secs(30),
        receive(&mut socket, &mut seen, all),
    )
    .await
    .expect("it came");
}

/// Without a word from anyone, as its node may have died or its hint been lost.
#[tokio::test(flavor = "multi_thread")]
async fn what_commits_minutes_after_its_time_is_found_by_the_fallback_poll() {
    let (cluster, enforcer, approver) = scene().await;
    let mut socket = approver_socket(&cluster, 0, &approver).await;
    let mut seen = HashSet::new();
    for round in 1..=3 {
        push(&enforcer, &mut socket, &mut seen).await;
        fill(&cluster, 2, 600 * round).await;
        let all = seen.len() + 2;
        receive(&mut socket, &mut seen, all).await;
    }
}

/// The database's clock was ten minutes ahead, until a failover.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_created_by_a_clock_that_stepped_back_is_pushed() {
    let (cluster, enforcer, approver) = scene().await;
    let mut socket = approver_socket(&cluster, 0, &approver).await;
    let mut seen = HashSet::new();
    fill(&cluster, 100, -600).await;
    receive(&mut socket, &mut seen, 100).await;
    // The first is found by the fallback poll, the others by their hints.
    for _ in 0..10 {
        push(&enforcer, &mut socket, &mut seen).await;
    }
    let scraped = scrape(&cluster.nodes[0].metrics).await;
    let missed = scraped.value("countersign_wake_missed_total", &[("waiter", "approver")]);
    assert!(missed <= 2.0, "{missed} of ten had to be found by the poll");
}

/// As when a synchronous standby does not answer: a node cannot tell by its age that it was not
/// there before.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_long_transaction_writes_is_found_in_a_long_inbox() {
    let cluster = Cluster::with(1, |config| {
        config.push.reoffer_seconds = 600;
        config.push.reoffer_max_seconds = 600;
        config.wake.sweep_ms = 200;
        config.wake.poll_ms = 50;
    })
    .await;
    let approver = cluster.approver("alice").await;
    fill(&cluster, 1_000, 300).await;
    let mut socket = approver_socket(&cluster, 0, &approver).await;
    let mut seen = HashSet::new();
    receive(&mut socket, &mut seen, 1_000).await;
    let mut connection = cluster.database.connect().await;
    let mut late = connection.begin().await.unwrap();
    let insert = filling(&cluster, 1, 200);
    late.execute(sqlx::AssertSqlSafe(insert)).await.unwrap();
    // When the poll last ran, as far as its connection still shows it.
    let polled = "select coalesce(max(query_start)::text, '') from pg_stat_activity
                   where datname = current_database() and pid <> pg_backend_pid() and query like '%pushed_since%'";
    let polls = Mutex::new(HashSet::new());
    until("the poll has looked", Duration::from_secs(20), async || {
        let at = cluster.database.text(polled).await;
        let mut polls = polls.lock().unwrap();
        polls.insert(at);
        polls.len() > 8
    })
    .await;
    late.commit().await.unwrap();
    receive(&mut socket, &mut seen, 1_001).await;
}
