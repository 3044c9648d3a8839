//! The cost of an exchange does not grow with earlier ones, nor with those that wait beside it:
//! told by the rows that the database says it has read.

use std::time::Duration;

use countersign::config::WakeMode;
use serde_json::json;

use super::{approver_socket, enforcer_socket, scene};
use crate::support::exchanges::decided;
use crate::support::push::Socket;
use crate::support::{Approver, Cluster, Enforcer, compact, envelope, request_id, sealed, until};

/// Exchanges between two looks.
const EXCHANGES: i64 = 40;
/// Rows that a whole exchange may read, sweeps of the node included.
const MOST_READ: i64 = 150;

/// Exchanges of an approver that has as many pending as decided ones behind it.
async fn fill(cluster: &Cluster, count: i64) {
    let tenant = &cluster.tenant;
    cluster
        .database
        .run(&format!(
            "with made as materialized (
                 select gen_random_uuid() as id, n % 2 = 0 as pending, now() - interval '1 hour' + n * interval '1 ms' as at
                   from generate_series(1, {count}) as n
             ), exchange as (
                 insert into exchanges (tenant_id, request_id, submission_id, operation_id, state, seq, enforcer_id, form,
                                        artifact_type, artifact_hash, accepted_at, expires_at, decision, decided_at,
                                        delivered_at)
                 select '{tenant}', id::text, id, id, case when pending then 'pendingApproval' else 'delivered' end, 1,
                        'build-bot', 'sealed', 'command.review', repeat('ab', 32), at, at + interval '1 day',
                        case when not pending then 'approve' end, case when not pending then at end,
                        case when not pending then at end
                   from made
             ), payload as (
                 insert into exchange_payloads (tenant_id, request_id, part, body)
                 select '{tenant}', id::text, 'artifact', '{{}}' from made
             ), message as (
                 insert into messages (tenant_id, recipient_kind, recipient, message_id, kind, request_id, seq, created_at,
                                       acked_at)
                 select '{tenant}', 'enforcer', 'build-bot', id, 'decision.deliver', id::text, 1, at, at
                   from made where not pending
             )
             insert into inbox_items (tenant_id, request_id, approver_id, message_id, created_at, expires_at, acked_at,
                                      closed_at, closed_as)
             select '{tenant}', id::text, 'alice', id, at, at + interval '1 day', at, case when not pending then at end,
                    case when not pending then 'decided' end
               from made"
        ))
        .await;
}

/// Messages that nobody acknowledged, long ago: decisions that were fetched, and withdrawals that
/// no WebSocket came for.
async fn neglect(cluster: &Cluster, count: i64) {
    let tenant = &cluster.tenant;
    cluster
        .database
        .run(&format!(
            "insert into messages (tenant_id, recipient_kind, recipient, message_id, kind, request_id, seq, created_at)
             select '{tenant}', k.recipient_kind, k.recipient, gen_random_uuid(), k.kind, n::text, 1,
                    now() - interval '2 days' + n * interval '1 ms'
               from generate_series(1, {count}) as n,
                    (values ('enforcer', 'build-bot', 'decision.deliver'), ('approver', 'alice', 'exchange.withdrawn'))
                    as k (recipient_kind, recipient, kind)"
        ))
        .await;
}

/// One exchange over both sockets.
async fn exchange(
    (enforcer, enforcing): (&Enforcer, &mut Socket),
    (approver, approving): (&Approver, &mut Socket),
) {
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    let asked = approving.expect_type("approval.request").await;
    assert_eq!(asked["requestId"], request.as_str());
    approver
        .decide(&request, compact("approve"))
        .await
        .expect(200);
    let delivered = enforcing.expect_type("decision.deliver").await;
    let ack = json!({ "msgId": delivered["msgId"], "status": "processed", "ackAt": delivered["createdAt"] });
    let sender = json!({ "enforcerId": "build-bot" });
    enforcing
        .send(&envelope("ack.submit", &request, sender, ack))
        .await;
    enforcing.expect_type("ack.accepted").await;
}

