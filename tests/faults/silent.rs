//! A network that drops packets without a word: connections to PostgreSQL that nobody answers on,
//! and nobody closes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use countersign::config::Secret;
use futures_util::future::join_all;
use serde_json::Value;

use super::becomes_ready;
use crate::support::database::Database;
use crate::support::proxy::Proxy;
use crate::support::push::{By, Persistent};
use crate::support::{
    Answer, Approver, Client, Cluster, Enforcer, compact, request_id, sealed, until,
};

/// How long anything may take that goes on in spite of the silence. Many times what it should take;
/// without an end to the wait for an answer it would be forever.
const PATIENCE: Duration = Duration::from_secs(60);

/// Nodes that reach PostgreSQL through a proxy, also to listen, and give up on a statement after a
/// second.
async fn scene(nodes: usize) -> (Cluster, Proxy) {
    let database = Database::create().await;
    let proxy = Proxy::start(&database.url).await;
    let cluster = Cluster::on(database, nodes, |config| {
        config.database.url = Secret::from(proxy.url.as_str());
        config.database.statement_timeout_ms = 1_000;
    })
    .await;
    (cluster, proxy)
}

/// Calls as a client should: a 503 is to be tried again. The row may be locked, until the server
/// ends the transaction of a connection that it does not know to be silent.
async fn retried(call: impl AsyncFn() -> Answer) -> Answer {
    let begun = Instant::now();
    loop {
        let answer = call().await;
        if answer.status != 503 || begun.elapsed() > PATIENCE {
            return answer;
        }
        assert_eq!(answer.body("/retryable"), true);
    }
}

/// Opens the connections that a node makes under load.
async fn warm(approver: &Approver) {
    for answer in join_all((0..20).map(|_| approver.inbox(""))).await {
        answer.expect(200);
    }
}

/// One enforcer and one approver, who poll, one exchange after the other.
async fn poll(enforcer: &Enforcer, approver: &Approver, count: usize, finished: &AtomicUsize) {
    for _ in 0..count {
        let (request, body) = (request_id(), sealed());
        let submitted =
            retried(async || enforcer.submit(&request, &approver.id, body.clone()).await);
        // A submission that was written, and then refused with 503, is found again.
        assert!(["202", "202 duplicate"].contains(&submitted.await.outcome().as_str()));
        let waiting = async {
            loop {
                let waited = retried(async || enforcer.wait(&request, 60).await).await;
                if waited.status != 204 {
                    return waited.expect(200);
                }
            }
        };
        let deciding = async {
            let listed = retried(async || approver.inbox("?limit=200").await).await;
            assert!(listed.expect(200).text.contains(&request));
            let decision = compact("approve");
            let decided = retried(async || approver.decide(&request, decision.clone()).await).await;
            assert!(["200", "200 duplicate"].contains(&decided.outcome().as_str()));
        };
        let (waited, ()) = tokio::join!(waiting, deciding);
        let message = waited.json()["msgId"].as_str().unwrap().to_owned();
        let acked = retried(async || enforcer.ack(&request, &message).await).await;
        acked.expect(200);
        finished.fetch_add(1, Ordering::Relaxed);
    }
}

