//! One locked row does not stop the others: calls that need it are refused after a while or succeed
//! once it is free, and all other calls go on meanwhile.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::{join, join_all};
use serde_json::json;
use sqlx::PgConnection;

use crate::support::collector::hex;
use crate::support::database::finish;
use crate::support::{
    Answer, Approver, Cluster, Enforcer, compact, counts, crowd, registration, request_id, sealed,
    sealed_for, signed, signing_key, tally, until,
};

/// Calls about others that must go through meanwhile.
const OTHERS: usize = 120;

/// Two nodes that try a locked row for half a second, and two parties.
async fn scene() -> (Cluster, Enforcer, Approver) {
    trying_for(500).await
}

/// The same, for this many milliseconds.
async fn trying_for(lock_timeout_ms: u64) -> (Cluster, Enforcer, Approver) {
    let cluster = Cluster::with(2, |config| {
        config.database.lock_timeout_ms = lock_timeout_ms;
        config.database.statement_timeout_ms = 30_000;
    })
    .await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    (cluster, enforcer, approver)
}

async fn pending(enforcer: &Enforcer, count: usize) -> Vec<String> {
    let requests: Vec<String> = (0..count).map(|_| request_id()).collect();
    let submit = |request: &String| {
        let request = request.clone();
        async move { enforcer.submit(&request, "alice", sealed()).await }
    };
    for answer in join_all(requests.iter().map(submit)).await {
        answer.expect(202);
    }
    requests
}

/// Three clients that repeat the stuck call until all others are through; returns what they were
/// told, and the others.
async fn beside_three_clients<S: Future<Output = Answer>, O: Future<Output = Answer>>(
    stuck: impl Fn() -> S,
    others: impl IntoIterator<Item = O>,
) -> (Vec<Answer>, Vec<Answer>) {
    let (tried, over) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let client = async || {
        let mut answers = Vec::new();
        while over.load(Ordering::Relaxed) == 0 || answers.is_empty() {
            tried.fetch_add(1, Ordering::Relaxed);
            answers.push(stuck().await);
        }
        answers
    };
    let others = async {
        until("all three try", Duration::from_secs(5), async || {
            tried.load(Ordering::Relaxed) >= 3
        })
        .await;
        let mut answers = Vec::new();
        let mut others = others.into_iter().peekable();
        while others.peek().is_some() {
            answers.extend(join_all(others.by_ref().take(20)).await);
        }
        over.store(1, Ordering::Relaxed);
        answers
    };
    let (stuck, others) = join(join_all([client(), client(), client()]), others).await;
    (stuck.into_iter().flatten().collect(), others)
}

fn all_refused(answers: &[Answer]) {
    assert_eq!(tally(answers), counts([("503 UNAVAILABLE", answers.len())]));
}

#[tokio::test(flavor = "multi_thread")]
async fn submissions_do_not_wait_for_the_record_of_who_was_asked() {
    let (cluster, enforcer, _) = trying_for(20_000).await;
    cluster.approver("bob").await;
    pending(&enforcer, 1).await;
    let day = Duration::from_secs(24 * 3_600);
    let submit = async |approver: &str| {
        let submit = join_all((0..20).map(async |_| {
            let life = sealed_for(3 * day);
            enforcer.submit(&request_id(), approver, life).await
        }));
        let answers = tokio::time::timeout(Duration::from_secs(10), submit).await;
        let answers = answers.expect("it waits for nobody");
        assert_eq!(tally(&answers), counts([("202", 20)]));
    };
    let asked = "select string_agg(approver_id || ' ' || (asked_at > clock_timestamp() + interval '12 hours')::text, ','
                                    order by approver_id)
                   from asked_approvers";
    // Due to be renewed.
    cluster.pass(day + Duration::from_secs(60));
    let lock = "select from asked_approvers where approver_id = 'alice' for update";
    let mut lock = cluster.database.holding(lock).await;
    // As a submission on another node, before it commits.
    let insert = format!(
        "select pg_advisory_xact_lock(hashtextextended(concat_ws(chr(10), '{0}', 'bob', 'build-bot'), 3));
         insert into asked_approvers (tenant_id, approver_id, enforcer_id, asked_at)
         values ('{0}', 'bob', 'build-bot', clock_timestamp())",
        cluster.tenant
    );
    let mut insert = cluster.database.holding(&insert).await;
    for approver in ["alice", "bob", "carol"] {
        submit(approver).await;
    }
    assert_eq!(cluster.database.text(asked).await, "alice false,carol true");
    finish(&mut lock, "rollback").await;
    finish(&mut insert, "rollback").await;
    for approver in ["alice", "bob"] {
        submit(approver).await;
    }
    let all = "alice true,bob true,carol true";
    assert_eq!(cluster.database.text(asked).await, all);
}

