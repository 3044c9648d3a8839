//! A rolling restart under load: exchanges by WebSocket, event stream and long poll go on, no call
//! fails, and nothing is lost or comes twice.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Site;
use crate::support::database::Database;
use crate::support::fleet::{Finally, Fleet, LONG};
use crate::support::push::{By, Persistent};
use crate::support::{Approver, Cluster, Enforcer, compact, request_id, sealed, until};

/// Exchanges under way at once in each lane.
const AT_ONCE: usize = 3;
/// Exchanges in each lane before the next node is restarted.
const BETWEEN: usize = 15;

/// An enforcer and an approver who only know each other, the balancer, and one way to hear from it.
struct Lane {
    enforcer: Enforcer,
    approver: Approver,
    url: String,
    database: Database,
    /// Exchanges that were delivered.
    finished: AtomicUsize,
}

impl Lane {
    async fn new(cluster: &Cluster, name: &str, url: &str) -> Self {
        let enforcer = cluster.enforcer(&format!("bot-{name}")).await;
        let approver = cluster.approver(&format!("human-{name}")).await;
        // Connections that stay open between calls: the balancer keeps some to the nodes, too.
        Self {
            enforcer: enforcer.at(vec![url.to_owned()]),
            approver: approver.at(vec![url.to_owned()]),
            url: url.to_owned(),
            database: cluster.database.clone(),
            finished: AtomicUsize::new(0),
        }
    }

    /// Submits, which must work the first time.
    async fn submit(&self) -> String {
        let request = request_id();
        let submitted = self.enforcer.submit(&request, &self.approver.id, sealed());
        assert_eq!(submitted.await.outcome(), "202");
        request
    }

    /// Decides, which must work the first time.
    async fn decide(&self, request: &str) {
        let decided = self.approver.decide(request, compact("approve"));
        assert_eq!(decided.await.outcome(), "200");
    }

    /// Exchanges by long poll and inbox, one after the other.
    async fn poll(&self, done: &AtomicBool) {
        while !done.load(Ordering::Relaxed) {
            let request = self.submit().await;
            let waiting = async {
                // A node that stops answers its waits with 204: the next one is asked.
                loop {
                    let waited = self.enforcer.wait(&request, 60).await;
                    if waited.status != 204 {
                        return waited.expect(200);
                    }
                }
            };
            let deciding = async {
                assert!(self.approver.inbox_ids().await.contains(&request));
                self.decide(&request).await;
            };
            let (waited, ()) = tokio::join!(waiting, deciding);
            let message = waited.json()["msgId"].as_str().unwrap().to_owned();
            self.enforcer.ack(&request, &message).await.expect(200);
            self.finished.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Exchanges by channels: a few under way at any time.
    async fn push(&self, by: By, done: &AtomicBool) {
        let open =
            |role, id: &str, key: &str| Persistent::new(vec![self.url.clone()], by, role, id, key);
        let submitted = AtomicUsize::new(0);
        let delivered = Mutex::new(HashMap::<String, HashSet<String>>::new());
        let under_way =
            || submitted.load(Ordering::Relaxed) - self.finished.load(Ordering::Relaxed);
        let submitting = async {
            while !done.load(Ordering::Relaxed) {
                submitted.fetch_add(1, Ordering::Relaxed);
                self.submit().await;
                until("decisions arrive", LONG, async || under_way() < AT_ONCE).await;
            }
            until("the rest arrives", LONG, async || under_way() == 0).await;
        };
        let deciding = async {
            let mut channel = open("approver", &self.approver.id, self.approver.client.key());
            let decide = async |message: &Value| {
                if message["msgType"] == "approval.request" {
                    self.decide(message["requestId"].as_str().unwrap()).await;
                }
                false
            };
            channel.run(LONG, decide).await;
        };
        let delivering = async {
            let mut channel = open("enforcer", &self.enforcer.id, self.enforcer.client.key());
            let deliver = async |message: &Value| {
                let text = |name: &str| message[name].as_str().unwrap().to_owned();
                if message["msgType"] == "decision.deliver" {
                    let mut delivered = delivered.lock().unwrap();
                    let messages = delivered.entry(text("requestId")).or_default();
                    messages.insert(text("msgId"));
                    self.finished.store(delivered.len(), Ordering::Relaxed);
                }
                false
            };
            channel.run(LONG, deliver).await;
        };
        let all_acknowledged = async {
            submitting.await;
            let left = format!(
                "select count(*) from exchanges where enforcer_id = '{}' and state <> 'delivered'",
                self.enforcer.id
            );
            until("deliveries are acknowledged", LONG, async || {
                self.database.number(&left).await == 0
            })
            .await;
        };
        tokio::select! {
            () = all_acknowledged => {}
            () = deciding => {}
            () = delivering => {}
        }
        let delivered = delivered.into_inner().unwrap();
        assert!(delivered.values().all(|messages| messages.len() == 1));
    }
}

/// Restarts every node in turn, each once all lanes have got on.
fn roll(mut fleet: Fleet, lanes: &[Lane], done: &AtomicBool) -> Fleet {
    for round in 1..=fleet.nodes.len() {
        let deadline = Instant::now() + LONG;
        let behind = |lane: &Lane| lane.finished.load(Ordering::Relaxed) < BETWEEN * round;
        while lanes.iter().any(behind) && Instant::now() < deadline {
            if done.load(Ordering::Relaxed) {
                return fleet;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        fleet.drain_and_restart(round - 1);
    }
    done.store(true, Ordering::Relaxed);
    fleet
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_restart_behind_haproxy_fails_no_call_and_loses_nothing() {
    let Site {
        cluster,
        fleet,
        balancer,
    } = Site::start(&[], &[]).await;
    let url = balancer.plain_url().await;
    let mut lanes = Vec::new();
    for name in ["socket", "stream", "poll"] {
        lanes.push(Lane::new(&cluster, name, &url).await);
    }
    let lanes: Arc<[Lane]> = lanes.into();
    let done = Arc::new(AtomicBool::new(false));
    let _stop_rolling = Finally(Arc::clone(&done));
    let rolling = {
        let (lanes, done) = (Arc::clone(&lanes), Arc::clone(&done));
        tokio::task::spawn_blocking(move || roll(fleet, &lanes, &done))
    };
    let polling = futures_util::future::join_all((0..AT_ONCE).map(|_| lanes[2].poll(&done)));
    tokio::join!(
        lanes[0].push(By::Socket, &done),
        lanes[1].push(By::Stream, &done),
        polling
    );
    let _fleet = rolling.await.unwrap();

    let finished: usize = lanes
        .iter()
        .map(|lane| lane.finished.load(Ordering::Relaxed))
        .sum();
    assert!(finished >= 3 * 3 * BETWEEN, "there was load: {finished}");
    let expected = format!("decided {finished},delivered {finished},pendingApproval {finished}");
    assert_eq!(cluster.database.transitions().await, expected);
}