/// One enforcer and one approver, who are told over channels.
async fn push(
    database: &Database,
    enforcer: &Enforcer,
    approver: &Approver,
    count: usize,
    finished: &AtomicUsize,
) {
    let urls = vec![
        enforcer.client.url(0).to_owned(),
        enforcer.client.url(1).to_owned(),
    ];
    let submitting = async {
        for done in 0..count {
            let (request, body) = (request_id(), sealed());
            let submitted =
                retried(async || enforcer.submit(&request, &approver.id, body.clone()).await);
            submitted.await.expect(202);
            until("the decision is pushed", PATIENCE, async || {
                finished.load(Ordering::Relaxed) > done
            })
            .await;
        }
        // An ack that was lost is sent again when the decision is.
        let left = format!(
            "select count(*) from exchanges where enforcer_id = '{}' and state <> 'delivered'",
            enforcer.id
        );
        until("every ack is written", PATIENCE, async || {
            database.number(&left).await == 0
        })
        .await;
    };
    let deciding = async {
        let key = approver.client.key();
        let mut channel = Persistent::new(urls.clone(), By::Socket, "approver", &approver.id, key);
        let decide = async |message: &Value| {
            if message["msgType"] == "approval.request" {
                let request = message["requestId"].as_str().unwrap();
                let decision = compact("approve");
                let decided =
                    retried(async || approver.decide(request, decision.clone()).await).await;
                decided.expect(200);
            }
            false
        };
        channel.run(2 * PATIENCE, decide).await;
    };
    let delivering = async {
        let key = enforcer.client.key();
        let mut channel = Persistent::new(urls.clone(), By::Stream, "enforcer", &enforcer.id, key);
        let deliver = async |message: &Value| {
            if message["msgType"] == "decision.deliver" {
                finished.fetch_add(1, Ordering::Relaxed);
            }
            false
        };
        channel.run(2 * PATIENCE, deliver).await;
    };
    tokio::select! {
        () = submitting => {}
        () = deciding => {}
        () = delivering => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_are_given_up_and_nothing_is_lost_or_done_twice() {
    const EACH: usize = 12;
    let (cluster, proxy) = scene(2).await;
    let mut people = Vec::new();
    for lane in 0..4 {
        let enforcer = cluster.enforcer(&format!("bot-{lane}")).await;
        people.push((enforcer, cluster.approver(&format!("human-{lane}")).await));
    }
    warm(&people[0].1).await;
    let finished: Vec<_> = people.iter().map(|_| AtomicUsize::new(0)).collect();
    let silencing = async {
        for round in 1..=3 {
            until("every lane gets on", PATIENCE, async || {
                let goal = round * EACH / 4;
                finished
                    .iter()
                    .all(|lane| lane.load(Ordering::Relaxed) >= goal)
            })
            .await;
            proxy.silence();
        }
    };
    let (polls, pushes) = people.split_at(2);
    let polling = join_all(
        (polls.iter().zip(&finished))
            .map(|((enforcer, approver), finished)| poll(enforcer, approver, EACH, finished)),
    );
    let pushing = join_all((pushes.iter().zip(&finished[2..])).map(
        |((enforcer, approver), finished)| {
            push(&cluster.database, enforcer, approver, EACH, finished)
        },
    ));
    tokio::join!(silencing, polling, pushing);

    let all = people.len() * EACH;
    let expected = format!("decided {all},delivered {all},pendingApproval {all}");
    assert_eq!(cluster.database.transitions().await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_drops_everything_means_503_in_time_and_soon_afterwards_all_is_well() {
    let (cluster, proxy) = scene(1).await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    warm(&approver).await;
    let client = cluster.client(None);
    becomes_ready(&client, 200).await;
    proxy.swallow_up(true);
    proxy.swallow_down(true);

    let (request, body) = (request_id(), sealed());
    let calls = async {
        let submitted = enforcer.submit(&request, "alice", body.clone());
        let (submitted, read) = tokio::join!(submitted, approver.inbox(""));
        submitted.refused(503, "UNAVAILABLE");
        read.refused(503, "UNAVAILABLE");
    };
    let health = async {
        becomes_ready(&client, 503).await;
        // Everyone who asks is answered within a second, also those who ask at the same time; the
        // slowest of them later, if the machine is busy.
        let mut times = Vec::new();
        for _ in 0..4 {
            for (status, took) in join_all((0..5).map(|_| timed(&client))).await {
                assert_eq!(status, 503);
                times.push(took);
            }
        }
        times.sort();
        assert!(times[times.len() / 2] < Duration::from_secs(1), "{times:?}");
        assert!(times[times.len() - 1] < Duration::from_secs(5), "{times:?}");
    };
    tokio::time::timeout(PATIENCE, async { tokio::join!(calls, health) })
        .await
        .expect("answered in time");

    proxy.swallow_up(false);
    proxy.swallow_down(false);
    becomes_ready(&client, 200).await;
    let submitted = enforcer.submit(&request, "alice", body).await;
    submitted.expect(202);
    assert_eq!(approver.inbox_ids().await, [request]);
}

/// The answer of `/readyz`, and how long it took.
async fn timed(client: &Client) -> (u16, Duration) {
    let asked = Instant::now();
    let status = client.get("/readyz").await.status;
    (status, asked.elapsed())
}
