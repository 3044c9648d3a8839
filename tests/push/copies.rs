//! Copies of messages in notifications: other nodes send them on without reading a row, and nobody else can read or make one.

use std::time::Duration;

use serde_json::{Value, json};
use sqlx::postgres::PgListener;
use tokio::time::{Instant, timeout};

use super::{approver_socket, enforcer_socket};
use crate::support::push::Socket;
use crate::support::scrape::{scrape, whole};
use crate::support::{Approver, Cluster, Enforcer, compact, request_id, sealed};

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a copy is kept.
const COPY_LIFETIME: Duration = Duration::from_millis(200);

/// Two nodes where neither polls nor repeats bring a message, and what they send each other.
struct Scene {
    cluster: Cluster,
    enforcer: Enforcer,
    approver: Approver,
    listener: PgListener,
}

impl Scene {
    async fn new() -> Self {
        let cluster = Cluster::with(2, |config| {
            config.wake.sweep_ms = 600_000;
            config.push.reoffer_seconds = 600;
            config.push.reoffer_max_seconds = 600;
        })
        .await;
        let mut listener = PgListener::connect(&cluster.database.url).await.unwrap();
        listener.listen("countersign").await.unwrap();
        Self {
            enforcer: cluster.enforcer("build-bot").await,
            approver: cluster.approver("alice").await,
            cluster,
            listener,
        }
    }

    async fn ask(&self) -> String {
        let request = request_id();
        let here = self.enforcer.on(0);
        here.submit(&request, "alice", sealed()).await.expect(202);
        request
    }

    /// The next notification of this kind.
    async fn heard(&mut self, kind: &str) -> String {
        let hearing = async {
            loop {
                let payload = self.listener.recv().await.unwrap().payload().to_owned();
                if payload.starts_with(kind) {
                    return payload;
                }
            }
        };
        timeout(PATIENCE, hearing).await.expect("a notification")
    }

    /// A socket of the approver on the second node, which wants copies, and the first of them, with the request as it was pushed.
    async fn listening(&mut self) -> (Socket, String, Value) {
        let mut socket = approver_socket(&self.cluster, 1, &self.approver).await;
        let copied = async {
            loop {
                let asked = is_asked(&mut socket, &self.ask().await).await;
                let name = asked["msgId"].as_str().unwrap().replace('-', "");
                loop {
                    let payload = self.listener.recv().await.unwrap().payload().to_owned();
                    match payload.split_once(' ') {
                        Some(("n", _)) if payload.contains(&name) => return (payload, asked),
                        Some(("m" | "*", _)) if payload.contains(&name) => break,
                        _ => {}
                    }
                }
            }
        };
        let (copy, asked) = timeout(PATIENCE, copied).await.expect("a copy");
        (socket, copy, asked)
    }

    async fn notify(&self, payload: &str) {
        let sql = format!("select pg_notify('countersign', '{payload}')");
        self.cluster.database.run(&sql).await;
    }

    /// How many copies the second node has heard with this outcome.
    async fn copies(&self, outcome: &str) -> u64 {
        let scrape = scrape(&self.cluster.nodes[1].metrics).await;
        whole(scrape.count("countersign_wake_copies_total", &[("outcome", outcome)]))
    }

    /// How many copies the second node has kept, and how many statements it has run that find messages.
    async fn work(&self) -> (u64, u64) {
        let scrape = scrape(&self.cluster.nodes[1].metrics).await;
        let reads = ["list_unacked", "read_bodies", "read_decision", "claim"].map(|statement| {
            let labels = [("statement", statement)];
            whole(scrape.count("countersign_batch_rows_count", &labels))
        });
        (self.copies("kept").await, reads.iter().sum())
    }
}

