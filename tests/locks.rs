//! Batches that cross each other on two nodes lock in one order, so that none is ever a deadlock's victim.

use std::time::Duration;

use countersign::clock::Clock;
use countersign::protocol::decision::{Decision, Trust};
use countersign::protocol::envelope::Incoming;
use countersign::protocol::id::{ApproverId, EnforcerId, MessageId, NodeId, TextId as _};
use countersign::store::ack::{AckRecipient, AckRow, TakeAcks};
use countersign::store::batch::BatchStatement;
use countersign::store::decide::{Decide, DecisionRow};
use futures_util::future::{join, join_all};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::database::finish;
use crate::support::{Answer, Approver, Cluster, Enforcer, HASH, compact, now, request_id, sealed};

/// How many deadlocks the database has seen. The nodes are stopped first: a backend reports at its end at the latest.
async fn deadlocks(cluster: Cluster) -> i64 {
    let database = cluster.stop().await;
    let seen = "select deadlocks from pg_stat_database where datname = current_database()";
    database.number(seen).await
}

/// The parties, each through one node alone.
async fn on(cluster: &Cluster, node: usize) -> (Enforcer, Approver) {
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    (enforcer.on(node), approver.on(node))
}

/// An exchange, its decision, and the messages about it.
struct Line {
    request: String,
    decision: Value,
    item: String,
    delivery: Option<String>,
}

/// Exchanges, every second of which is decided already.
async fn lines(enforcer: &Enforcer, approver: &Approver, count: usize) -> Vec<Line> {
    join_all((0..count).map(async |turn| {
        let (request, decision) = (request_id(), compact("approve"));
        enforcer
            .submit(&request, "alice", sealed())
            .await
            .expect(202);
        let mut line = Line {
            request,
            decision,
            item: String::new(),
            delivery: None,
        };
        if turn % 2 == 0 {
            let decided = approver.decide(&line.request, line.decision.clone()).await;
            decided.expect(200);
            let delivery = enforcer.wait(&line.request, 5).await.expect(200);
            line.delivery = Some(delivery.json()["msgId"].as_str().unwrap().to_owned());
        }
        line
    }))
    .await
}

