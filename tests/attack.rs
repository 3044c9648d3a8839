//! Callers that mean harm, or are broken: they get their limits, others get their answers, and
//! memory stays bounded.

mod binding;
mod bodies;
mod certificates;
mod connections;
mod deployment;
mod headers;
mod introspection;
mod labels;
mod memory;
mod multiplexed;
mod pairing;
pub mod peers;
mod pings;
mod replay;
mod revoked_tokens;
mod shares;
mod streams;
mod traces;
mod tracks;
mod varying_ids;
mod vouching;

use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::support::fleet::{Fleet, resident_kib};
use crate::support::{Approver, Cluster, Enforcer, compact, crowd, request_id, sealed, with};

/// Honest parties of a fleet, with credentials of a cluster on the same database.
async fn honest(cluster: &Cluster, fleet: &Fleet) -> (Enforcer, Approver) {
    let (enforcer, approver) = (
        cluster.enforcer("honest-bot").await,
        cluster.approver("alice").await,
    );
    (enforcer.at(fleet.urls()), approver.at(fleet.urls()))
}

async fn honest_exchange(enforcer: &Enforcer, approver: &Approver) {
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    approver
        .decide(&request, compact("approve"))
        .await
        .expect(200);
    enforcer.wait(&request, 5).await.expect(200);
}