async fn is_asked(socket: &mut Socket, request: &str) -> Value {
    let asked = socket.expect_type("approval.request").await;
    assert_eq!(asked["requestId"], request);
    asked
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_goes_to_another_node_without_a_look_at_its_row() {
    let mut scene = Scene::new().await;
    let (mut socket, ..) = scene.listening().await;
    let unread = async {
        loop {
            let (kept, reads) = scene.work().await;
            let asked = is_asked(&mut socket, &scene.ask().await).await;
            // On a busy machine it may take longer than a copy is kept.
            if scene.work().await == (kept + 1, reads) {
                return asked;
            }
        }
    };
    let by_copy = timeout(PATIENCE, unread).await.expect("a copy");
    let mut socket = approver_socket(&scene.cluster, 0, &scene.approver).await;
    let from_row = async {
        loop {
            let asked = socket.expect_type("approval.request").await;
            if asked["msgId"] == by_copy["msgId"] {
                return asked;
            }
        }
    };
    let from_row = timeout(PATIENCE, from_row).await.expect("the same request");
    assert_eq!(by_copy, from_row);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_goes_to_another_node_without_a_look_at_its_row() {
    let scene = Scene::new().await;
    let mut socket = enforcer_socket(&scene.cluster, 1, &scene.enforcer).await;
    let approver = scene.approver.on(0);
    let unread = async {
        loop {
            // The first two make it ask for copies, and the newest channel.
            let mut requests = Vec::new();
            for _ in 0..3 {
                requests.push(scene.ask().await);
            }
            let (mut before, mut last) = (scene.work().await, json!(null));
            for request in &requests {
                before = scene.work().await;
                approver
                    .decide(request, compact("approve"))
                    .await
                    .expect(200);
                last = socket.expect_type("decision.deliver").await;
                assert_eq!(last["requestId"], request.as_str());
            }
            if scene.work().await == (before.0 + 1, before.1) {
                return last;
            }
        }
    };
    let by_copy = timeout(PATIENCE, unread).await.expect("a copy");
    let request = by_copy["requestId"].as_str().unwrap();
    let from_row = scene.enforcer.wait(request, 5).await.expect(200).json();
    assert_eq!(by_copy, from_row);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_role_of_the_database_learns_from_a_copy_who_asks_whom_for_what() {
    let mut scene = Scene::new().await;
    let (_socket, copy, asked) = scene.listening().await;
    let texts = ["alice", "build-bot", "command.review"];
    let request = asked["requestId"].as_str().unwrap();
    let sealed = asked["body"]["ciphertext"]["data"].as_str().unwrap();
    for text in texts.into_iter().chain([request, sealed]) {
        assert!(!copy.contains(text), "{text} in {copy}");
    }
    for word in copy.split([' ', ':']) {
        use base64::Engine as _;
        let bytes = base64::engine::general_purpose::STANDARD_NO_PAD.decode(word);
        let text = String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
        assert!(!text.contains(request), "{text}");
    }
}

/// A role of the database repeats what it has heard, to a channel that has not seen it.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_is_old_brings_nothing() {
    let mut scene = Scene::new().await;
    let (socket, copy, _) = scene.listening().await;
    drop(socket);
    for request in scene.approver.inbox_ids().await {
        let decided = scene.approver.decide(&request, compact("approve")).await;
        decided.expect(200);
    }
    let mut socket = approver_socket(&scene.cluster, 1, &scene.approver).await;
    is_asked(&mut socket, &scene.ask().await).await;
    scene.cluster.pass(COPY_LIFETIME);
    let refused = scene.copies("refused").await;
    scene.notify(&copy).await;
    is_asked(&mut socket, &scene.ask().await).await;
    assert_eq!(scene.copies("refused").await, refused + 1);
}

/// The copy was overtaken: the message came by its row, and was acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_does_not_follow_its_acknowledgement() {
    let mut scene = Scene::new().await;
    let (socket, ..) = scene.listening().await;
    drop(socket);
    let in_time = async {
        loop {
            let begun = Instant::now();
            let request = scene.ask().await;
            let copy = scene.heard("n ").await;
            let message =
                format!("select message_id::text from inbox_items where request_id = '{request}'");
            let message = &scene.cluster.database.text(&message).await;
            scene
                .approver
                .on(1)
                .ack(&request, message)
                .await
                .expect(200);
            let mut socket = approver_socket(&scene.cluster, 1, &scene.approver).await;
            scene.notify(&copy).await;
            let taken = begun.elapsed();
            let last = scene.ask().await;
            loop {
                let asked = socket.expect_type("approval.request").await;
                assert_ne!(asked["requestId"], request.as_str());
                if asked["requestId"] == last.as_str() {
                    break;
                }
            }
            if taken < COPY_LIFETIME {
                return;
            }
        }
    };
    timeout(PATIENCE, in_time).await.expect("a copy in time");
}

/// Not even under the name of another message of the same approver.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_was_changed_is_not_believed() {
    let mut scene = Scene::new().await;
    let (mut socket, copy, asked) = scene.listening().await;
    let other = is_asked(&mut socket, &scene.ask().await).await;
    let name = |message: &Value| message["msgId"].as_str().unwrap().replace('-', "");
    let renamed = copy.replace(&name(&asked), &name(&other));
    let (rest, last) = copy.split_at(copy.len() - 1);
    let changed = format!("{rest}{}", if last == "A" { "B" } else { "A" });
    for (forged, count) in [(renamed, 1), (changed, 2), ("n somebody 1:2:3".into(), 2)] {
        scene.notify(&forged).await;
        is_asked(&mut socket, &scene.ask().await).await;
        assert_eq!(scene.copies("unreadable").await, count, "{forged}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_does_not_follow_its_withdrawal() {
    let mut scene = Scene::new().await;
    let (socket, ..) = scene.listening().await;
    drop(socket);
    let in_time = async {
        loop {
            let kept = scene.copies("kept").await;
            let request = scene.ask().await;
            let copy = scene.heard("n ").await;
            scene.enforcer.withdraw(&request).await.expect(200);
            let mut socket = approver_socket(&scene.cluster, 1, &scene.approver).await;
            loop {
                let withdrawn = socket.expect_type("exchange.withdrawn").await;
                if withdrawn["requestId"] == request.as_str() {
                    break;
                }
            }
            scene.notify(&copy).await;
            let last = scene.ask().await;
            loop {
                let asked = socket.expect_type("approval.request").await;
                assert_ne!(asked["requestId"], request.as_str());
                if asked["requestId"] == last.as_str() {
                    break;
                }
            }
            // Its own, and that of the last one.
            if scene.copies("kept").await == kept + 2 {
                return;
            }
        }
    };
    timeout(PATIENCE, in_time).await.expect("a copy in time");
}