/// One party does one thing to one exchange.
async fn act(enforcer: &Enforcer, approver: &Approver, line: &Line, what: usize) -> Answer {
    match (what % 6, &line.delivery) {
        (0 | 1, _) => approver.decide(&line.request, line.decision.clone()).await,
        (2 | 3, _) => approver.ack(&line.request, &line.item).await,
        (_, Some(delivery)) => enforcer.ack(&line.request, delivery).await,
        (4, None) => enforcer.withdraw(&line.request).await,
        (_, None) => enforcer.status(&line.request).await,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn crossing_batches_of_every_kind_never_deadlock() {
    let cluster = Cluster::start(2).await;
    let sides = [on(&cluster, 0).await, on(&cluster, 1).await];
    let end = Instant::now() + Duration::from_secs(4);
    while Instant::now() < end {
        let mut lines = lines(&sides[0].0, &sides[0].1, 60).await;
        let fresh: Vec<String> = (0..60).map(|_| request_id()).collect();
        let upward = fresh
            .iter()
            .map(|request| sides[0].0.submit(request, "alice", sealed()));
        let downward = fresh
            .iter()
            .rev()
            .map(|request| sides[1].0.submit(request, "alice", sealed()));
        for answer in join_all(upward.chain(downward)).await {
            answer.expect(202);
        }
        // The items' messages, which only the rows still tell once an exchange is decided.
        for line in &mut lines {
            let sql = format!(
                "select message_id::text from inbox_items where request_id = '{}'",
                line.request
            );
            line.item = cluster.database.text(&sql).await;
        }
        let calls = (0..3).flat_map(|turn| {
            let (lines, sides) = (&lines, &sides);
            (0..lines.len()).flat_map(move |index| {
                // One node goes up, the other down, and each mixes what it does.
                [(0, index), (1, lines.len() - 1 - index)].map(|(side, index)| {
                    let (enforcer, approver) = &sides[side];
                    act(enforcer, approver, &lines[index], turn + index + side)
                })
            })
        });
        for answer in join_all(calls).await {
            assert!(answer.status < 500, "{answer:?}");
        }
    }
    assert_eq!(deadlocks(cluster).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledgements_of_prompts_and_of_their_messages_never_deadlock() {
    let cluster = Cluster::start(2).await;
    let sides = [on(&cluster, 0).await, on(&cluster, 1).await];
    let end = Instant::now() + Duration::from_secs(4);
    while Instant::now() < end {
        let mut prompts = Vec::new();
        for _ in 0..40 {
            let prompt = json!({
                "requestId": request_id(), "artifactType": "prompt.send", "createdAt": now(), "target": "tool",
                "ciphertext": { "alg": "a", "data": "d" }, "metadata": { "enforcerId": "build-bot" },
                "promptHashAlg": "SHA-256", "promptHash": HASH,
            });
            let sent = sides[0].1.client.post("/v1/prompt", &prompt).await;
            sent.expect(202);
            let id = prompt["requestId"].as_str().unwrap().to_owned();
            let sql = format!("select message_id::text from prompts where request_id = '{id}'");
            prompts.push((id, cluster.database.text(&sql).await));
        }
        let plain = prompts
            .iter()
            .map(|(id, message)| sides[0].0.ack(id, message));
        let words: Vec<Value> = prompts
            .iter()
            .map(|(id, _)| json!({ "requestId": id, "promptHash": HASH, "status": "queued", "ackAt": now() }))
            .collect();
        let spoken = words
            .iter()
            .map(|word| sides[1].0.client.post("/v1/prompt", word));
        let (plain, spoken) = join(join_all(plain), join_all(spoken)).await;
        for answer in plain.into_iter().chain(spoken) {
            answer.expect(200);
        }
    }
    assert_eq!(deadlocks(cluster).await, 0);
}

/// Runs a statement against a lock on one exchange, and asserts that meanwhile these rows are free.
async fn assert_free_behind<W: BatchStatement>(
    cluster: &Cluster,
    work: &W,
    rows: &[W::Row],
    lock: &str,
    free: &[String],
) {
    let mut held = cluster.database.locking(lock).await;
    let mut own = cluster.database.connect().await;
    let (facts, ()) = join(work.run(&mut own, rows), async {
        cluster.database.blocked(1).await;
        for row in free {
            let sql = format!("select from {row} for no key update nowait");
            cluster.database.run(&sql).await;
        }
        finish(&mut held, "rollback").await;
    })
    .await;
    assert_eq!(facts.expect("it runs once it may").len(), rows.len());
}

/// One node, and a statement's own view of it.
async fn one_node() -> (Cluster, Enforcer, Approver, Clock, NodeId) {
    let cluster = Cluster::start(1).await;
    let (enforcer, approver) = on(&cluster, 0).await;
    let node = NodeId::parse("here").unwrap();
    (cluster, enforcer, approver, Clock::system(), node)
}

#[tokio::test(flavor = "multi_thread")]
async fn decisions_lock_exchanges_by_key_in_whatever_order_they_came() {
    let (cluster, enforcer, approver, clock, node) = one_node().await;
    for turn in ["forth", "back"] {
        let mut requests = ["a", "b", "c", "d"].map(|letter| format!("{letter}-{turn}"));
        let free: Vec<String> = requests[1..]
            .iter()
            .map(|request| format!("exchanges where request_id = '{request}'"))
            .collect();
        let first = requests[0].clone();
        if turn == "back" {
            requests.reverse();
        }
        let rows: Vec<DecisionRow> = join_all(requests.iter().map(async |request| {
            enforcer
                .submit(request, "alice", sealed())
                .await
                .expect(202);
            let text = approver.decision(request, compact("approve")).to_string();
            let document = countersign::protocol::json::parse(text.as_bytes()).unwrap();
            let envelope = Incoming::parse(&document, "decision.submit").unwrap();
            DecisionRow {
                operation: clock.operation_id(),
                tenant: cluster.tenant.clone(),
                approver: ApproverId::parse("alice").unwrap(),
                decision: Decision::parse(&envelope).unwrap(),
                trust: Trust::Unchecked,
                message: clock.message_id(),
            }
        }))
        .await;
        let work = Decide {
            clock: clock.clone(),
            node: node.clone(),
            traced: false,
        };
        assert_free_behind(&cluster, &work, &rows, &first, &free).await;
        for request in &requests {
            assert_eq!(enforcer.state(request).await, "decided");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn acks_lock_exchanges_by_key_and_before_items_and_messages() {
    let (cluster, enforcer, approver, clock, node) = one_node().await;
    let row = |recipient: AckRecipient, message: &str| AckRow {
        operation: clock.operation_id(),
        tenant: cluster.tenant.clone(),
        recipient,
        message: MessageId(message.parse().unwrap()),
    };
    for turn in ["forth", "back", "decisions only"] {
        let mut rows = Vec::new();
        let mut free = Vec::new();
        // Rows lie in the order in which they were made: once against the keys'.
        let mut letters = ["a", "b", "c"];
        if turn == "back" {
            letters.reverse();
        }
        for letter in letters {
            let request = format!("{letter}-{turn}");
            enforcer
                .submit(&request, "alice", sealed())
                .await
                .expect(202);
            let item = approver.inbox("").await.body("/items/0/msgId");
            let alice = AckRecipient::Approver(ApproverId::parse("alice").unwrap());
            if turn != "decisions only" {
                rows.push(row(alice, item.as_str().unwrap()));
            }
            let decided = approver.decide(&request, compact("approve")).await;
            decided.expect(200);
            let message = enforcer.wait(&request, 5).await.expect(200).json()["msgId"].clone();
            let bot = AckRecipient::Enforcer(EnforcerId::parse("build-bot").unwrap());
            rows.push(row(bot, message.as_str().unwrap()));
            if letter != "a" {
                free.push(format!("exchanges where request_id = '{request}'"));
            }
            free.push(format!("inbox_items where request_id = '{request}'"));
            free.push(format!("messages where request_id = '{request}'"));
        }
        let work = TakeAcks {
            clock: clock.clone(),
            node: node.clone(),
            traced: false,
        };
        let first = format!("a-{turn}");
        assert_free_behind(&cluster, &work, &rows, &first, &free).await;
        assert_eq!(enforcer.state(&first).await, "delivered");
    }
}
