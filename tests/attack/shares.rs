//! The memory for bodies and answers: nobody can use up what others need, or keep what they have by
//! reading a byte now and then.

use std::time::Duration;

use countersign::config::Config;
use countersign::store::identity::credential::RoleName;
use futures_util::future::join_all;
use http_body_util::BodyExt as _;
use hyper::client::conn::http2::SendRequest;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use super::honest;
use super::peers::{
    PATIENCE, RequestBody, address, asking, cut, fill, get, memory, multiplexed, print_figures,
    read_out, slow_get, status, watched,
};
use crate::support::fleet::{Fleet, resident_kib};
use crate::support::{Approver, Client, Cluster, Enforcer, until};

const INBOX: &str = "/v1/approvers/alice/inbox";
/// The budget of these nodes: six pages of 8 MB.
const BUDGET: usize = 48 << 20;

fn budget(config: &mut Config) {
    config.limits.body_memory_bytes = BUDGET;
}

/// An enforcer and an approver of another tenant, with a page of large items.
async fn other_tenant(cluster: &Cluster) -> Approver {
    let tenant = cluster
        .administration
        .create_tenant("others")
        .await
        .unwrap();
    let party = async |role, id: &str| {
        let key = cluster.key(&tenant, role, Some(id)).await;
        Client::new(cluster.urls(), Some(&key))
    };
    let enforcer = Enforcer {
        client: party(RoleName::Enforcer, "their-bot").await,
        id: "their-bot".into(),
    };
    fill(&enforcer, "bob", 4).await;
    Approver {
        client: party(RoleName::Approver, "bob").await,
        id: "bob".into(),
    }
}

