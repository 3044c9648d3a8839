//! The offer of a decision that a hint has named: written only if the decision is not acknowledged soon.

use std::time::Duration;

use super::enforcer_socket;
use crate::support::exchanges::decided;
use crate::support::push::Socket;
use crate::support::{Approver, Cluster, Enforcer, until};

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(10);

/// Two nodes that offer nothing again while the test lasts, and the enforcer's socket on the second.
async fn scene() -> (Cluster, Enforcer, Approver, Socket) {
    let cluster = Cluster::with(2, |config| {
        config.push.reoffer_seconds = 600;
        config.push.reoffer_max_seconds = 600;
    })
    .await;
    let enforcer = cluster.enforcer("build-bot").await;
    let approver = cluster.approver("alice").await;
    let socket = enforcer_socket(&cluster, 1, &enforcer).await;
    (cluster, enforcer, approver, socket)
}

async fn offers(cluster: &Cluster, request: &str) -> i64 {
    let sql = format!("select offers::bigint from messages where request_id = '{request}'");
    cluster.database.number(&sql).await
}

/// A decision that was sent without an offer, and its message. A channel that was just opened claims first.
async fn unwritten(
    cluster: &Cluster,
    enforcer: &Enforcer,
    approver: &Approver,
    socket: &mut Socket,
) -> (String, String) {
    let found = async {
        loop {
            let request = decided(enforcer, approver).await;
            let sent = socket.expect_type("decision.deliver").await;
            assert_eq!(sent["requestId"], request.as_str());
            let message = sent["msgId"].as_str().unwrap().to_owned();
            if offers(cluster, &request).await == 0 {
                return (request, message);
            }
            enforcer.ack(&request, &message).await.expect(200);
        }
    };
    let found = tokio::time::timeout(PATIENCE, found).await;
    found.expect("a decision without an offer")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_offer_of_an_acknowledged_decision_is_never_written() {
    let (cluster, enforcer, approver, mut socket) = scene().await;
    let (request, message) = unwritten(&cluster, &enforcer, &approver, &mut socket).await;
    enforcer.ack(&request, &message).await.expect(200);
    assert!(socket.is_silent(Duration::from_millis(1_500)).await);
    assert_eq!(offers(&cluster, &request).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_offer_of_an_unanswered_decision_is_written_with_the_time_of_the_next() {
    let (cluster, enforcer, approver, mut socket) = scene().await;
    let (request, _) = unwritten(&cluster, &enforcer, &approver, &mut socket).await;
    let written = format!(
        "select count(*) from messages m join channels c on c.channel_id = m.target_channel
          where m.request_id = '{request}' and m.offers = 1 and m.offered_at between m.created_at and now()
            and m.next_attempt_at - m.offered_at between interval '599 s' and interval '601 s'"
    );
    let database = &cluster.database;
    until("the offer is written", PATIENCE, async || {
        database.number(&written).await == 1
    })
    .await;
    assert!(socket.is_silent(Duration::from_millis(300)).await);
    cluster.pass(Duration::from_secs(700));
    let again = socket.expect_type("decision.deliver").await;
    assert_eq!(again["requestId"], request.as_str());
}

/// It makes the channel claim all that was never offered.
#[tokio::test(flavor = "multi_thread")]
async fn a_hint_for_everyone_sends_no_decision_twice() {
    let (cluster, enforcer, approver, mut socket) = scene().await;
    let (request, _) = unwritten(&cluster, &enforcer, &approver, &mut socket).await;
    let everyone = "select pg_notify('countersign', '* 00000000-0000-4000-8000-000000000000')";
    cluster.database.run(everyone).await;
    until("the offer is written", PATIENCE, async || {
        offers(&cluster, &request).await == 1
    })
    .await;
    assert!(socket.is_silent(Duration::from_millis(500)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hint_that_comes_twice_sends_a_decision_once() {
    let (cluster, enforcer, approver, mut socket) = scene().await;
    let mut listener = sqlx::postgres::PgListener::connect(&cluster.database.url)
        .await
        .unwrap();
    listener.listen("countersign").await.unwrap();
    let (_, message) = unwritten(&cluster, &enforcer, &approver, &mut socket).await;
    let name = message.replace('-', "");
    let hint = async {
        loop {
            let hint = listener.recv().await.unwrap().payload().to_owned();
            if hint.starts_with(['m', 'n']) && hint.contains(&name) {
                return hint;
            }
        }
    };
    let hint = tokio::time::timeout(PATIENCE, hint)
        .await
        .expect("the hint");
    let again = format!("select pg_notify('countersign', '{hint}')");
    cluster.database.run(&again).await;
    assert!(socket.is_silent(Duration::from_millis(700)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_opened_before_the_offer_is_written_takes_over_at_once() {
    let (cluster, enforcer, approver, mut socket) = scene().await;
    let (request, message) = unwritten(&cluster, &enforcer, &approver, &mut socket).await;
    let mut newer = enforcer_socket(&cluster, 0, &enforcer).await;
    let taken = newer.expect_type("decision.deliver").await;
    assert_eq!(taken["msgId"], message);
    // The older channel does not write its offer over this one.
    assert!(newer.is_silent(Duration::from_millis(1_500)).await);
    let newest = format!(
        "select count(*) from messages m join channels c on c.channel_id = m.target_channel
          where m.request_id = '{request}' and m.offers = 1
            and c.opened_at = (select max(opened_at) from channels)"
    );
    assert_eq!(cluster.database.number(&newest).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_waits_for_no_lock_and_the_channel_goes_on() {
    let (cluster, enforcer, approver, mut socket) = scene().await;
    let (request, message) = unwritten(&cluster, &enforcer, &approver, &mut socket).await;
    let lock = format!("select from messages where request_id = '{request}' for update");
    let mut holder = cluster.database.holding(&lock).await;
    assert!(socket.is_silent(Duration::from_millis(1_500)).await);
    let next = decided(&enforcer, &approver).await;
    let sent = socket.expect_type("decision.deliver").await;
    assert_eq!(sent["requestId"], next.as_str());
    crate::support::database::finish(&mut holder, "rollback").await;
    enforcer.ack(&request, &message).await.expect(200);
}
