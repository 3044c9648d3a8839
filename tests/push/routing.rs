//! Which channel gets a decision: the most recently opened one that lives, in the whole cluster,
//! and only that.

use std::time::Duration;

use super::{enforcer_socket, scene};
use crate::support::exchanges::{DAY, decided, pending};
use crate::support::{compact, until};

/// Damage that no client can do.
#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_cannot_be_printed_does_not_keep_its_neighbours() {
    let (cluster, enforcer, approver) = scene(1).await;
    let requests = [
        decided(&enforcer, &approver).await,
        decided(&enforcer, &approver).await,
        decided(&enforcer, &approver).await,
    ];
    let [damaged, others @ ..] = requests;
    let database = &cluster.database;
    database
        .run("create cast (text as json) without function")
        .await;
    database
        .run(&format!(
            "update exchange_payloads set body = text 'no JSON'::json where part = 'decision' and request_id = '{damaged}'"
        ))
        .await;
    let mut socket = enforcer_socket(&cluster, 0, &enforcer).await;
    for expected in others {
        let delivered = socket.expect_type("decision.deliver").await;
        assert_eq!(delivered["requestId"], expected.as_str());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_goes_to_the_newest_channel_and_moves_on_when_that_closes() {
    let (cluster, enforcer, approver) = scene(3).await;
    let mut oldest = enforcer_socket(&cluster, 0, &enforcer).await;
    let mut older = enforcer_socket(&cluster, 1, &enforcer).await;
    let mut newest = enforcer_socket(&cluster, 2, &enforcer).await;
    let request = decided(&enforcer, &approver.on(0)).await;
    let first = newest.expect().await;
    assert_eq!(first["msgType"], "decision.deliver");
    assert!(
        oldest.is_silent(Duration::from_millis(300)).await
            && older.is_silent(Duration::from_millis(300)).await
    );
    drop(newest);
    let second = older.expect().await;
    assert_eq!(
        second["msgId"], first["msgId"],
        "the same message, on the next most recent"
    );
    enforcer
        .ack(&request, second["msgId"].as_str().unwrap())
        .await
        .expect(200);
    assert!(oldest.is_silent(Duration::from_millis(300)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unanswered_decision_is_offered_three_times_and_then_elsewhere() {
    let (cluster, enforcer, approver) = scene(2).await;
    let mut older = enforcer_socket(&cluster, 0, &enforcer).await;
    let mut newest = enforcer_socket(&cluster, 1, &enforcer).await;
    let request = decided(&enforcer, &approver).await;
    let first = newest.expect().await;
    for _ in 0..2 {
        cluster.pass(Duration::from_secs(60));
        assert_eq!(newest.expect().await["msgId"], first["msgId"]);
    }
    cluster.pass(Duration::from_secs(60));
    assert_eq!(
        older.expect().await["msgId"],
        first["msgId"],
        "the next most recent gets its turn"
    );
    enforcer
        .ack(&request, first["msgId"].as_str().unwrap())
        .await
        .expect(200);
    cluster.pass(Duration::from_secs(600));
    assert!(
        newest.is_silent(Duration::from_secs(2)).await,
        "no message after its ack"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_opened_later_takes_over_what_is_unacknowledged() {
    let (cluster, enforcer, approver) = scene(2).await;
    decided(&enforcer, &approver).await;
    let mut first = enforcer_socket(&cluster, 0, &enforcer).await;
    let message = first.expect().await;
    let mut second = enforcer_socket(&cluster, 1, &enforcer).await;
    assert_eq!(second.expect().await["msgId"], message["msgId"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_on_a_dead_node_swallows_nothing() {
    let (cluster, enforcer, approver) = scene(1).await;
    let mut living = enforcer_socket(&cluster, 0, &enforcer).await;
    // A newer channel, on a node whose last heartbeat is long ago.
    let dead = "insert into nodes values ('00000000-0000-7000-8000-000000000001', 'dead', now(), now() - interval '20 s');
         insert into channels (tenant_id, kind, identity, channel_id, node_id, transport, opened_at)
         select tenant_id, kind, identity, '00000000-0000-7000-8000-000000000002',
                '00000000-0000-7000-8000-000000000001', transport, now() + interval '1 minute'
           from channels";
    cluster.database.run(dead).await;
    decided(&enforcer, &approver).await;
    assert_eq!(living.expect().await["msgType"], "decision.deliver");
    let buried = "select count(*) from nodes where name = 'dead'";
    cluster
        .database
        .run("update nodes set heartbeat_at = now() - interval '1 minute' where name = 'dead'")
        .await;
    until(
        "the dead node is taken off the books",
        Duration::from_secs(15),
        async || cluster.database.number(buried).await == 0,
    )
    .await;
    assert_eq!(
        cluster
            .database
            .number("select count(*) from channels")
            .await,
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_whose_closing_was_lost_does_not_starve_the_others() {
    let (cluster, enforcer, approver) = scene(1).await;
    let mut living = enforcer_socket(&cluster, 0, &enforcer).await;
    // Newer than the living one, on the same living node, and nobody is there.
    let ghost = "update channels set opened_at = now() - interval '60 s';
         insert into channels (tenant_id, kind, identity, channel_id, node_id, transport, opened_at)
         select tenant_id, kind, identity, '00000000-0000-7000-8000-000000000002', node_id, transport,
                now() - interval '30 s'
           from channels";
    cluster.database.run(ghost).await;
    decided(&enforcer, &approver).await;
    assert_eq!(living.expect().await["msgType"], "decision.deliver");
    assert_eq!(
        cluster
            .database
            .number("select count(*) from channels")
            .await,
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_does_not_overtake_an_earlier_message_of_its_exchange() {
    let (cluster, enforcer, approver) = scene(1).await;
    let mut socket = enforcer_socket(&cluster, 0, &enforcer).await;
    let warm = decided(&enforcer, &approver).await;
    let delivered = socket.expect_type("decision.deliver").await;
    assert_eq!(delivered["requestId"], warm.as_str());
    let request = pending(&enforcer, DAY).await;
    // As written by a node whose hint was lost.
    let refresh = format!(
        "insert into messages (tenant_id, recipient_kind, recipient, message_id, kind, request_id, seq, sender, created_at)
         select tenant_id, 'enforcer', enforcer_id, gen_random_uuid(), 'refresh.request', request_id, seq + 1, '{}',
                clock_timestamp()
           from exchanges where request_id = '{request}';
         update exchanges set seq = seq + 1 where request_id = '{request}'",
        approver.id
    );
    cluster.database.run(&refresh).await;
    let decision = approver.decide(&request, compact("reject")).await;
    decision.expect(200);
    assert_eq!(socket.expect().await["msgType"], "refresh.request");
    assert_eq!(socket.expect().await["msgType"], "decision.deliver");
}