/// Whole exchanges, one after another, for a while: all must succeed. Says how many, and the
/// slowest.
async fn honest_work(
    enforcer: &Enforcer,
    approver: &Approver,
    long: Duration,
) -> (usize, Duration) {
    let end = Instant::now() + long;
    let (mut count, mut slowest) = (0, Duration::ZERO);
    while Instant::now() < end {
        let began = Instant::now();
        honest_exchange(enforcer, approver).await;
        slowest = slowest.max(began.elapsed());
        count += 1;
        // Slower than any limit: nobody honest is throttled.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    (count, slowest)
}

fn address(fleet: &Fleet) -> String {
    fleet.urls()[0].replace("http://", "")
}

/// Whether the server has ended the connection.
async fn is_let_go(stream: &mut TcpStream) -> bool {
    let mut bytes = [0; 4_096];
    let ended = async {
        while let Ok(count) = stream.read(&mut bytes).await {
            if count == 0 {
                return;
            }
        }
    };
    timeout(Duration::from_secs(20), ended).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn half_open_connections_hold_nobody_up_and_are_let_go() {
    let crowd = crowd(2_000).await;
    let connections = crowd.size;
    let cluster = Cluster::start(1).await;
    let settings = [
        ("SERVER__HEADER_TIMEOUT_SECONDS", "4"),
        ("SERVER__BODY_TIMEOUT_SECONDS", "4"),
        // For those that never say anything.
        ("SERVER__IDLE_TIMEOUT_SECONDS", "8"),
    ];
    let fleet = Fleet::start_with(&cluster.database.url, 1, &settings);
    let (enforcer, approver) = honest(&cluster, &fleet).await;
    honest_work(&enforcer, &approver, Duration::from_millis(200)).await;
    let before = resident_kib(fleet.pid(0));
    let beginning = format!(
        "POST /v1/artifacts HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n",
        enforcer.client.key()
    );
    let slow_body = format!(
        "{beginning}content-type: application/json\r\ncontent-length: 60000\r\n\r\n{{\"msgType\""
    );
    let openings = ["", "PO", beginning.as_str(), slow_body.as_str()];
    let mut held = Vec::new();
    for index in 0..connections {
        let mut stream = TcpStream::connect(address(&fleet)).await.unwrap();
        let opening = openings[index % openings.len()];
        stream.write_all(opening.as_bytes()).await.unwrap();
        held.push(stream);
    }
    let (count, slowest) = honest_work(&enforcer, &approver, Duration::from_secs(2)).await;
    let grown = resident_kib(fleet.pid(0)).saturating_sub(before);
    println!(
        "{connections} half-open connections: {grown} KiB; {count} exchanges beside them, the slowest in {slowest:?}"
    );
    assert!(count > 0);
    assert!(grown < 128 << 10, "{grown} KiB");
    let gone = join_all(held.iter_mut().map(is_let_go)).await;
    assert!(gone.iter().all(|gone| *gone), "all of them are let go");
    honest_work(&enforcer, &approver, Duration::from_millis(200)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_from_one_principal_is_throttled_and_the_others_do_not_notice() {
    let cluster = Cluster::start(1).await;
    let settings = [("RATES__ENABLED", "true"), ("RATES__SUBMISSIONS", "20")];
    let fleet = Fleet::start_with(&cluster.database.url, 1, &settings);
    let (enforcer, approver) = honest(&cluster, &fleet).await;
    let flooder = cluster.enforcer("flood-bot").await;
    let flooder = flooder.at(fleet.urls());
    let before = resident_kib(fleet.pid(0));
    let big = with(
        &sealed(),
        "/ciphertext/data",
        serde_json::json!("x".repeat(64 << 10)),
    );
    let end = Instant::now() + Duration::from_secs(4);
    let flood = join_all((0..32).map(async |_| {
        let (mut taken, mut refused) = (0_usize, 0_usize);
        while Instant::now() < end {
            let answer = flooder.submit(&request_id(), "bob", big.clone()).await;
            match answer.status {
                202 => taken += 1,
                429 => refused += 1,
                _ => panic!("{answer:?}"),
            }
        }
        (taken, refused)
    }));
    let (flooded, (count, slowest)) = futures_util::future::join(
        flood,
        honest_work(&enforcer, &approver, Duration::from_secs(4)),
    )
    .await;
    let (taken, refused) = flooded
        .iter()
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let grown = resident_kib(fleet.pid(0)).saturating_sub(before);
    println!(
        "a flood: {taken} taken, {refused} refused, {grown} KiB; {count} exchanges beside it, the slowest in {slowest:?}"
    );
    // The burst, and twenty a second.
    assert!(taken <= 100 + 20 * 8, "{taken}");
    assert!(refused > 0 && count > 0);
    assert!(grown < 128 << 10, "{grown} KiB");
}

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_share_a_bounded_room_and_small_ones_need_none() {
    let cluster = Cluster::start(1).await;
    let settings = [
        ("LIMITS__BODY_MEMORY_BYTES", "8388608"),
        ("LIMITS__PAGE_BYTES", "4194304"),
        ("SERVER__BODY_TIMEOUT_SECONDS", "8"),
    ];
    let fleet = Fleet::start_with(&cluster.database.url, 1, &settings);
    let (enforcer, approver) = honest(&cluster, &fleet).await;
    let head = format!(
        "POST /v1/artifacts HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: 2097152\r\n\r\n",
        enforcer.client.key()
    );
    let before = resident_kib(fleet.pid(0));
    // Announced, they hold nothing; as they arrive, they do.
    let most = vec![b' '; 2_000_000];
    let mut slow = Vec::new();
    for _ in 0..40 {
        let mut stream = TcpStream::connect(address(&fleet)).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        slow.push(stream);
    }
    let sending = async {
        join_all(slow.iter_mut().map(|stream| stream.write_all(&most))).await;
    };
    // Four of them fill the room; the others are refused once they have waited, and small bodies
    // pass all the while.
    let (_, (count, _)) = futures_util::future::join(
        timeout(Duration::from_secs(4), sending),
        honest_work(&enforcer, &approver, Duration::from_secs(1)),
    )
    .await;
    assert!(count > 0);
    let answers = join_all(slow.iter_mut().map(async |stream| {
        let mut bytes = [0; 12];
        match timeout(Duration::from_secs(5), stream.read_exact(&mut bytes)).await {
            Ok(Ok(_)) => String::from_utf8_lossy(&bytes[9..]).into_owned(),
            _ => String::new(),
        }
    }))
    .await;
    // Those that got part of the room and no more are refused too, and make room; some never read
    // why.
    let refused = answers.iter().filter(|answer| *answer == "503").count();
    let grown = resident_kib(fleet.pid(0)).saturating_sub(before);
    println!("80 MB of slow bodies in 8 MiB of room: {refused} told 503, {grown} KiB");
    assert!(refused >= 5, "{answers:?}");
    assert!(grown < 64 << 10, "{grown} KiB");
    drop(slow);
    let large = with(
        &sealed(),
        "/ciphertext/data",
        serde_json::json!("x".repeat(2 << 20)),
    );
    // A body that waits for room sees only afterwards that its connection is gone, so the room comes
    // back within seconds; until then a large body is told to try again.
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let answer = enforcer.submit(&request_id(), "alice", large.clone()).await;
        if answer.status == 202 {
            break;
        }
        answer.expect(503);
        assert!(Instant::now() < deadline, "the room never came back");
    }
}
