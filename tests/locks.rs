//! Batches that cross each other on two nodes are never a deadlock's victim: their statements wait
//! for no lock on a row.

use std::time::Duration;

use countersign::clock::Clock;
use countersign::protocol::decision::{Decision, SignatureTrust, SigningKey};
use countersign::protocol::envelope::IncomingEnvelope;
use countersign::protocol::id::{
    ApproverId, EnforcerId, MessageId, NodeId, SignerKeyId, TextId as _,
};
use countersign::protocol::signature::PublicKey;
use countersign::store::audit::AuditSource;
use countersign::store::channels::ack::{AckRecipient, AckRow, TakeAcks};
use countersign::store::database::batch_statement::BatchStatement;
use countersign::store::database::busy::RowLock;
use countersign::store::exchanges::decide::{DecisionRow, TakeDecisions};
use futures_util::future::{join, join_all};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::database::finish;
use crate::support::{
    Answer, Approver, Cluster, Enforcer, HASH, compact, now, registration, request_id, sealed,
    signing_key,
};

/// How many deadlocks the database has seen. The nodes are stopped first: a backend reports at its
/// end at the latest.
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

/// One node, and a statement's own view of it.
async fn one_node() -> (Cluster, Enforcer, Approver, Clock, NodeId) {
    let cluster = Cluster::start(1).await;
    let (enforcer, approver) = on(&cluster, 0).await;
    let node = NodeId::parse("here").unwrap();
    (cluster, enforcer, approver, Clock::system(), node)
}

/// Registers a key for the approver alice.
async fn alices_key(cluster: &Cluster, approver: &Approver, clock: &Clock) -> SigningKey {
    let body = registration(&cluster.tenant, "alice", "key-1", &signing_key(1));
    let path = "/platform/v1/approvers/alice/keys/key-1";
    approver.client.put(path, &body).await.expect(200);
    SigningKey {
        id: SignerKeyId::parse("key-1").unwrap(),
        public_key: PublicKey::from_bytes(signing_key(1).verifying_key().as_bytes()).unwrap(),
        not_before: None,
        not_after: None,
        created_at: clock.now(),
        revoked_at: None,
    }
}

/// A decision whose nonce, which counts once, is its request. Alice's is signed; that of others relies on the absence of a key.
fn decision_row(
    cluster: &Cluster,
    approver: &Approver,
    clock: &Clock,
    key: &SigningKey,
    who: &str,
    request: &str,
) -> DecisionRow {
    let text = approver.decision(request, compact("approve")).to_string();
    let document = countersign::protocol::json::parse(text.as_bytes()).unwrap();
    let envelope = IncomingEnvelope::parse(&document, "decision.submit").unwrap();
    let mut decision = Decision::parse(&envelope).unwrap();
    decision.signer_key_id = key.id.clone();
    DecisionRow {
        operation: clock.operation_id(),
        tenant: cluster.tenant.clone(),
        approver: ApproverId::parse(who).unwrap(),
        decision,
        trust: match who {
            "alice" => SignatureTrust::Verified(Box::new(key.clone())),
            _ => SignatureTrust::Unregistered,
        },
        counted: Some(request.to_owned()),
        source: AuditSource::default(),
        message: clock.message_id(),
    }
}

