//! Push: every kind of message over every transport, on any node, at least once and until
//! acknowledged.

mod backlog;
mod channels;
mod copies;
mod crowd;
mod frames;
mod hints;
mod killed;
mod late;
mod memory;
mod offers;
mod outage;
mod registration;
mod rolling;
mod routing;

use std::time::Duration;

use serde_json::json;

use crate::support::push::{Socket, Stream};
use crate::support::{Approver, Cluster, Enforcer, compact, request_id, sealed};

/// A cluster and its two parties.
async fn scene(nodes: usize) -> (Cluster, Enforcer, Approver) {
    let cluster = Cluster::with(nodes, |config| {
        config.push.reoffer_seconds = 1;
        config.push.drain_spread_ms = 100;
    })
    .await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    (cluster, enforcer, approver)
}

/// A socket of an approver on one node.
async fn approver_socket(cluster: &Cluster, node: usize, approver: &Approver) -> Socket {
    let url = &cluster.nodes[node].url;
    Socket::connect(url, "approver", &approver.id, approver.client.key())
        .await
        .unwrap()
}

/// A socket of an enforcer on one node.
async fn enforcer_socket(cluster: &Cluster, node: usize, enforcer: &Enforcer) -> Socket {
    let url = &cluster.nodes[node].url;
    Socket::connect(url, "enforcer", &enforcer.id, enforcer.client.key())
        .await
        .unwrap()
}

