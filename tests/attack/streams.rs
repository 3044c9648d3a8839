//! Channels whose clients do not read: their pages count, and go when the channel does.

use std::time::Duration;

use http_body_util::BodyExt as _;
use tokio::io::AsyncReadExt as _;
use tokio::time::{sleep, timeout};

use super::honest;
use super::peers::{
    PATIENCE, address, cut, fill, get, memory, multiplexed, print_figures, read_out, slow_get,
    status, watched,
};
use crate::support::fleet::{Fleet, resident_kib};
use crate::support::push::Socket;
use crate::support::{Approver, Cluster, until};

const ALICE: &str = "/v1/sse/approvers/alice";
/// The budget of these nodes.
const BUDGET: usize = 64 << 20;

/// A node on which an identity may have two channels, and alice's inbox of large items.
async fn scene() -> (Cluster, Approver) {
    let cluster = Cluster::with(1, |config| {
        config.limits.channels_per_identity = 2;
        config.limits.body_memory_bytes = BUDGET;
        config.push.reoffer_seconds = 600;
    })
    .await;
    let enforcer = cluster.enforcer("build-bot").await;
    fill(&enforcer, "alice", 4).await;
    let approver = cluster.approver("alice").await;
    (cluster, approver)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_approver_opens_many_streams_and_reads_slowly() {
    let cluster = Cluster::start(1).await;
    fill(&cluster.enforcer("build-bot").await, "mallory", 4).await;
    let budget = BUDGET.to_string();
    let settings = [("LIMITS__BODY_MEMORY_BYTES", budget.as_str())];
    let fleet = Fleet::start_with(&cluster.database.url, 1, &settings);
    let (enforcer, approver) = honest(&cluster, &fleet).await;
    let (url, pid) = (&fleet.urls()[0], fleet.pid(0));
    let long = Duration::from_secs(4);
    let without = watched(&enforcer, &approver, pid, long).await;
    let before = resident_kib(pid);

    let mallory = cluster.approver("mallory").await;
    let key = mallory.client.key();
    let attack = async {
        let mut held = Vec::new();
        for _ in 0..120 {
            let mut stream = slow_get(url, "/v1/sse/approvers/mallory", key).await;
            assert_eq!(status(&mut stream).await, 200);
            held.push(stream);
            // Twice as often as the limit on new channels allows.
            sleep(Duration::from_millis(100)).await;
        }
        // A little is read of each, so that none of them seems dead.
        loop {
            for stream in &mut held {
                let mut bytes = [0; 512];
                let _cut = timeout(Duration::from_millis(1), stream.read(&mut bytes)).await;
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    let during = tokio::select! {
        _ = attack => unreachable!("it goes on"),
        during = watched(&enforcer, &approver, pid, Duration::from_secs(12)) => during,
    };
    print_figures("slow event streams", before, &without, &during);
    let most = (BUDGET >> 10) as u64 + (64 << 10);
    assert!(during.most_kib < most, "{} KiB", during.most_kib);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_stream_is_cut_off_and_its_memory_returns() {
    let (cluster, alice) = scene().await;
    let (url, key) = (&cluster.nodes[0].url, alice.client.key());
    let mut first = slow_get(url, ALICE, key).await;
    assert_eq!(status(&mut first).await, 200);
    until("its page counts", PATIENCE, async || {
        memory(&cluster).await > 2_000_000.0
    })
    .await;
    let others = [
        slow_get(url, ALICE, key).await,
        slow_get(url, ALICE, key).await,
    ];
    until("it is cut off", PATIENCE, async || {
        cut(&cluster).await >= 1.0
    })
    .await;
    // The bytes in the kernel's buffers, and no more.
    let read = timeout(PATIENCE, read_out(&mut first, 64 << 10, Duration::ZERO)).await;
    let read = read.expect("it has ended");
    assert!(read < 1_500_000, "{read} bytes");
    drop(others);
    until("all memory returns", PATIENCE, async || {
        memory(&cluster).await < 1.0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_stream_over_http2_is_reset_and_its_connection_goes_on() {
    let (cluster, alice) = scene().await;
    let (url, key) = (&cluster.nodes[0].url, alice.client.key());
    let mut sender = multiplexed(url).await;
    let first = get(&mut sender, key, ALICE).await;
    assert_eq!(first.status(), 200);
    until("its page counts", PATIENCE, async || {
        memory(&cluster).await > 2_000_000.0
    })
    .await;
    let mut body = first.into_body();
    let mut total = 0;
    // A stream that is between two pages ends as it should.
    while total < 100_000 {
        let frame = timeout(PATIENCE, body.frame()).await.expect("a frame");
        total += frame.unwrap().unwrap().into_data().unwrap().len();
    }
    let held = memory(&cluster).await;
    let mut other = multiplexed(url).await;
    let others = [
        get(&mut other, key, ALICE).await,
        get(&mut other, key, ALICE).await,
    ];
    // It ends before it was read, and with an error: the client must not take it for the whole of
    // it.
    until("the others have their pages", PATIENCE, async || {
        memory(&cluster).await >= held * 1.5
    })
    .await;
    let reading = async {
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(frame) => total += frame.into_data().unwrap().len(),
                Err(_) => return Some(total),
            }
            sleep(Duration::from_millis(200)).await;
        }
        None
    };
    let reset = timeout(PATIENCE, reading).await.expect("it ends");
    assert!(reset.is_some_and(|read| read < 2_000_000), "{reset:?}");
    let answer = get(&mut sender, key, "/v1/status").await;
    assert_eq!(answer.status(), 200, "the connection goes on");
    drop((others, other));
    until("all memory returns", PATIENCE, async || {
        memory(&cluster).await < 1.0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_an_old_client_is_cut_off_too() {
    let (cluster, alice) = scene().await;
    let url = &cluster.nodes[0].url;
    let old = async || {
        use tokio::io::AsyncWriteExt as _;
        let mut stream = tokio::net::TcpStream::connect(address(url)).await.unwrap();
        let head = format!(
            "GET {ALICE} HTTP/1.0\r\nauthorization: Bearer {}\r\n\r\n",
            alice.client.key()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    };
    let mut streams = Vec::new();
    for _ in 0..4 {
        let mut stream = old().await;
        assert_eq!(status(&mut stream).await, 200);
        streams.push(stream);
    }
    until("two are cut off", PATIENCE, async || {
        cut(&cluster).await >= 2.0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_stream_is_the_last_answer_of_its_connection_whoever_asks() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let (cluster, alice) = scene().await;
    let url = &cluster.nodes[0].url;
    // An old client that would go on, and one that sends a body.
    for (version, more) in [
        ("1.0", "connection: keep-alive\r\n\r\n"),
        ("1.1", "host: x\r\ncontent-length: 2\r\n\r\n{}"),
        ("1.1", "host: x\r\n\r\n"),
    ] {
        let mut stream = tokio::net::TcpStream::connect(address(url)).await.unwrap();
        let head = format!(
            "GET {ALICE} HTTP/{version}\r\nauthorization: Bearer {}\r\n{more}",
            alice.client.key()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
            let read = timeout(PATIENCE, stream.read_buf(&mut answer)).await;
            assert!(read.expect("an answer").unwrap() > 0, "{more}");
        }
        let answer = String::from_utf8_lossy(&answer).to_lowercase();
        let head = answer.split_once("\r\n\r\n").unwrap().0;
        assert!(head.contains("\r\nconnection: close"), "{head}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_reads_nothing_holds_its_page_only_for_a_while() {
    let cluster = Cluster::with(1, |config| config.push.send_timeout_seconds = 2).await;
    let enforcer = cluster.enforcer("build-bot").await;
    fill(&enforcer, "alice", 4).await;
    let alice = cluster.approver("alice").await;
    let url = &cluster.nodes[0].url;
    let socket = Socket::connect(url, "approver", "alice", alice.client.key()).await;
    let socket = socket.unwrap();
    until("its page counts", PATIENCE, async || {
        memory(&cluster).await > 1_900_000.0
    })
    .await;
    until("its memory returns", PATIENCE, async || {
        memory(&cluster).await < 1.0
    })
    .await;
    drop(socket);
}
