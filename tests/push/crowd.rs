//! Many channels, and readers that do not read.

use std::time::Duration;

use countersign::store::identity::credential::RoleName;
use futures_util::{StreamExt as _, stream};
use serde_json::json;

use super::approver_socket;
use crate::support::fleet::{Fleet, resident_kib};
use crate::support::push::{Socket, Stream};
use crate::support::{Cluster, crowd, request_id, sealed, until, with};

/// Idle channels of each kind, where the system lets a process have that many sockets.
const IDLE: usize = 5_000;

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_idle_channels_fit_on_a_node_and_cost_little() {
    let crowd = crowd(IDLE).await;
    let idle = crowd.size;
    let cluster = Cluster::start(1).await;
    let key = cluster.key(&cluster.tenant, RoleName::Approver, None).await;
    let enforcer = cluster.enforcer("build-bot").await;
    // Nobody reads the sockets while the others connect, so nobody answers pings; on a busy machine
    // that takes minutes.
    let patient = [("PUSH__IDLE_SECONDS", "1800")];
    let fleet = Fleet::start_with(&cluster.database.url, 1, &patient);
    let url = &fleet.nodes[0].url;
    let before = resident_kib(fleet.pid(0));
    let key = &key;
    let mut sockets: Vec<_> = stream::iter(0..idle)
        .map(|n| async move { Socket::connect(url, "approver", &format!("ws-{n}"), key).await })
        .buffered(64)
        .collect()
        .await;
    let between = resident_kib(fleet.pid(0));
    let streams: Vec<_> =
        stream::iter(0..idle)
            .map(|n| async move {
                Stream::connect(url, "approvers", &format!("sse-{n}"), key, None).await
            })
            .buffered(64)
            .collect()
            .await;
    let after = resident_kib(fleet.pid(0));
    assert!(
        sockets.iter().all(Result::is_ok) && streams.iter().all(Result::is_ok),
        "all are connected"
    );
    let per = |kib: u64| kib / (idle as u64);
    let (socket, event_stream) = (per(between - before), per(after - between));
    println!(
        "resident memory per idle channel: {socket} KiB a WebSocket, {event_stream} KiB an event stream"
    );
    assert!(
        socket < 64 && event_stream < 64,
        "{socket} and {event_stream} KiB"
    );

    let request = request_id();
    enforcer
        .submit(&request, &format!("ws-{}", idle / 2), sealed())
        .await
        .expect(202);
    let pushed = sockets[idle / 2].as_mut().unwrap().expect().await;
    assert_eq!(
        pushed["requestId"],
        request.as_str(),
        "the crowd does not keep a message from its channel"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_stops_reading_is_closed_and_catches_up_when_it_comes_back() {
    let cluster = Cluster::with(1, |config| config.push.send_timeout_seconds = 1).await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    let stopped = approver_socket(&cluster, 0, &approver).await;
    let large = with(&sealed(), "/ciphertext/data", json!("A".repeat(1 << 20)));
    let mut requests = Vec::new();
    for _ in 0..24 {
        let request = request_id();
        enforcer
            .submit(&request, "alice", large.clone())
            .await
            .expect(202);
        requests.push(request);
    }
    until("it is closed", Duration::from_secs(20), async || {
        cluster.nodes[0].gateway.channels.channel_count() == 0
    })
    .await;
    drop(stopped);
    let mut back = approver_socket(&cluster, 0, &approver).await;
    for request in &requests {
        assert_eq!(
            back.expect_type("approval.request").await["requestId"],
            request.as_str()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_not_read_loses_its_channel() {
    let cluster = Cluster::with(1, |config| config.push.send_timeout_seconds = 1).await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    let address = cluster.nodes[0].url.replace("http://", "");
    let mut unread = tokio::net::TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "GET /v1/sse/approvers/alice HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {}\r\n\r\n",
        approver.client.key()
    );
    tokio::io::AsyncWriteExt::write_all(&mut unread, head.as_bytes())
        .await
        .unwrap();
    let gateway = &cluster.nodes[0].gateway;
    until("it is open", Duration::from_secs(5), async || {
        gateway.channels.channel_count() == 1
    })
    .await;
    let large = with(&sealed(), "/ciphertext/data", json!("A".repeat(1 << 20)));
    for _ in 0..24 {
        enforcer
            .submit(&request_id(), "alice", large.clone())
            .await
            .expect(202);
    }
    until("its channel is gone", Duration::from_secs(20), async || {
        gateway.channels.channel_count() == 0
    })
    .await;
    drop(unread);
}
