//! Peers that read and write as slowly as they like, and figures of what that does to others.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Bytes;
use futures_util::{StreamExt as _, stream};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, sleep, timeout};

use crate::support::fleet::resident_kib;
use crate::support::scrape::scrape;
use crate::support::{Approver, Cluster, Enforcer, request_id, sealed, with};

/// Longest wait for anything.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// The window of an HTTP/2 client; a smaller one is not possible at first.
pub const WINDOW: u32 = (64 << 10) - 1;

pub type RequestBody = BoxBody<Bytes, Infallible>;

pub fn address(url: &str) -> SocketAddr {
    url.replace("http://", "").parse().unwrap()
}

/// A connection that has asked for something, and reads only when told to.
pub async fn slow_get(url: &str, path: &str, key: &str) -> TcpStream {
    asking(url, path, key, 8 << 10).await
}

/// The same with a receive buffer of its own size.
pub async fn asking(url: &str, path: &str, key: &str, buffer: u32) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(buffer).unwrap();
    let mut stream = socket.connect(address(url)).await.unwrap();
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

/// The status of the answer that a connection gets.
pub async fn status(stream: &mut TcpStream) -> u16 {
    let mut line = [0; 12];
    let read = timeout(PATIENCE, stream.read_exact(&mut line)).await;
    read.expect("an answer").unwrap();
    String::from_utf8_lossy(&line[9..]).parse().unwrap()
}

/// Reads a connection to its end, with a pause after so many bytes, and says how many there were.
pub async fn read_out(stream: &mut TcpStream, at_once: usize, pause: Duration) -> usize {
    let (mut bytes, mut total, mut read) = (vec![0; at_once], 0, 0);
    loop {
        match stream.read(&mut bytes).await {
            // It may end with a reset.
            Ok(0) | Err(_) => return total,
            Ok(count) => (total, read) = (total + count, read + count),
        }
        if read >= at_once {
            read = 0;
            sleep(pause).await;
        }
    }
}

/// A client of HTTP/2 with the smallest windows.
pub async fn multiplexed(url: &str) -> SendRequest<RequestBody> {
    let stream = TcpStream::connect(address(url)).await.unwrap();
    let (sender, connection) = Builder::new(TokioExecutor::new())
        .initial_stream_window_size(WINDOW)
        // Of the connection: one stream that is not read must not keep the others from being.
        .initial_connection_window_size(64 << 20)
        .handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    sender
}

pub async fn get(
    sender: &mut SendRequest<RequestBody>,
    key: &str,
    path: &str,
) -> hyper::Response<Incoming> {
    let request = hyper::Request::get(format!("http://node{path}"))
        .header("authorization", format!("Bearer {key}"))
        .body(BodyExt::boxed(Empty::new()))
        .unwrap();
    sender.send_request(request).await.unwrap()
}

/// A body of which so much is sent, and then nothing more.
pub fn unfinished(bytes: usize) -> RequestBody {
    let begun = Ok(Frame::data(Bytes::from(vec![b' '; bytes])));
    let body = stream::iter([begun]).chain(stream::pending());
    BodyExt::boxed(StreamBody::new(body))
}

/// Puts items of 2 MB into an inbox.
pub async fn fill(enforcer: &Enforcer, approver: &str, count: usize) {
    let large = with(&sealed(), "/ciphertext/data", json!("x".repeat(2_000_000)));
    for _ in 0..count {
        let request = request_id();
        let taken = enforcer.submit(&request, approver, large.clone()).await;
        taken.expect(202);
    }
}

/// The memory that a node has set aside for bodies, answers and pages.
pub async fn memory(cluster: &Cluster) -> f64 {
    let read = scrape(&cluster.nodes[0].metrics).await;
    read.count("countersign_body_memory_bytes", &[])
}

/// How many connections the node closed because their peers did not read.
pub async fn cut(cluster: &Cluster) -> f64 {
    let read = scrape(&cluster.nodes[0].metrics).await;
    read.count(
        "countersign_connections_closed_total",
        &[("reason", "unread")],
    )
}

/// The figures of honest parties, and the most memory that the node had meanwhile.
pub struct Figures {
    pub p99: Duration,
    pub most_kib: u64,
}

/// Whole exchanges for a while, ten a second, while a node is watched. All of them must succeed.
pub async fn watched(
    enforcer: &Enforcer,
    approver: &Approver,
    pid: u32,
    long: Duration,
) -> Figures {
    let end = Instant::now() + long;
    let (mut times, mut most_kib) = (Vec::new(), 0);
    while Instant::now() < end {
        let began = Instant::now();
        super::honest_exchange(enforcer, approver).await;
        times.push(began.elapsed());
        most_kib = most_kib.max(resident_kib(pid));
        sleep(Duration::from_millis(50)).await;
    }
    times.sort();
    let p99 = times[times.len() * 99 / 100];
    Figures { p99, most_kib }
}

/// Prints what an attack did to others, beside what it was without.
pub fn print_figures(attack: &str, before_kib: u64, without: &Figures, during: &Figures) {
    println!(
        "{attack}: p99 of an exchange {:?} without and {:?} during it; {} MiB before and {} MiB at most",
        without.p99,
        during.p99,
        before_kib >> 10,
        during.most_kib >> 10,
    );
}
