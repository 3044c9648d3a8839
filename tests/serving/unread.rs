//! Peers that ask and do not read, or come and do not ask, are let go; those that are slow, or wait
//! for us, are not.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, sleep};

use crate::support::{Approver, Cluster, request_id, sealed, until, with};

/// How long a node may take to notice. Less than what the kernel itself allows a peer that takes
/// nothing.
const SOON: Duration = Duration::from_secs(15);

/// How long a peer may take nothing.
const WRITE_TIMEOUT: Duration = Duration::from_secs(3);
/// The window of an HTTP/2 client; a smaller one is not possible at first.
const WINDOW: u32 = (64 << 10) - 1;

/// A node with room for one large page, and alice's inbox that makes one.
async fn crowded() -> (Cluster, Approver) {
    let cluster = Cluster::with(1, |config| {
        config.limits.body_memory_bytes = 12 << 20;
        config.server.write_timeout_seconds = WRITE_TIMEOUT.as_secs();
    })
    .await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    let large = with(&sealed(), "/ciphertext/data", json!("x".repeat(2_000_000)));
    for _ in 0..4 {
        let request = request_id();
        let taken = enforcer.submit(&request, "alice", large.clone()).await;
        taken.expect(202);
    }
    (cluster, approver)
}

fn address(cluster: &Cluster) -> SocketAddr {
    cluster.nodes[0].url.replace("http://", "").parse().unwrap()
}

/// A connection that has asked for the inbox, seen that it gets it, and takes as little as it can.
async fn asked(cluster: &Cluster, approver: &Approver) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(8 << 10).unwrap();
    let mut stream = socket.connect(address(cluster)).await.unwrap();
    let head = format!(
        "GET /v1/approvers/alice/inbox HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nconnection: close\r\n\r\n",
        approver.client.key()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();
    assert_eq!(status, *b"HTTP/1.1 200");
    stream
}

/// A client of HTTP/2 with the smallest windows.
async fn multiplexed(cluster: &Cluster) -> SendRequest<Empty<Bytes>> {
    let stream = TcpStream::connect(address(cluster)).await.unwrap();
    let (sender, connection) = Builder::new(TokioExecutor::new())
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    sender
}

async fn get(
    sender: &mut SendRequest<Empty<Bytes>>,
    key: &str,
    path: &str,
) -> hyper::Response<Incoming> {
    let request = hyper::Request::get(format!("http://node{path}"))
        .header("authorization", format!("Bearer {key}"))
        .body(Empty::new())
        .unwrap();
    sender.send_request(request).await.unwrap()
}

/// Waits until the room is taken, and then until it is free again.
async fn room_comes_back(approver: &Approver) {
    until("the page takes its room", SOON, async || {
        approver.inbox("").await.status == 503
    })
    .await;
    until("the room is free again", SOON, async || {
        approver.inbox("").await.status == 200
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_nobody_takes_holds_its_room_only_for_a_while() {
    let (cluster, approver) = crowded().await;
    let mut stream = asked(&cluster, &approver).await;
    room_comes_back(&approver).await;
    let mut said = Vec::new();
    // Cut off, perhaps with a reset.
    drop(stream.read_to_end(&mut said).await);
    assert!(said.len() < 8_000_000, "{} bytes", said.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_does_a_stream_whose_window_stays_shut() {
    let (cluster, approver) = crowded().await;
    let mut sender = multiplexed(&cluster).await;
    let key = approver.client.key();
    let page = get(&mut sender, key, "/v1/approvers/alice/inbox").await;
    assert_eq!(page.status(), 200);
    room_comes_back(&approver).await;
    // The stream is reset, and not its connection, which may be others' too.
    let mut body = page.into_body();
    let reset = async {
        while let Some(frame) = body.frame().await {
            if frame.is_err() {
                return true;
            }
        }
        false
    };
    let reset = tokio::time::timeout(SOON, reset).await;
    assert!(reset.expect("it ends"), "as broken off");
    let answer = get(&mut sender, key, "/v1/status").await;
    assert_eq!(answer.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_gets_its_answer_whole() {
    let (cluster, approver) = crowded().await;
    let begun = Instant::now();
    let mut stream = asked(&cluster, &approver).await;
    let (mut bytes, mut total) = (vec![0; 64 << 10], 0);
    loop {
        let count = stream.read(&mut bytes).await.unwrap();
        if count == 0 {
            break;
        }
        total += count;
        digest(count).await;
    }
    assert!(total > 8_000_000 && begun.elapsed() > WRITE_TIMEOUT);

    let begun = Instant::now();
    let mut sender = multiplexed(&cluster).await;
    let key = approver.client.key();
    let page = get(&mut sender, key, "/v1/approvers/alice/inbox").await;
    let (mut body, mut total) = (page.into_body(), 0);
    while let Some(frame) = body.frame().await {
        let count = frame.unwrap().into_data().unwrap().len();
        total += count;
        digest(count).await;
    }
    assert!(total > 8_000_000 && begun.elapsed() > WRITE_TIMEOUT);
}

/// Waits as long as a reader of two million bytes a second: in all longer than a peer may take
/// nothing.
async fn digest(bytes: usize) {
    let half = u64::try_from(bytes / 2).unwrap();
    sleep(Duration::from_micros(half)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_in_use_or_not_yet_in_use_is_kept() {
    let cluster = Cluster::with(1, |config| {
        config.server.header_timeout_seconds = 1;
        config.server.idle_timeout_seconds = 3;
    })
    .await;
    let enforcer = cluster.enforcer("build-bot").await;
    let key = enforcer.client.key();
    let ask = async |sender: &mut SendRequest<Empty<Bytes>>| {
        let answer = get(sender, key, "/v1/status").await;
        assert_eq!(answer.status(), 200);
        answer.into_body().collect().await.unwrap();
    };
    let used = async {
        let mut sender = multiplexed(&cluster).await;
        // Calls so short that hardly one is ever seen under way.
        for _ in 0..30 {
            ask(&mut sender).await;
            sleep(Duration::from_millis(200)).await;
        }
    };
    let later = async {
        let mut sender = multiplexed(&cluster).await;
        // Longer than headers may take: it has said what it speaks, and asked nothing yet.
        sleep(Duration::from_millis(2_500)).await;
        ask(&mut sender).await;
    };
    tokio::join!(used, later);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_without_a_stream_ends_and_one_that_waits_for_us_does_not() {
    let cluster = Cluster::with(1, |config| {
        config.server.write_timeout_seconds = 1;
        config.server.idle_timeout_seconds = 1;
        config.push.sse_ping_seconds = 4;
    })
    .await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);

    let mut idle = multiplexed(&cluster).await;
    let answer = get(&mut idle, enforcer.client.key(), "/v1/status").await;
    answer.into_body().collect().await.unwrap();

    // Both take longer than either patience, without a word in between.
    let (mut waits, mut streams) = (multiplexed(&cluster).await, multiplexed(&cluster).await);
    let path = format!("/v1/exchanges/{request}/wait?timeout=4");
    let waited = get(&mut waits, enforcer.client.key(), &path);
    let streamed = async {
        let path = "/v1/sse/enforcers/build-bot";
        let mut body = get(&mut streams, enforcer.client.key(), path)
            .await
            .into_body();
        let mut said = String::new();
        while !said.contains("ping") {
            let frame = body.frame().await.expect("it goes on").unwrap();
            said.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
        }
    };
    let (waited, ()) = tokio::join!(waited, streamed);
    assert_eq!(waited.status(), 204);
    until("it is closed", SOON, async || idle.is_closed()).await;
    approver.inbox("").await.expect(200);
}