/// Rows read so far, once the database has counted this many deliveries.
async fn read(cluster: &Cluster, delivered: i64) -> i64 {
    until(
        "the database has counted",
        Duration::from_secs(20),
        async || {
            let counted = "select n_tup_upd from pg_stat_user_tables where relname = 'exchanges'";
            cluster.database.number(counted).await >= delivered * 2
        },
    )
    .await;
    let read = "select (select sum(idx_tup_read) from pg_stat_user_indexes)::bigint
                     + (select sum(seq_tup_read) from pg_stat_user_tables)::bigint";
    cluster.database.number(read).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_exchange_reads_does_not_grow_with_the_backlog() {
    let (cluster, enforcer, approver) = scene(1).await;
    let (mut enforcing, mut approving) = (
        enforcer_socket(&cluster, 0, &enforcer).await,
        approver_socket(&cluster, 0, &approver).await,
    );
    // The node's plans are made now, on tables that are all but empty.
    for _ in 0..EXCHANGES {
        exchange((&enforcer, &mut enforcing), (&approver, &mut approving)).await;
    }
    fill(&cluster, 4_000).await;
    neglect(&cluster, 4_000).await;
    // As the database does by itself, within a minute.
    cluster.database.run("analyze").await;
    // Now and then a sweep reads more in between: the round in the middle counts.
    let mut rounds = Vec::new();
    for round in 1..=3 {
        let before = read(&cluster, round * EXCHANGES).await;
        for _ in 0..EXCHANGES {
            exchange((&enforcer, &mut enforcing), (&approver, &mut approving)).await;
        }
        let after = read(&cluster, (round + 1) * EXCHANGES).await;
        rounds.push((after - before) / EXCHANGES);
    }
    rounds.sort_unstable();
    println!("rows read for one exchange beside 4,000 others: {rounds:?}");
    assert!(rounds[1] <= MOST_READ, "{rounds:?} rows read for one");
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_the_net_nor_a_new_channel_reads_what_is_no_longer_pushed() {
    let cluster = Cluster::with(1, |config| {
        config.wake.mode = WakeMode::Poll;
        config.wake.poll_ms = 50;
    })
    .await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    neglect(&cluster, 4_000).await;
    cluster
        .database
        .run("analyze; select pg_stat_reset()")
        .await;
    // Each look is a few scans for each of the two.
    let looks = "select coalesce(sum(idx_scan), 0)::bigint from pg_stat_user_indexes where relname = 'messages'";
    let read = "select (select sum(idx_tup_read) from pg_stat_user_indexes where relname = 'messages')::bigint
                     + (select seq_tup_read from pg_stat_user_tables where relname = 'messages')";
    // A sweep that read what was being written a moment ago may be counted late: of three rounds,
    // each with channels of its own, the middle counts.
    let (mut rounds, mut before, mut sockets) = (Vec::new(), 0, Vec::new());
    for round in 1..=3 {
        sockets.push(enforcer_socket(&cluster, 0, &enforcer).await);
        sockets.push(approver_socket(&cluster, 0, &approver).await);
        until("the net has looked", Duration::from_secs(20), async || {
            cluster.database.number(looks).await >= round * 40
        })
        .await;
        let now = cluster.database.number(read).await;
        rounds.push(now - before);
        before = now;
    }
    rounds.sort_unstable();
    assert!(
        rounds[1] <= 40,
        "{rounds:?} messages read that are never sent"
    );
    for socket in &mut sockets {
        assert!(socket.is_silent(Duration::from_millis(1)).await);
    }
}

/// Decisions of `build-bot` that were never acknowledged, as the one of this exchange, each offered
/// by this statement.
async fn pile_up(cluster: &Cluster, request: &str, count: i64, offered: &str) {
    let sql = format!(
        "with made as materialized (
             select gen_random_uuid() as id, now() - interval '1 hour' + n * interval '1 ms' as at
               from generate_series(1, {count}) as n
         ), exchange as (
             insert into exchanges (tenant_id, request_id, submission_id, operation_id, state, seq, enforcer_id, form,
                                    artifact_type, artifact_hash, accepted_at, expires_at, decision, decided_by, decided_at)
             select e.tenant_id, id::text, id, id, 'decided', e.seq, e.enforcer_id, e.form, e.artifact_type, e.artifact_hash,
                    e.accepted_at, e.expires_at, e.decision, e.decided_by, at
               from made, exchanges e where e.request_id = '{request}'
         ), payload as (
             insert into exchange_payloads (tenant_id, request_id, part, body)
             select p.tenant_id, id::text, 'decision', p.body
               from made, exchange_payloads p where p.request_id = '{request}' and p.part = 'decision'
         )
         insert into messages (tenant_id, recipient_kind, recipient, message_id, kind, request_id, seq, sender, created_at,
                               target_channel, offers, offered_at, next_attempt_at)
         select m.tenant_id, m.recipient_kind, m.recipient, id, m.kind, id::text, m.seq, m.sender, made.at, o.channel,
                o.offers, o.at, o.next
           from made, messages m, ({offered}) as o (channel, offers, at, next)
          where m.request_id = '{request}' and m.kind = 'decision.deliver'"
    );
    cluster.database.run(&sql).await;
    cluster.database.run("analyze").await;
}

/// Rows of messages read so far.
const MESSAGES_READ: &str = "select coalesce(sum(idx_tup_read), 0)::bigint from pg_stat_user_indexes where relname = 'messages'";

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_due_is_not_read() {
    let (cluster, enforcer, approver) = scene(1).await;
    let mut enforcing = enforcer_socket(&cluster, 0, &enforcer).await;
    let mut approving = approver_socket(&cluster, 0, &approver).await;
    for _ in 0..EXCHANGES {
        exchange((&enforcer, &mut enforcing), (&approver, &mut approving)).await;
    }
    let request = cluster
        .database
        .text("select min(request_id) from exchanges")
        .await;
    let offered = "select channel_id, 1, clock_timestamp(), clock_timestamp() + interval '1 hour'
                     from channels where kind = 'enforcer'";
    pile_up(&cluster, &request, 5_000, offered).await;
    let mut rounds = Vec::new();
    for round in 1..=3 {
        read(&cluster, round * EXCHANGES).await;
        let before = cluster.database.number(MESSAGES_READ).await;
        for _ in 0..EXCHANGES {
            exchange((&enforcer, &mut enforcing), (&approver, &mut approving)).await;
        }
        read(&cluster, (round + 1) * EXCHANGES).await;
        let after = cluster.database.number(MESSAGES_READ).await;
        rounds.push((after - before) / EXCHANGES);
    }
    rounds.sort_unstable();
    println!("messages read for one exchange beside 5,000 that are not due: {rounds:?}");
    assert!(rounds[1] <= 30, "{rounds:?} messages read for one");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_that_takes_over_reads_the_backlog_once_and_in_order() {
    let (cluster, enforcer, approver) = scene(1).await;
    let request = decided(&enforcer, &approver).await;
    // Some were never offered, some were on a channel that is gone, and some of those are due
    // again.
    let count = 1_000;
    let offered = "select gen_random_uuid(), 2, clock_timestamp() - interval '1 minute',
                          clock_timestamp() + interval '1 minute'";
    pile_up(&cluster, &request, count, offered).await;
    let mix = "update messages set target_channel = null, offers = 0, offered_at = null, next_attempt_at = null
                where message_id in (select message_id from messages order by md5(message_id::text) limit 300);
               update messages set next_attempt_at = clock_timestamp() - interval '1 minute'
                where message_id in (select message_id from messages where offers > 0
                                      order by md5(message_id::text) desc limit 300);
               analyze messages; select pg_stat_reset()";
    cluster.database.run(mix).await;
    let mut socket = enforcer_socket(&cluster, 0, &enforcer).await;
    let mut times = Vec::new();
    for _ in 0..=count {
        let delivered = socket.expect_type("decision.deliver").await;
        times.push(delivered["createdAt"].as_str().unwrap().to_owned());
    }
    assert!(times.is_sorted(), "oldest first");
    drop(socket);
    let counted = "select n_tup_upd from pg_stat_user_tables where relname = 'messages'";
    until(
        "the database has counted",
        Duration::from_secs(20),
        async || cluster.database.number(counted).await > count,
    )
    .await;
    let read = cluster.database.number(MESSAGES_READ).await / count;
    println!("messages read for each that is taken over: {read}");
    assert!(read <= 20, "{read} messages read for each");
}