/// Runs a statement while a transaction of the test's own holds this, and returns which rows were
/// busy. It waits for nothing.
async fn busy_beside<F, W: BatchStatement<Fact = RowLock<F>>>(
    cluster: &Cluster,
    held: &str,
    work: &W,
    rows: &[W::Row],
) -> Vec<bool> {
    let mut held = cluster.database.holding(held).await;
    let mut own = cluster.database.connect().await;
    finish(&mut own, "set lock_timeout = '1ms'").await;
    let facts = work.run(&mut own, rows).await.expect("it does not wait");
    finish(&mut held, "rollback").await;
    facts.iter().map(RowLock::is_busy).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_meets_any_lock_is_busy_and_its_neighbours_are_written() {
    let (cluster, enforcer, approver, clock, node) = one_node().await;
    let key = alices_key(&cluster, &approver, &clock).await;
    let register = format!(
        "select pg_advisory_xact_lock(hashtextextended('{}' || chr(10) || 'bob', 0))",
        cluster.tenant
    );
    // As a decision on another node does with its nonce, which here is the request.
    let nonce = format!(
        "select pg_advisory_xact_lock(hashtextextended(concat_ws(chr(10), '{tenant}', 'alice', 'key-1', 'a-4'), 2));
         insert into decision_nonces (tenant_id, approver_id, signer_key_id, nonce, used_at)
         values ('{tenant}', 'alice', 'key-1', 'a-4', clock_timestamp())",
        tenant = cluster.tenant
    );
    let held = [
        (
            "select from exchanges where request_id like 'b-%' for update",
            [false, true, false, false],
        ),
        (
            "select from inbox_items where request_id like 'c-%' for update",
            [false, false, true, false],
        ),
        (
            "select from signing_keys for update",
            [true, true, false, false],
        ),
        (register.as_str(), [false, false, true, true]),
        (nonce.as_str(), [true, false, false, false]),
    ];
    for (turn, (held, expected)) in held.into_iter().enumerate() {
        let work = TakeDecisions {
            clock: clock.clone(),
            node: node.clone(),
            traced: false,
        };
        let requests = ["a", "b", "c", "d"].map(|letter| format!("{letter}-{turn}"));
        // The first two are signed, the others rely on the absence of a key.
        let rows: Vec<DecisionRow> =
            join_all(requests.iter().enumerate().map(async |(index, request)| {
                let who = if index < 2 { "alice" } else { "bob" };
                enforcer.submit(request, who, sealed()).await.expect(202);
                decision_row(&cluster, &approver, &clock, &key, who, request)
            }))
            .await;
        let busy = busy_beside(&cluster, held, &work, &rows).await;
        assert_eq!(busy, expected, "{held}");
        for (request, busy) in requests.iter().zip(busy) {
            let state = if busy { "pendingApproval" } else { "decided" };
            assert_eq!(enforcer.state(request).await, state, "{held}");
        }
        // Then it is free, and the others are known to be this attempt's own.
        let mut own = cluster.database.connect().await;
        let facts = work.run(&mut own, &rows).await.unwrap();
        assert!(facts.iter().all(|fact| !fact.is_busy()), "{held}");
        for request in &requests {
            assert_eq!(enforcer.state(request).await, "decided", "{held}");
        }
    }
    let unknown = "select count(*) from exchange_events where to_state = 'decided'";
    assert_eq!(cluster.database.number(unknown).await, 20, "each once");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exchange_newer_than_the_deciding_statements_snapshot_is_decided_as_it_is_now() {
    let (cluster, enforcer, approver, clock, node) = one_node().await;
    let key = alices_key(&cluster, &approver, &clock).await;
    // The first decision has the statement wait once it has its snapshot and has not locked the second one's exchange.
    let pause =
        "create or replace function has_no_signing_key(tenant text, approver text) returns boolean
                 language sql volatile as $$ select true from pg_advisory_xact_lock(7) $$";
    let mut own = cluster.database.connect().await;
    finish(&mut own, pause).await;
    let mut held = cluster
        .database
        .holding("select pg_advisory_xact_lock(7)")
        .await;
    let asked = [("b-1", "bob"), ("a-1", "alice")];
    for (request, who) in asked {
        enforcer.submit(request, who, sealed()).await.expect(202);
    }
    let rows =
        asked.map(|(request, who)| decision_row(&cluster, &approver, &clock, &key, who, request));
    let work = TakeDecisions {
        clock,
        node,
        traced: false,
    };
    let (facts, ()) = join(work.run(&mut own, &rows), async {
        cluster.database.blocked_in("-- For each row").await;
        let mut other = cluster.database.connect().await;
        let changed = "update exchanges set seq = 7 where request_id = 'a-1'";
        finish(&mut other, changed).await;
        finish(&mut held, "rollback").await;
    })
    .await;
    assert!(facts.unwrap().iter().all(|fact| !fact.is_busy()));
    let seen = "select string_agg(concat_ws(' ', e.request_id, e.state, e.seq, n.nonce), ', ' order by e.request_id)
                  from exchanges e left join decision_nonces n on n.nonce = e.request_id";
    let seen = cluster.database.text(seen).await;
    assert_eq!(seen, "a-1 decided 8 a-1, b-1 decided 2 b-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ack_that_meets_any_lock_is_busy_and_its_neighbours_are_written() {
    let (cluster, enforcer, approver, clock, node) = one_node().await;
    let row = |recipient: AckRecipient, message: &str| AckRow {
        operation: clock.operation_id(),
        tenant: cluster.tenant.clone(),
        recipient,
        message: MessageId(message.parse().unwrap()),
        outcome: None,
        source: AuditSource::default(),
    };
    let held = [
        (
            "select from exchanges where request_id like 'a-%' for update",
            [false, true, false, false],
        ),
        (
            "select from messages where request_id like 'a-%' for update",
            [false, true, false, false],
        ),
        (
            "select from inbox_items where request_id like 'b-%' for update",
            [false, false, true, false],
        ),
    ];
    for (turn, (held, expected)) in held.into_iter().enumerate() {
        let mut rows = Vec::new();
        for letter in ["a", "b"] {
            let request = format!("{letter}-{turn}");
            enforcer
                .submit(&request, "alice", sealed())
                .await
                .expect(202);
            let item = approver.inbox("").await.body("/items/0/msgId");
            let alice = AckRecipient::Approver(ApproverId::parse("alice").unwrap());
            rows.push(row(alice, item.as_str().unwrap()));
            let decided = approver.decide(&request, compact("approve")).await;
            decided.expect(200);
            let message = enforcer.wait(&request, 5).await.expect(200).json()["msgId"].clone();
            let bot = AckRecipient::Enforcer(EnforcerId::parse("build-bot").unwrap());
            rows.push(row(bot, message.as_str().unwrap()));
        }
        let work = TakeAcks {
            clock: clock.clone(),
            node: node.clone(),
            traced: false,
        };
        let busy = busy_beside(&cluster, held, &work, &rows).await;
        assert_eq!(busy, expected, "{held}");
        let acked = format!(
            "select (select count(*) from inbox_items where acked_at is not null and request_id like '%-{turn}')
                  + (select count(*) from messages where acked_at is not null and request_id like '%-{turn}')"
        );
        assert_eq!(cluster.database.number(&acked).await, 3, "{held}");
        let mut own = cluster.database.connect().await;
        let facts = work.run(&mut own, &rows).await.unwrap();
        assert!(facts.iter().all(|fact| !fact.is_busy()), "{held}");
        assert_eq!(cluster.database.number(&acked).await, 4, "{held}");
        assert_eq!(enforcer.state(&format!("a-{turn}")).await, "delivered");
    }
}

/// The table only tells who listens where, so a lock on it delays no exchange.
#[tokio::test(flavor = "multi_thread")]
async fn exchanges_go_on_while_the_table_of_channels_is_locked() {
    let cluster = Cluster::start(2).await;
    let mut lock = cluster.database.connect().await;
    let locked = "begin; lock table channels in access exclusive mode";
    finish(&mut lock, locked).await;
    let begun = Instant::now();
    for node in 0..2 {
        let (enforcer, _) = on(&cluster, node).await;
        let (_, approver) = on(&cluster, 1 - node).await;
        for _ in 0..3 {
            let (request, decision) = (request_id(), compact("approve"));
            let submitted = enforcer.submit(&request, "alice", sealed()).await;
            submitted.expect(202);
            let answer = join(
                enforcer.wait(&request, 20),
                approver.decide(&request, decision),
            );
            let (waited, decided) = answer.await;
            decided.expect(200);
            waited.expect(200);
        }
    }
    // A statement that met the lock would have waited until its limit.
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
    finish(&mut lock, "rollback").await;
}