/// Connections that ask for alice's page and do not read it.
async fn unread_pages(url: &str, key: &str, count: usize) -> Vec<TcpStream> {
    let asking = (0..count).map(async |_| {
        let mut stream = slow_get(url, INBOX, key).await;
        (status(&mut stream).await, stream)
    });
    let asked = join_all(asking).await;
    let held: Vec<_> = asked
        .into_iter()
        .filter(|(status, _)| *status == 200)
        .collect();
    assert!(!held.is_empty(), "some get their page");
    held.into_iter().map(|(_, stream)| stream).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_tenant_asks_for_pages_and_reads_none_of_them() {
    let cluster = Cluster::with(1, budget).await;
    fill(&cluster.enforcer("build-bot").await, "alice", 4).await;
    let bob = other_tenant(&cluster).await;
    bob.inbox("").await.expect(200);
    // Several identities, so that no share of one of them is in the way.
    let mut held = Vec::new();
    for _ in 0..5 {
        let alice = cluster.approver("alice").await;
        let (url, key) = (&cluster.nodes[0].url, alice.client.key());
        let asking = (0..7).map(|_| slow_get(url, INBOX, key));
        let mut streams = join_all(asking).await;
        for stream in &mut streams {
            let status = status(stream).await;
            assert!([200, 503].contains(&status), "{status}");
        }
        held.extend(streams);
    }
    let used = memory(&cluster).await;
    assert!(used > 8_000_000.0, "{used}");
    let mut answers = Vec::new();
    for _ in 0..12 {
        answers.push(bob.inbox("").await.status);
    }
    println!("35 unread pages hold {used} bytes; another tenant's inbox answers {answers:?}");
    assert_eq!(answers, [200; 12]);
    drop(held);
    until("all memory returns", PATIENCE, async || {
        memory(&cluster).await < 1.0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_identity_asks_for_pages_and_its_own_tenant_goes_on() {
    let cluster = Cluster::with(1, budget).await;
    let enforcer = cluster.enforcer("build-bot").await;
    fill(&enforcer, "alice", 4).await;
    fill(&enforcer, "bob", 4).await;
    let (alice, bob) = (
        cluster.approver("alice").await,
        cluster.approver("bob").await,
    );
    let held = unread_pages(&cluster.nodes[0].url, alice.client.key(), 10).await;
    // A page of 8 MB is a sixth of everything: two are the third that one may have.
    assert!(held.len() <= 2, "{} pages", held.len());
    bob.inbox("").await.expect(200);
    alice.inbox("").await.refused(503, "UNAVAILABLE");
    // A call that changes something is not refused for that.
    alice.remove("unknown").await.refused(404, "NOT_FOUND");
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_connections_of_one_tenant_slow_down_nobody_else() {
    let cluster = Cluster::start(1).await;
    fill(&cluster.enforcer("build-bot").await, "alice", 4).await;
    let bytes = (96_usize << 20).to_string();
    let settings = [("LIMITS__BODY_MEMORY_BYTES", bytes.as_str())];
    let fleet = Fleet::start_with(&cluster.database.url, 1, &settings);
    let (enforcer, approver) = honest(&cluster, &fleet).await;
    let (url, pid) = (fleet.urls()[0].clone(), fleet.pid(0));
    let without = watched(&enforcer, &approver, pid, Duration::from_secs(4)).await;
    let before = resident_kib(pid);
    let mallory = cluster.approver("alice").await;
    let key = mallory.client.key().to_owned();
    let attack = join_all((0..35).map(async |_| {
        loop {
            let mut stream = slow_get(&url, INBOX, &key).await;
            let _cut = timeout(
                Duration::from_secs(5),
                read_out(&mut stream, 16 << 10, Duration::from_millis(200)),
            )
            .await;
        }
    }));
    let during = tokio::select! {
        _ = attack => unreachable!("it goes on"),
        during = watched(&enforcer, &approver, pid, Duration::from_secs(10)) => during,
    };
    print_figures("35 slow connections", before, &without, &during);
    let most = (96 << 10) + (64 << 10);
    assert!(during.most_kib < most, "{} KiB", during.most_kib);
}

/// A node that is patient with pauses, and wants a rate.
async fn paced(change: impl Fn(&mut Config)) -> (Cluster, Approver) {
    let cluster = Cluster::with(1, |config| {
        budget(config);
        config.server.write_timeout_seconds = 4;
        change(config);
    })
    .await;
    fill(&cluster.enforcer("build-bot").await, "alice", 4).await;
    let alice = cluster.approver("alice").await;
    (cluster, alice)
}

/// Reads a page at less than 800 KB a second, never pausing for long, and says how much of it came.
async fn trickle(cluster: &Cluster, alice: &Approver) -> usize {
    let (url, key) = (&cluster.nodes[0].url, alice.client.key());
    let mut stream = asking(url, INBOX, key, 64 << 10).await;
    let reading = read_out(&mut stream, 80_000, Duration::from_millis(100));
    timeout(Duration::from_secs(60), reading)
        .await
        .expect("it ends")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_reads_a_little_now_and_then_and_is_let_go() {
    let (cluster, alice) = paced(|config| config.server.min_bytes_per_second = 4_000_000).await;
    let read = trickle(&cluster, &alice).await;
    assert!(read < 8_000_000, "{read} bytes");
    assert!(cut(&cluster).await >= 1.0);
    // At its own pace it may take all the time that it needs.
    let (cluster, alice) = paced(|config| config.server.min_bytes_per_second = 50_000).await;
    assert!(trickle(&cluster, &alice).await > 8_000_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_takes_too_long_in_all_is_cut_off() {
    let (cluster, alice) = paced(|config| {
        config.server.min_bytes_per_second = 0;
        config.server.answer_timeout_seconds = 4;
    })
    .await;
    let read = trickle(&cluster, &alice).await;
    assert!(read < 8_000_000, "{read} bytes");
    assert!(cut(&cluster).await >= 1.0);
    // One stream among others is cut off by itself.
    let mut sender = multiplexed(&cluster.nodes[0].url).await;
    let read = trickle_http2(&mut sender, &alice).await;
    assert!(read < 8_000_000, "{read} bytes");
}

/// The same over HTTP/2, at half that pace.
async fn trickle_http2(sender: &mut SendRequest<RequestBody>, alice: &Approver) -> usize {
    let page = get(sender, alice.client.key(), INBOX).await;
    assert_eq!(page.status(), 200);
    let (mut body, mut total) = (page.into_body(), 0);
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            total += frame.into_data().unwrap().len();
            sleep(Duration::from_millis(40)).await;
        }
    };
    timeout(Duration::from_secs(60), reading)
        .await
        .expect("it ends");
    total
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_http2_is_read_too_slowly_and_is_reset() {
    let (cluster, alice) = paced(|config| config.server.min_bytes_per_second = 4_000_000).await;
    let mut sender = multiplexed(&cluster.nodes[0].url).await;
    let key = alice.client.key();
    let total = trickle_http2(&mut sender, &alice).await;
    assert!(total < 8_000_000, "{total} bytes");
    // Others on the same connection are not concerned.
    let answer = get(&mut sender, key, "/v1/status").await;
    assert_eq!(answer.status(), 200);
    until("all memory returns", PATIENCE, async || {
        memory(&cluster).await < 1.0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_rate_whoever_stops_reading_or_sending_is_not_waited_for() {
    let (cluster, alice) = paced(|config| {
        config.server.min_bytes_per_second = 0;
        config.server.body_timeout_seconds = 120;
    })
    .await;
    // One that has read a part of its answer.
    let mut sender = multiplexed(&cluster.nodes[0].url).await;
    let page = get(&mut sender, alice.client.key(), INBOX).await;
    let mut body = page.into_body();
    body.frame().await.unwrap().unwrap();
    assert!(memory(&cluster).await > 1.0);
    until("all memory returns", PATIENCE, async || {
        memory(&cluster).await < 1.0
    })
    .await;
    // One that has sent a part of its body, over and again with pauses that are not too long.
    let mut stream = TcpStream::connect(address(&cluster.nodes[0].url))
        .await
        .unwrap();
    let head = format!(
        "POST /v1/artifacts HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: 60000\r\n\r\n",
        cluster.enforcer("build-bot").await.client.key()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..2 {
        sleep(Duration::from_secs(6)).await;
        stream.write_all(b" ").await.unwrap();
    }
    let begun = Instant::now();
    assert_eq!(status(&mut stream).await, 400);
    let took = begun.elapsed();
    assert!(took > Duration::from_secs(8), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_comes_byte_by_byte_is_not_waited_for() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let mut stream = TcpStream::connect(address(&cluster.nodes[0].url))
        .await
        .unwrap();
    let head = format!(
        "POST /v1/artifacts HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: 60000\r\n\r\n",
        enforcer.client.key()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let begun = Instant::now();
    let (mut reading, mut writing) = stream.into_split();
    let sending = async {
        while writing.write_all(b" ").await.is_ok() {
            sleep(Duration::from_millis(100)).await;
        }
        std::future::pending::<()>().await;
    };
    let mut line = [0; 12];
    let answered = async {
        use tokio::io::AsyncReadExt as _;
        reading.read_exact(&mut line).await.unwrap();
    };
    tokio::select! {
        () = sending => unreachable!("it goes on"),
        () = answered => {}
    }
    assert_eq!(line, *b"HTTP/1.1 400");
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
}