#[tokio::test(flavor = "multi_thread")]
async fn decisions_go_on_while_one_exchange_is_locked() {
    let (cluster, enforcer, approver) = scene().await;
    // Without keys, and with one.
    for key in [None, Some(signing_key(1))] {
        if let Some(key) = &key {
            let body = registration(&cluster.tenant, "alice", "key-1", key);
            let path = "/platform/v1/approvers/alice/keys/key-1";
            approver.client.put(path, &body).await.expect(200);
        }
        let decide = async |request: String| {
            let decision = compact("approve");
            let decision = match &key {
                Some(key) => signed(decision, key),
                None => decision,
            };
            approver.decide(&request, decision).await
        };
        let locked = pending(&enforcer, 1).await.remove(0);
        let others = pending(&enforcer, OTHERS).await;
        let mut lock = cluster.database.locking(&locked).await;
        let (stuck, others) =
            beside_three_clients(|| decide(locked.clone()), others.into_iter().map(&decide)).await;
        assert_eq!(tally(&others), counts([("200", OTHERS)]));
        all_refused(&stuck);
        let (answer, ()) = join(decide(locked.clone()), async {
            finish(&mut lock, "rollback").await;
        })
        .await;
        answer.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_calls_about_one_locked_exchange_holds_up_no_other() {
    let (cluster, enforcer, approver) = scene().await;
    let locked = pending(&enforcer, 1).await.remove(0);
    let others = pending(&enforcer, OTHERS).await;
    let _lock = cluster.database.locking(&locked).await;
    let approver = approver.on(0);
    let crowd = crowd(700).await;
    let flood = join_all((0..crowd.size).map(|_| approver.decide(&locked, compact("approve"))));
    let others = async {
        cluster.busy("decide").await;
        let others = others
            .iter()
            .map(|request| approver.decide(request, compact("reject")));
        join_all(others).await
    };
    let (flood, others) = join(flood, others).await;
    assert_eq!(tally(&others), counts([("200", OTHERS)]));
    all_refused(&flood);
}

#[tokio::test(flavor = "multi_thread")]
async fn acks_go_on_while_one_exchange_is_locked() {
    let (cluster, enforcer, approver) = scene().await;
    let requests = pending(&enforcer, OTHERS + 1).await;
    let messages = join_all(requests.iter().map(async |request| {
        approver
            .decide(request, compact("approve"))
            .await
            .expect(200);
        let delivery = enforcer.wait(request, 5).await.expect(200);
        (
            request.clone(),
            delivery.json()["msgId"].as_str().unwrap().to_owned(),
        )
    }))
    .await;
    let ack = async |(request, message): (String, String)| enforcer.ack(&request, &message).await;
    let (locked, others) = messages.split_first().unwrap();
    let mut lock = cluster.database.locking(&locked.0).await;
    let (stuck, others) =
        beside_three_clients(|| ack(locked.clone()), others.iter().cloned().map(&ack)).await;
    assert_eq!(tally(&others), counts([("200", OTHERS)]));
    all_refused(&stuck);
    let (answer, ()) = join(ack(locked.clone()), async {
        finish(&mut lock, "rollback").await;
    })
    .await;
    answer.expect(200);
    assert_eq!(enforcer.state(&locked.0).await, "delivered");
}

#[tokio::test(flavor = "multi_thread")]
async fn withdrawals_and_refreshes_of_a_locked_exchange_hold_no_connection() {
    let cluster = Cluster::with(1, |config| {
        config.database.pool_size = 2;
        config.database.lock_timeout_ms = 20_000;
        config.database.statement_timeout_ms = 30_000;
    })
    .await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    let locked = pending(&enforcer, 1).await.remove(0);
    let others = pending(&enforcer, 20).await;
    let mut lock = cluster.database.locking(&locked).await;
    let withdrawals = join_all((0..3).map(|_| enforcer.withdraw(&locked)));
    let refreshes = join_all((0..3).map(|_| approver.refresh(&locked, json!({}))));
    let others = async {
        cluster.busy("end_exchange").await;
        cluster.busy("refresh").await;
        let answers = join_all(others.iter().map(|request| enforcer.withdraw(request))).await;
        finish(&mut lock, "rollback").await;
        answers
    };
    let (withdrawals, refreshes, others) = tokio::join!(withdrawals, refreshes, others);
    assert_eq!(tally(&others), counts([("200", 20)]));
    let withdrawn = counts([("200", 1), ("409 INVALID_STATE", 2)]);
    assert_eq!(tally(&withdrawals), withdrawn, "once it is free");
    for answer in refreshes {
        // Before the withdrawal or after it.
        assert!([202, 409].contains(&answer.status), "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn removals_of_a_locked_item_hold_no_connection() {
    let cluster = Cluster::with(1, |config| {
        config.database.pool_size = 2;
        config.database.lock_timeout_ms = 20_000;
        config.database.statement_timeout_ms = 30_000;
    })
    .await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    let locked = pending(&enforcer, 1).await.remove(0);
    let others = pending(&enforcer, 20).await;
    let lock = format!("select from inbox_items where request_id = '{locked}' for update");
    let mut lock = cluster.database.holding(&lock).await;
    let removals = join_all((0..3).map(|_| approver.remove(&locked)));
    let others = async {
        cluster.busy("remove_item").await;
        let answers = join_all(others.iter().map(|request| approver.remove(request))).await;
        finish(&mut lock, "rollback").await;
        answers
    };
    let (removals, others) = join(removals, others).await;
    assert_eq!(tally(&others), counts([("200", 20)]));
    let removed = counts([("200", 1), ("404 NOT_FOUND", 2)]);
    assert_eq!(tally(&removals), removed, "once it is free");
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_of_an_overdue_and_locked_exchange_are_answered_and_others_too() {
    let (cluster, enforcer, _) = scene().await;
    let life = Duration::from_secs(600);
    let locked = request_id();
    let submitted = enforcer.submit(&locked, "alice", sealed_for(life)).await;
    submitted.expect(202);
    let others = pending(&enforcer, OTHERS).await;
    let mut lock = cluster.database.locking(&locked).await;
    cluster.pass(life);
    let (stuck, others) = beside_three_clients(
        || enforcer.status(&locked),
        others.iter().map(|request| enforcer.status(request)),
    )
    .await;
    assert_eq!(tally(&others), counts([("200", OTHERS)]));
    for answer in stuck {
        assert_eq!(answer.expect(200).body("/state"), "expired");
    }
    let waited = enforcer.wait(&locked, 60).await.expect(204);
    assert_eq!(waited.header("exchange-state"), Some("expired"));
    let written = "select count(*) from exchanges where state = 'expired'";
    assert_eq!(
        cluster.database.number(written).await,
        0,
        "it is still locked"
    );
    finish(&mut lock, "rollback").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_of_an_exchange_that_is_decided_at_its_expiry_hold_up_no_other() {
    let (cluster, enforcer, approver) = trying_for(3_000).await;
    let life = Duration::from_secs(600);
    let deciding = request_id();
    let submitted = enforcer.submit(&deciding, "alice", sealed_for(life)).await;
    submitted.expect(202);
    let others = pending(&enforcer, OTHERS).await;
    let mut place = decision_place(&cluster, &deciding).await;
    let decided = async { approver.decide(&deciding, compact("approve")).await };
    let reading = async {
        cluster.database.blocked_in("-- For each row").await;
        cluster.pass(life);
        let (status, others) = join(async { enforcer.status(&deciding).await }, async {
            cluster.busy("read_exchange").await;
            let others = others.iter().map(|request| enforcer.status(request));
            let others = join_all(others).await;
            finish(&mut place, "rollback").await;
            others
        })
        .await;
        assert_eq!(tally(&others), counts([("200", OTHERS)]));
        assert_eq!(status.expect(200).body("/state"), "decided");
    };
    let (decided, ()) = join(decided, reading).await;
    decided.expect(200);
}

/// Holds the place of a decision's payload: a decision gets this far, judged and not committed.
async fn decision_place(cluster: &Cluster, request: &str) -> PgConnection {
    let place = format!(
        "insert into exchange_payloads (tenant_id, request_id, part, body) values ('{}', '{request}', 'decision', '{{}}')",
        cluster.tenant
    );
    cluster.database.holding(&place).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sweep_passes_over_what_is_locked() {
    let (cluster, enforcer, approver) = scene().await;
    let life = Duration::from_secs(600);
    let requests: Vec<String> = (0..3).map(|_| request_id()).collect();
    for request in &requests {
        let submitted = enforcer.submit(request, "alice", sealed_for(life)).await;
        submitted.expect(202);
    }
    let item = format!(
        "select from inbox_items where request_id = '{}' for update",
        requests[0]
    );
    let mut item = cluster.database.holding(&item).await;
    let mut exchange = cluster.database.locking(&requests[1]).await;
    cluster.pass(life);
    let expired = "select count(*) from exchanges where state = 'expired'";
    until(
        "the third has expired",
        Duration::from_secs(10),
        async || cluster.database.number(expired).await == 1,
    )
    .await;
    finish(&mut item, "rollback").await;
    finish(&mut exchange, "rollback").await;
    until("all have expired", Duration::from_secs(10), async || {
        cluster.database.number(expired).await == 3
    })
    .await;
    assert_eq!(approver.expired_ids().await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledgements_of_prompts_go_on_while_one_is_locked() {
    let (cluster, enforcer, approver) = scene().await;
    let mut prompts = Vec::new();
    for _ in 0..20 {
        let prompt = json!({
            "requestId": request_id(), "artifactType": "prompt.send", "createdAt": crate::support::now(), "target": "tool",
            "ciphertext": { "alg": "a", "data": "d" }, "metadata": { "enforcerId": "build-bot" },
            "promptHashAlg": "SHA-256", "promptHash": crate::support::HASH,
        });
        approver
            .client
            .post("/v1/prompt", &prompt)
            .await
            .expect(202);
        prompts.push(prompt["requestId"].as_str().unwrap().to_owned());
    }
    let ack = async |request: String| {
        let word = json!({
            "requestId": request, "promptHash": crate::support::HASH, "status": "delivered",
            "ackAt": crate::support::now(),
        });
        enforcer.client.post("/v1/prompt", &word).await
    };
    let (locked, others) = prompts.split_first().unwrap();
    for table in ["prompts", "messages"] {
        let lock = format!("select from {table} where request_id = '{locked}' for update");
        let mut lock = cluster.database.holding(&lock).await;
        let (stuck, others) =
            beside_three_clients(|| ack(locked.clone()), others.iter().cloned().map(&ack)).await;
        assert!(
            others.iter().all(|answer| answer.status == 200),
            "{others:?}"
        );
        all_refused(&stuck);
        finish(&mut lock, "rollback").await;
    }
    ack(locked.clone()).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_under_way_holds_up_only_its_approver_and_counts_once_it_commits() {
    let (cluster, enforcer, alice) = scene().await;
    let bob = cluster.approver("bob").await;
    let (alices, bobs) = (request_id(), request_id());
    enforcer
        .submit(&alices, "alice", sealed())
        .await
        .expect(202);
    enforcer.submit(&bobs, "bob", sealed()).await.expect(202);
    // As far as a node that was stopped in the middle of a registration.
    let registering = format!(
        "select pg_advisory_xact_lock(hashtextextended('{0}' || chr(10) || 'alice', 0));
         insert into signing_keys (tenant_id, approver_id, signer_key_id, public_key)
         values ('{0}', 'alice', 'key-9', decode('{1}', 'hex'))",
        cluster.tenant,
        hex(signing_key(1).verifying_key().as_bytes())
    );
    let mut registering = cluster.database.holding(&registering).await;
    let stuck = alice.decide(&alices, compact("approve")).await;
    stuck.refused(503, "UNAVAILABLE");
    bob.decide(&bobs, compact("approve")).await.expect(200);
    let (answer, ()) = join(alice.decide(&alices, compact("approve")), async {
        finish(&mut registering, "commit").await;
    })
    .await;
    answer.refused(403, "SIGNATURE_INVALID");
    assert_eq!(enforcer.state(&alices).await, "pendingApproval");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_newer_than_the_deciding_statements_snapshot_is_seen() {
    let cluster = Cluster::start(1).await;
    let tenant = &cluster.tenant;
    let mut pause = cluster
        .database
        .holding("select pg_advisory_xact_lock(7)")
        .await;
    let deciding = format!(
        "with pause as materialized (select pg_advisory_xact_lock(7))
         select concat_ws(' ', (select count(*) from signing_keys), has_no_signing_key('{tenant}', 'alice'),
                          has_no_signing_key('{tenant}', 'bob')) from pause"
    );
    let (seen, ()) = join(cluster.database.text(&deciding), async {
        cluster.database.blocked_in("with pause").await;
        let key = registration(&cluster.tenant, "alice", "key-1", &signing_key(1));
        let path = "/platform/v1/approvers/alice/keys/key-1";
        let alice = cluster.approver("alice").await.client;
        alice.put(path, &key).await.expect(200);
        finish(&mut pause, "rollback").await;
    })
    .await;
    assert_eq!(seen, "0 f t", "by its own snapshot there is none");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_key_is_registered_between_the_judgement_of_a_decision_and_its_commit() {
    let (cluster, enforcer, alice) = trying_for(20_000).await;
    let request = pending(&enforcer, 1).await.remove(0);
    let mut place = decision_place(&cluster, &request).await;
    let deciding = alice.decide(&request, compact("approve"));
    let registering = async {
        cluster.database.blocked_in("-- For each row").await;
        let key = registration(&cluster.tenant, "alice", "key-1", &signing_key(1));
        let path = "/platform/v1/approvers/alice/keys/key-1";
        let (answer, ()) = join(alice.client.put(path, &key), async {
            cluster.database.blocked_in("pg_advisory_xact_lock").await;
            finish(&mut place, "rollback").await;
        })
        .await;
        answer.expect(200);
    };
    let (decided, ()) = join(deciding, registering).await;
    decided.expect(200);
    let order =
        "select count(*) from exchanges e, signing_keys k where e.decided_at < k.created_at";
    assert_eq!(cluster.database.number(order).await, 1);
}
