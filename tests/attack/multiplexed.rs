//! Many streams on one connection: what is small by itself is not free a hundred times over.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use super::honest;
use super::peers::{
    PATIENCE, get, memory, multiplexed, print_figures, slow_get, status, unfinished, watched,
};
use crate::support::fleet::{Fleet, resident_kib};
use crate::support::{Approver, Cluster, Enforcer, compact, request_id, sealed, until, with};

fn submission(key: &str, bytes: usize) -> hyper::Request<super::peers::RequestBody> {
    hyper::Request::post("http://node/v1/artifacts")
        .header("authorization", format!("Bearer {key}"))
        .header("content-type", "application/json")
        .body(unfinished(bytes))
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_small_bodies_at_once_are_counted() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    // Also bodies that would be free if each had a connection to itself.
    for (bytes, counted) in [(60 << 10, 5_500_000.0), (8 << 10, 790_000.0)] {
        let mut sender = multiplexed(&cluster.nodes[0].url).await;
        let calls: Vec<_> = (0..100)
            .map(|_| sender.send_request(submission(enforcer.client.key(), bytes)))
            .collect();
        let calls = tokio::spawn(join_all(calls));
        until("all but a few bytes count", PATIENCE, async || {
            memory(&cluster).await > counted
        })
        .await;
        calls.abort();
        drop(sender);
        until("all memory returns", PATIENCE, async || {
            memory(&cluster).await < 1.0
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn small_bodies_on_many_connections_stay_within_the_memory() {
    let cluster = Cluster::start(1).await;
    let settings = [("LIMITS__BODY_MEMORY_BYTES", "33554432")];
    let fleet = Fleet::start_with(&cluster.database.url, 1, &settings);
    let (enforcer, approver) = honest(&cluster, &fleet).await;
    let (url, pid) = (&fleet.urls()[0], fleet.pid(0));
    let without = watched(&enforcer, &approver, pid, Duration::from_secs(4)).await;
    let before = resident_kib(pid);
    let mallory = cluster.enforcer("mallory").await;
    let key = mallory.client.key();
    let attack = async |bytes: usize| {
        let flood = join_all((0..40).map(async |_| {
            loop {
                let mut sender = multiplexed(url).await;
                let calls = (0..100).map(|_| sender.send_request(submission(key, bytes)));
                drop(join_all(calls.collect::<Vec<_>>()).await);
            }
        }));
        tokio::select! {
            _ = flood => unreachable!("it goes on"),
            during = watched(&enforcer, &approver, pid, Duration::from_secs(8)) => during,
        }
    };
    // First the memory of the requests alone, then with bodies of 240 MB, if all of them were
    // taken.
    let requests = attack(100).await;
    let during = attack(60 << 10).await;
    print_figures("4,000 small bodies over HTTP/2", before, &without, &during);
    let bodies = during.most_kib.saturating_sub(requests.most_kib);
    println!(
        "requests take {} MiB at most, their bodies {} MiB",
        requests.most_kib >> 10,
        bodies >> 10
    );
    assert!(bodies < 64 << 10, "{bodies} KiB");
}

/// Decided exchanges whose decisions have so many bytes.
async fn decided(
    enforcer: &Enforcer,
    approver: &Approver,
    count: usize,
    bytes: usize,
) -> Vec<String> {
    let mut requests = Vec::new();
    for _ in 0..count {
        let request = request_id();
        let taken = enforcer.submit(&request, "alice", sealed()).await;
        taken.expect(202);
        let decision = with(&compact("approve"), "/reason", json!("x".repeat(bytes)));
        approver.decide(&request, decision).await.expect(200);
        requests.push(request);
    }
    requests
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_to_waits_that_nobody_reads_are_counted_and_let_go() {
    let cluster = Cluster::with(1, |config| config.server.write_timeout_seconds = 3).await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    let requests = decided(&enforcer, &approver, 4, 100_000).await;
    let mut sender = multiplexed(&cluster.nodes[0].url).await;
    let mut unread = Vec::new();
    for turn in 0..40 {
        let path = format!("/v1/exchanges/{}/wait?timeout=5", requests[turn % 4]);
        let answer = get(&mut sender, enforcer.client.key(), &path).await;
        assert_eq!(answer.status(), 200);
        unread.push(answer);
    }
    until("they count", PATIENCE, async || {
        memory(&cluster).await > 3_900_000.0
    })
    .await;
    until("their memory returns", PATIENCE, async || {
        memory(&cluster).await < 1.0
    })
    .await;
    drop(unread);
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_answers_that_nobody_reads_are_counted_too() {
    let cluster = Cluster::with(1, |config| {
        config.limits.body_memory_bytes = 32 << 20;
    })
    .await;
    let enforcers = format!(
        "insert into enforcers (tenant_id, enforcer_id, label, transport, called_at, seen_at)
         select '{}', 'bot-' || n, repeat('x', 100), 'poll', now(), now() from generate_series(1, 10000) n",
        cluster.tenant
    );
    cluster.database.run(&enforcers).await;
    let (alice, bob) = (
        cluster.approver("alice").await,
        cluster.approver("bob").await,
    );
    let (url, list) = (&cluster.nodes[0].url, "/v1/presence/enforcers");
    let mut held = Vec::new();
    loop {
        let mut stream = slow_get(url, list, alice.client.key()).await;
        if status(&mut stream).await == 503 {
            break;
        }
        held.push(stream);
        assert!(held.len() < 20, "never refused");
    }
    let used = memory(&cluster).await;
    println!("{} unread lists hold {used} bytes", held.len());
    assert!(used > 1_000_000.0, "{used}");
    bob.client.get("/v1/presence/enforcers").await.expect(200);
    drop(held);
    until("all memory returns", PATIENCE, async || {
        memory(&cluster).await < 1.0
    })
    .await;
}