/// An event stream of an approver on one node.
async fn approver_stream(
    cluster: &Cluster,
    node: usize,
    approver: &Approver,
    last: Option<&str>,
) -> Stream {
    let url = &cluster.nodes[node].url;
    Stream::connect(url, "approvers", &approver.id, approver.client.key(), last)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_request_reaches_every_channel_of_its_approver_on_any_node() {
    let (cluster, enforcer, approver) = scene(2).await;
    let mut stream = approver_stream(&cluster, 0, &approver, None).await;
    let mut socket = approver_socket(&cluster, 1, &approver).await;
    for node in [0, 1] {
        let request = request_id();
        enforcer
            .on(node)
            .submit(&request, "alice", sealed())
            .await
            .expect(202);
        let (event, streamed) = stream.expect().await;
        let pushed = socket.expect().await;
        assert_eq!(event.kind, "approval.request");
        assert_eq!(streamed, pushed);
        let item = approver
            .inbox("")
            .await
            .body("/items")
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .clone();
        assert_eq!(item, pushed, "the inbox shows the very same envelope");
        approver
            .ack(&request, pushed["msgId"].as_str().unwrap())
            .await
            .expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_and_a_refresh_reach_the_enforcer_over_either_transport() {
    let (cluster, enforcer, approver) = scene(2).await;
    for transport in ["socket", "stream"] {
        let request = request_id();
        enforcer
            .submit(&request, "alice", sealed())
            .await
            .expect(202);
        let url = &cluster.nodes[0].url;
        let mut socket = None;
        let mut stream = None;
        if transport == "socket" {
            socket = Some(enforcer_socket(&cluster, 0, &enforcer).await);
        } else {
            stream = Stream::connect(url, "enforcers", "build-bot", enforcer.client.key(), None)
                .await
                .ok();
        }
        let next =
            async |socket: &mut Option<Socket>, stream: &mut Option<Stream>| match (socket, stream)
            {
                (Some(socket), _) => socket.expect().await,
                (None, Some(stream)) => stream.expect().await.1,
                (None, None) => panic!("no channel"),
            };
        approver
            .on(1)
            .refresh(&request, json!({ "reason": "stale" }))
            .await
            .expect(202);
        let refresh = next(&mut socket, &mut stream).await;
        assert_eq!(refresh["msgType"], "refresh.request");
        assert_eq!(refresh["body"]["reason"], "stale");
        enforcer
            .ack(&request, refresh["msgId"].as_str().unwrap())
            .await
            .expect(200);
        let decision = compact("approve");
        approver
            .on(1)
            .decide(&request, decision.clone())
            .await
            .expect(200);
        let delivered = next(&mut socket, &mut stream).await;
        assert_eq!(delivered["msgType"], "decision.deliver");
        assert_eq!(delivered["body"], decision);
        let waited = enforcer.wait(&request, 5).await.expect(200);
        assert_eq!(
            waited.json(),
            delivered,
            "a wait shows the very same envelope"
        );
        enforcer
            .ack(&request, delivered["msgId"].as_str().unwrap())
            .await
            .expect(200);
        assert_eq!(enforcer.state(&request).await, "delivered");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawal_reaches_the_approvers_sockets() {
    let (cluster, enforcer, approver) = scene(2).await;
    let mut socket = approver_socket(&cluster, 1, &approver).await;
    let request = request_id();
    enforcer
        .on(0)
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    assert_eq!(socket.expect().await["msgType"], "approval.request");
    enforcer.on(0).withdraw(&request).await.expect(200);
    let withdrawn = socket.expect_type("exchange.withdrawn").await;
    assert_eq!(withdrawn["requestId"], request.as_str());
    assert_eq!(withdrawn["body"]["state"], "withdrawn");
    approver
        .ack(&request, withdrawn["msgId"].as_str().unwrap())
        .await
        .expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_unacknowledged_is_sent_on_connect_oldest_first_and_again_until_it_is_acknowledged()
{
    let (cluster, enforcer, approver) = scene(2).await;
    let mut requests = Vec::new();
    for _ in 0..25 {
        let request = request_id();
        enforcer
            .submit(&request, "alice", sealed())
            .await
            .expect(202);
        requests.push(request);
    }
    let mut socket = approver_socket(&cluster, 0, &approver).await;
    let mut messages = Vec::new();
    for request in &requests {
        let pushed = socket.expect().await;
        assert_eq!(pushed["requestId"], request.as_str());
        messages.push(pushed["msgId"].as_str().unwrap().to_owned());
    }
    for (request, message) in requests.iter().zip(&messages).skip(1) {
        approver.on(1).ack(request, message).await.expect(200);
    }
    for _ in 0..2 {
        let again = socket.expect().await;
        assert_eq!(
            again["msgId"],
            messages[0].as_str(),
            "only what is unacknowledged is offered again"
        );
    }
    approver
        .on(1)
        .ack(&requests[0], &messages[0])
        .await
        .expect(200);
    drop(socket);
    let mut socket = approver_socket(&cluster, 1, &approver).await;
    assert!(
        socket.is_silent(Duration::from_secs(2)).await,
        "nothing comes after its ack"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_resumes_a_little_before_its_last_event() {
    let (cluster, enforcer, approver) = scene(1).await;
    let (old, recent) = (request_id(), request_id());
    enforcer.submit(&old, "alice", sealed()).await.expect(202);
    cluster.pass(Duration::from_secs(100));
    enforcer
        .submit(&recent, "alice", sealed())
        .await
        .expect(202);
    let mut stream = approver_stream(&cluster, 0, &approver, None).await;
    assert_eq!(stream.expect().await.1["requestId"], old.as_str());
    let (last, _) = stream.expect().await;
    drop(stream);

    let mut resumed = approver_stream(&cluster, 0, &approver, last.id.as_deref()).await;
    assert_eq!(
        resumed.expect().await.1["requestId"],
        recent.as_str(),
        "what is older by more than 60 s is skipped"
    );
    let mut anew = approver_stream(&cluster, 0, &approver, Some("no-such-event")).await;
    assert_eq!(
        anew.expect().await.1["requestId"],
        old.as_str(),
        "an unknown event skips nothing"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_commits_out_of_order_is_not_skipped() {
    let (cluster, enforcer, approver) = scene(2).await;
    let (model, late, early) = (request_id(), request_id(), request_id());
    enforcer.submit(&model, "bob", sealed()).await.expect(202);
    // A submission whose transaction is held open: created first, committed last.
    let mut holding = cluster.database.connect().await;
    let hold = format!(
        "begin;
         insert into exchanges (tenant_id, request_id, submission_id, operation_id, state, seq, enforcer_id, form,
                                artifact_type, artifact_hash, accepted_at, expires_at)
         select tenant_id, '{late}', submission_id, operation_id, state, seq, enforcer_id, form, artifact_type,
                artifact_hash, now(), expires_at
           from exchanges where request_id = '{model}';
         insert into exchange_payloads (tenant_id, request_id, part, body)
         select tenant_id, '{late}', part, body from exchange_payloads where request_id = '{model}';
         insert into inbox_items (tenant_id, request_id, approver_id, message_id, created_at, expires_at)
         select tenant_id, '{late}', 'alice', message_id, now(), expires_at
           from inbox_items where request_id = '{model}'"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(hold))
        .execute(&mut holding)
        .await
        .unwrap();
    enforcer.submit(&early, "alice", sealed()).await.expect(202);
    let mut stream = approver_stream(&cluster, 1, &approver, None).await;
    let (seen, envelope) = stream.expect().await;
    assert_eq!(envelope["requestId"], early.as_str());
    approver
        .ack(&early, envelope["msgId"].as_str().unwrap())
        .await
        .expect(200);
    crate::support::database::finish(&mut holding, "commit").await;
    assert_eq!(
        stream.expect().await.1["requestId"],
        late.as_str(),
        "on the stream that is open"
    );
    drop(stream);
    let mut resumed = approver_stream(&cluster, 0, &approver, seen.id.as_deref()).await;
    assert_eq!(
        resumed.expect().await.1["requestId"],
        late.as_str(),
        "and on one that resumes after the later one"
    );
}
