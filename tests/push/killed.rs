//! Nodes killed without a word, over and over, under a thousand exchanges: every one is decided and
//! delivered, once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::support::exchanges::parties;
use crate::support::fleet::{Finally, Fleet, LONG};
use crate::support::push::{By, Persistent};
use crate::support::{Answer, Cluster, compact, request_id, sealed};

const EXCHANGES: usize = 1_000;

/// Calls until a node answers with something that is final.
async fn stubbornly(call: impl AsyncFn() -> Result<Answer, reqwest::Error>) -> Answer {
    loop {
        if let Ok(answer) = call().await
            && answer.status != 503
        {
            return answer;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_exchanges_survive_nodes_that_are_killed_all_the_time() {
    let cluster = Cluster::start(1).await;
    let (enforcer, approver) = parties(&cluster).await;
    let fleet = Fleet::start(&cluster.database.url, 3);
    let urls = fleet.urls();
    let (enforcer, approver) = (enforcer.at(urls.clone()), approver.at(urls.clone()));
    let done = Arc::new(AtomicBool::new(false));
    let _stop_killing = Finally(Arc::clone(&done));

    let killing = {
        let done = Arc::clone(&done);
        tokio::task::spawn_blocking(move || {
            let mut fleet = fleet;
            let mut kills = 0;
            while !done.load(Ordering::Relaxed) {
                // At random moments, far enough apart that there is something to interrupt.
                std::thread::sleep(countersign::jitter::below(Duration::from_secs(2)));
                fleet.kill_and_restart(kills % 3);
                kills += 1;
            }
            kills
        })
    };
    let submitting = stream::iter(0..EXCHANGES).for_each_concurrent(16, |_| async {
        let request = request_id();
        let submission = enforcer.submission(&request, "alice", sealed());
        let call = async || {
            enforcer
                .client
                .call(reqwest::Method::POST, "/v1/artifacts")
                .json(&submission)
                .try_send()
                .await
        };
        stubbornly(call).await.expect(202);
    });
    let decided = AtomicUsize::new(0);
    let deciding = async {
        let mut channel = Persistent::new(
            urls.clone(),
            By::Stream,
            "approver",
            &approver.id,
            approver.client.key(),
        );
        channel
            .run(LONG, async |message: &Value| {
                if message["msgType"] == "approval.request" {
                    let request = message["requestId"].as_str().unwrap();
                    let decision = approver.decision(request, compact("approve"));
                    let call = async || {
                        approver
                            .client
                            .call(reqwest::Method::POST, "/v1/decisions")
                            .json(&decision)
                            .try_send()
                            .await
                    };
                    stubbornly(call).await.expect(200);
                    decided.fetch_add(1, Ordering::Relaxed);
                }
                decided.load(Ordering::Relaxed) == EXCHANGES
            })
            .await;
    };
    let delivered = Mutex::new(HashMap::<String, HashSet<String>>::new());
    let delivering = async {
        let mut channel = Persistent::new(
            urls.clone(),
            By::Socket,
            "enforcer",
            &enforcer.id,
            enforcer.client.key(),
        );
        channel
            .run(LONG, async |message: &Value| {
                let text = |name: &str| message[name].as_str().unwrap().to_owned();
                let mut delivered = delivered.lock().await;
                if message["msgType"] == "decision.deliver" {
                    delivered
                        .entry(text("requestId"))
                        .or_default()
                        .insert(text("msgId"));
                }
                delivered.len() == EXCHANGES
            })
            .await;
        // The last acks may have been lost with their node: what comes again is acknowledged again.
        let undelivered = "select count(*) from exchanges where state <> 'delivered'";
        while cluster.database.number(undelivered).await > 0 {
            let more = timeout(Duration::from_millis(200), channel.next());
            if let Ok(message) = more.await
                && message["msgType"] == "decision.deliver"
            {
                channel.ack(&message).await;
            }
        }
    };
    let all = Box::pin(async { tokio::join!(submitting, deciding, delivering) });
    timeout(LONG, all).await.expect("all of them end");
    done.store(true, Ordering::Relaxed);
    let kills = killing.await.unwrap();
    assert!(kills > 3, "nodes were killed: {kills}");

    assert!(
        delivered
            .lock()
            .await
            .values()
            .all(|messages| messages.len() == 1),
        "one message for each decision"
    );
    let expected = format!("decided {EXCHANGES},delivered {EXCHANGES},pendingApproval {EXCHANGES}");
    assert_eq!(
        cluster.database.transitions().await,
        expected,
        "nothing lost, nothing twice"
    );
}
