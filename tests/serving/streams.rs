//! Event streams byte by byte: what is said on the connection, whatever was said on it before.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use crate::support::tls::{Authority, Files, TlsClient, address};
use crate::support::{Approver, Cluster, request_id, sealed, until};

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(20);
/// How every stream begins.
const RETRY: &str = "retry: 2000\n\n";
/// The sign of life.
const PING: &str = "event: ping\ndata:\n\n";

/// How a request for alice's stream begins and ends.
fn asking(version: &str, approver: &Approver, headers: &str) -> String {
    format!(
        "GET /v1/sse/approvers/alice {version}\r\nhost: x\r\nauthorization: Bearer {}\r\n{headers}\r\n",
        approver.client.key()
    )
}

/// A connection read strictly.
struct Wire<S>(BufReader<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    async fn line(&mut self) -> String {
        let mut line = String::new();
        let reading = timeout(PATIENCE, self.0.read_line(&mut line));
        reading.await.expect("a line").unwrap();
        let line = line.strip_suffix("\r\n");
        line.expect("ended as lines of HTTP are").to_owned()
    }

    /// A head, in lower case.
    async fn head(&mut self) -> Vec<String> {
        let mut head = Vec::new();
        loop {
            match self.line().await.to_lowercase() {
                line if line.is_empty() => return head,
                line => head.push(line),
            }
        }
    }

    async fn text(&mut self, length: usize) -> String {
        let mut bytes = vec![0; length];
        let reading = timeout(PATIENCE, self.0.read_exact(&mut bytes));
        reading.await.expect("in time").unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// An answer of known length.
    async fn answer(&mut self) {
        let head = self.head().await;
        let mut lines = head.iter();
        let length = lines.find_map(|line| line.strip_prefix("content-length: "));
        self.text(length.unwrap().parse().unwrap()).await;
    }

    /// The next chunk; an empty one is the last.
    async fn chunk(&mut self) -> String {
        let length = usize::from_str_radix(&self.line().await, 16).unwrap();
        let chunk = self.text(length).await;
        assert_eq!(self.line().await, "", "what ends a chunk");
        chunk
    }

    /// Asks for alice's stream, and reads how it begins.
    async fn stream(&mut self, approver: &Approver) {
        let ask = asking("HTTP/1.1", approver, "");
        self.0.write_all(ask.as_bytes()).await.unwrap();
        let head = self.head().await;
        assert_eq!(head[0], "http/1.1 200 ok");
        assert!(head.contains(&"transfer-encoding: chunked".to_owned()));
        assert_eq!(self.chunk().await, RETRY);
    }

    async fn is_closed(&mut self) -> bool {
        let ended = timeout(PATIENCE, self.0.read(&mut [0])).await;
        matches!(ended.expect("it ends"), Ok(0))
    }
}

async fn connect(cluster: &Cluster) -> Wire<TcpStream> {
    let stream = TcpStream::connect(address(&cluster.nodes[0].url)).await;
    Wire(BufReader::new(stream.unwrap()))
}

async fn channels(cluster: &Cluster, count: i64) {
    until("so many channels are open", PATIENCE, async || {
        let open = "select count(*) from channels where active";
        cluster.database.number(open).await == count
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_chunks_and_ends_as_it_should_when_the_node_stops() {
    let mut cluster = Cluster::start(1).await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    let mut wire = connect(&cluster).await;
    let ask = asking("HTTP/1.1", &approver, "");
    wire.0.write_all(ask.as_bytes()).await.unwrap();
    let head = wire.head().await;
    assert_eq!(head[0], "http/1.1 200 ok");
    for (name, value) in [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-store"),
        ("transfer-encoding", "chunked"),
        ("connection", "close"),
    ] {
        let said: Vec<_> = head
            .iter()
            .filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
            .collect();
        assert_eq!(said, [value], "{name} in {head:?}");
    }
    let date = head.iter().find_map(|line| line.strip_prefix("date: "));
    let date = date.expect("a date");
    assert!(date.len() == 29 && date.ends_with(" gmt"), "{date}");
    assert_eq!(wire.chunk().await, RETRY);

    let request = request_id();
    let taken = enforcer.submit(&request, "alice", sealed()).await;
    taken.expect(202);
    let event = wire.chunk().await;
    assert!(event.starts_with("id: ") && event.ends_with("\n\n"));
    assert!(event.contains(&request), "{event}");

    let node = cluster.nodes.remove(0);
    let stopping = tokio::spawn(node.stop());
    assert_eq!(wire.chunk().await, "", "the last chunk");
    assert!(wire.is_closed().await);
    stopping.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_may_begin_on_a_connection_that_was_used_and_its_end_is_noticed() {
    let cluster = Cluster::start(1).await;
    let approver = cluster.approver("alice").await;
    let mut wire = connect(&cluster).await;
    let ask = b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n";
    wire.0.write_all(ask).await.unwrap();
    wire.answer().await;
    wire.stream(&approver).await;
    channels(&cluster, 1).await;
    drop(wire);
    channels(&cluster, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_keeps_the_seat_of_its_connection() {
    let cluster = Cluster::with(1, |config| config.server.max_connections_per_address = 2).await;
    let approver = cluster.approver("alice").await;
    let open = async || {
        let mut wire = connect(&cluster).await;
        wire.stream(&approver).await;
        wire
    };
    let held = (open().await, open().await);
    let mut third = connect(&cluster).await;
    assert!(third.is_closed().await, "there is no room");
    drop(held);
    channels(&cluster, 0).await;
    open().await;
}

/// A peer may ask for its stream before it has read the answers to what it asked before, some of
/// which wait to be written then. How many wait is the kernel's affair, so that several numbers are
/// tried. (The protocol library reads no request before it has written the last answer: this holds
/// it to that.)
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_begins_after_all_that_was_answered_before_it() {
    let cluster = Cluster::start(1).await;
    let approver = cluster.approver("alice").await;
    let tries = (100..2_000).step_by(100).map(async |count| {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(8 << 10).unwrap();
        let node = address(&cluster.nodes[0].url).parse().unwrap();
        let mut wire = Wire(BufReader::new(socket.connect(node).await.unwrap()));
        let asked = "GET /livez HTTP/1.1\r\nhost: x\r\n\r\n".repeat(count);
        let asked = asked + &asking("HTTP/1.1", &approver, "");
        wire.0.write_all(asked.as_bytes()).await.unwrap();
        // The node goes as far as it can without being read.
        sleep(Duration::from_millis(500)).await;
        for _ in 0..count {
            wire.answer().await;
        }
        let head = wire.head().await;
        assert!(head.contains(&"content-type: text/event-stream".to_owned()));
        assert_eq!(wire.chunk().await, RETRY);
    });
    join_all(tries).await;
}

/// Peers that know no chunks, or that send what nobody asked for.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_goes_to_peers_of_other_manners_too() {
    let cluster = Cluster::start(1).await;
    let approver = cluster.approver("alice").await;
    let mut wire = connect(&cluster).await;
    let ask = asking("HTTP/1.0", &approver, "");
    wire.0.write_all(ask.as_bytes()).await.unwrap();
    let head = wire.head().await;
    assert!(head[0].ends_with(" 200 ok"), "{head:?}");
    assert!(!head.contains(&"transfer-encoding: chunked".to_owned()));
    assert_eq!(wire.text(RETRY.len()).await, RETRY);

    let mut wire = connect(&cluster).await;
    let ask = asking("HTTP/1.1", &approver, "content-length: 4\r\n") + "body";
    wire.0.write_all(ask.as_bytes()).await.unwrap();
    assert_eq!(wire.head().await[0], "http/1.1 200 ok");
    assert_eq!(wire.chunk().await, RETRY);
}

/// A request behind a stream could never be answered, and is not read.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_talks_into_its_stream_is_not_listened_to() {
    let cluster = Cluster::with(1, |config| {
        config.server.header_timeout_seconds = 1;
        config.push.sse_ping_seconds = 1;
    })
    .await;
    let approver = cluster.approver("alice").await;
    let mut wire = connect(&cluster).await;
    wire.stream(&approver).await;
    wire.0.write_all(b"GET /livez").await.unwrap();
    // Longer than headers may take.
    for _ in 0..4 {
        assert_eq!(wire.chunk().await, PING);
    }
    drop(wire);
    channels(&cluster, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_over_tls_is_the_same() {
    let authority = Authority::new("servers");
    let files = Files::with(&authority.server());
    let mut cluster = Cluster::with(1, |config| {
        files.configure(config);
        config.push.sse_ping_seconds = 1;
    })
    .await;
    let approver = cluster.approver("alice").await;
    let tls = TlsClient::trusting(&authority).offering(&[b"http/1.1"]);
    let stream = tls.connect(&cluster.nodes[0].url).await.unwrap();
    let mut wire = Wire(BufReader::new(stream));
    wire.stream(&approver).await;
    // Each event is sent at once, and the end is one.
    assert_eq!(wire.chunk().await, PING);
    let node = cluster.nodes.remove(0);
    let stopping = tokio::spawn(node.stop());
    while wire.chunk().await == PING {}
    assert!(wire.is_closed().await);
    stopping.await.unwrap();
}
