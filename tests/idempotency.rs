//! Repeats: of a request id, and under an `Idempotency-Key`.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    Answer, Client, Cluster, Enforcer, OTHER_HASH, compact, in_time, request_id, sealed,
    sealed_for, with,
};

const EXCHANGES: &str = "select count(*) from exchanges";
const KEYS: &str = "select count(*) from idempotency_keys";

/// Submits under a key.
async fn under(client: &Client, key: &str, message: &Value) -> Answer {
    let call = client.call(Method::POST, "/v1/artifacts");
    call.header("idempotency-key", key)
        .json(message)
        .send()
        .await
}

/// A submission of build-bot to alice that lives for days.
fn lasting(enforcer: &Enforcer) -> Value {
    let mut body = sealed();
    body["expiresAt"] = json!(in_time(10 * 86_400));
    enforcer.submission(&request_id(), "alice", body)
}

fn replayed(answer: &Answer) -> bool {
    match answer.header("idempotency-replayed") {
        None => false,
        Some(value) => {
            assert_eq!(value, "true");
            assert_eq!(answer.body("/duplicate"), true);
            true
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_artifact_again_is_a_duplicate_in_every_state() {
    let cluster = Cluster::start(2).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let alice = cluster.approver("alice").await;
    let admin = cluster.admin().await;
    let life = Duration::from_secs(600);
    let requests: Vec<_> = (0..6).map(|_| request_id()).collect();
    let bodies: Vec<_> = requests.iter().map(|_| sealed_for(life)).collect();
    for (request, body) in requests.iter().zip(&bodies) {
        enforcer
            .submit(request, "alice", body.clone())
            .await
            .expect(202);
    }
    for decided in &requests[1..3] {
        alice.decide(decided, compact("approve")).await.expect(200);
    }
    let message = enforcer.wait(&requests[2], 5).await.json()["msgId"].clone();
    enforcer
        .ack(&requests[2], message.as_str().unwrap())
        .await
        .expect(200);
    enforcer.withdraw(&requests[3]).await.expect(200);
    let cancel = format!("/platform/v1/exchanges/{}/cancel", requests[4]);
    admin.post(&cancel, &json!({})).await.expect(200);

    let before = cluster.database.counts().await;
    let check = async |index: usize, state: &str| {
        let again = enforcer
            .submit(&requests[index], "alice", bodies[index].clone())
            .await;
        let again = again.expect(202);
        assert_eq!(again.body("/duplicate"), true);
        assert_eq!(again.body("/state"), state);
        assert!(!replayed(&again));
    };
    for (index, state) in [
        "pendingApproval",
        "decided",
        "delivered",
        "withdrawn",
        "cancelled",
    ]
    .iter()
    .enumerate()
    {
        check(index, state).await;
    }
    assert_eq!(cluster.database.counts().await, before);
    cluster.pass(Duration::from_secs(601));
    check(5, "expired").await;
    check(2, "delivered").await;

    // Another artifact, or another enforcer, is a conflict whatever the state.
    let other = cluster.enforcer("other-bot").await;
    for (request, body) in requests.iter().zip(&bodies) {
        let changed = with(body, "/artifactHash", json!(OTHER_HASH));
        for answer in [
            enforcer.submit(request, "alice", changed).await,
            other.submit(request, "alice", body.clone()).await,
        ] {
            let answer = answer.refused_at(409, "ALREADY_EXISTS", "/requestId");
            assert_eq!(answer.detail("conflict"), "AlreadyExistsConflict");
            assert_eq!(answer.body("/requestId"), request.as_str());
        }
    }
    assert_eq!(cluster.database.number(EXCHANGES).await, 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_answers_its_own_request_again_and_refuses_any_other() {
    let cluster = Cluster::start(2).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let alice = cluster.approver("alice").await;
    let message = lasting(&enforcer);
    let request = message["requestId"].as_str().unwrap();
    let first = under(&enforcer.client, "key-1", &message).await.expect(202);
    assert_eq!(first.body("/duplicate"), false);
    assert!(!replayed(&first));
    let again = under(&enforcer.client, "key-1", &message).await.expect(202);
    assert!(replayed(&again));
    assert_eq!(again.body("/expiresAt"), first.body("/expiresAt"));
    alice.decide(request, compact("approve")).await.expect(200);
    let again = under(&enforcer.client, "key-1", &message).await.expect(202);
    assert!(replayed(&again));
    assert_eq!(
        again.body("/state"),
        "decided",
        "the outcome is the exchange's"
    );

    for other in [
        lasting(&enforcer),
        with(&message, "/trace", json!({ "another": "body" })),
    ] {
        let answer = under(&enforcer.client, "key-1", &other).await;
        let answer = answer.refused(409, "IDEMPOTENCY_KEY_REUSED");
        assert_eq!(answer.detail("parameter"), "Idempotency-Key");
    }
    assert_eq!(cluster.database.number(EXCHANGES).await, 1);

    // Keys are compared by case, and belong to one credential.
    under(&enforcer.client, "KEY-1", &lasting(&enforcer))
        .await
        .expect(202);
    let same_id = cluster.enforcer("build-bot").await;
    let answer = under(&same_id.client, "key-1", &message).await.expect(202);
    assert_eq!(answer.body("/duplicate"), true);
    assert!(!replayed(&answer), "another principal's key told nothing");
    let mine = "select count(distinct principal) from idempotency_keys where key = 'key-1'";
    assert_eq!(
        cluster.database.number(mine).await,
        2,
        "a duplicate binds its key too"
    );
    let again = under(&same_id.client, "key-1", &message).await.expect(202);
    assert!(replayed(&again));
    let answer = under(&same_id.client, "key-1", &lasting(&enforcer)).await;
    answer.refused(409, "IDEMPOTENCY_KEY_REUSED");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_request_binds_nothing() {
    let cluster = Cluster::with(1, |config| config.limits.pending_per_approver = 1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let other = cluster.enforcer("other-bot").await;
    let alice = cluster.approver("alice").await;
    let taken = request_id();
    other.submit(&taken, "alice", sealed()).await.expect(202);
    let good = lasting(&enforcer);
    let refusals = [
        (with(&good, "/body/artifactHash", json!("short")), 400),
        (with(&good, "/sender/enforcerId", json!("other-bot")), 403),
        (with(&good, "/requestId", json!(taken)), 409),
        (with(&good, "/body/expiresAt", json!(in_time(-5))), 422),
        (with(&good, "/recipient", json!({})), 422),
        (good.clone(), 429),
    ];
    for (message, status) in refusals {
        under(&enforcer.client, "key-1", &message)
            .await
            .expect(status);
        assert_eq!(cluster.database.number(KEYS).await, 0, "{status}");
    }
    alice.remove(&taken).await.expect(200);
    let answer = under(&enforcer.client, "key-1", &good).await.expect(202);
    assert!(!replayed(&answer));
    assert_eq!(cluster.database.number(KEYS).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_bound_for_a_day() {
    let cluster = Cluster::start(2).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let (first, second, third) = (lasting(&enforcer), lasting(&enforcer), lasting(&enforcer));
    under(&enforcer.client, "key-1", &first).await.expect(202);
    cluster.pass(Duration::from_secs(24 * 3_600 - 60));
    let answer = under(&enforcer.client, "key-1", &second).await;
    answer.refused(409, "IDEMPOTENCY_KEY_REUSED");
    assert!(replayed(&under(&enforcer.client, "key-1", &first).await));

    cluster.pass(Duration::from_secs(61));
    let answer = under(&enforcer.client, "key-1", &second).await.expect(202);
    assert_eq!(answer.body("/duplicate"), false);
    assert!(replayed(&under(&enforcer.client, "key-1", &second).await));
    let answer = under(&enforcer.client, "key-1", &first).await;
    answer.refused(409, "IDEMPOTENCY_KEY_REUSED");

    // A day later a duplicate takes the key over, as new work would.
    cluster.pass(Duration::from_secs(24 * 3_600 + 1));
    let answer = under(&enforcer.client, "key-1", &first).await.expect(202);
    assert_eq!(answer.body("/duplicate"), true);
    assert!(!replayed(&answer));
    let answer = under(&enforcer.client, "key-1", &third).await;
    answer.refused(409, "IDEMPOTENCY_KEY_REUSED");
    assert!(replayed(&under(&enforcer.client, "key-1", &first).await));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_one_header_of_visible_ascii_and_may_be_required() {
    let cluster = Cluster::with(1, |config| config.idempotency.required = true).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let bad_keys = ["", "two words", "tab\tbed", "ümlaut", &"x".repeat(256)];
    for key in bad_keys {
        let answer = under(&enforcer.client, key, &lasting(&enforcer)).await;
        let answer = answer.refused(400, "VALIDATION");
        assert_eq!(answer.detail("parameter"), "Idempotency-Key", "{key}");
    }
    let call = enforcer.client.call(Method::POST, "/v1/artifacts");
    let call = call
        .header("idempotency-key", "one")
        .header("idempotency-key", "two");
    call.json(&lasting(&enforcer))
        .send()
        .await
        .refused(400, "VALIDATION");
    let without = enforcer
        .client
        .post("/v1/artifacts", &lasting(&enforcer))
        .await;
    let without = without.refused(400, "VALIDATION");
    assert_eq!(without.detail("parameter"), "Idempotency-Key");
    assert_eq!(cluster.database.number(EXCHANGES).await, 0);
    for key in ["!", "~a-b_c.d/e=", &"x".repeat(255)] {
        under(&enforcer.client, key, &lasting(&enforcer))
            .await
            .expect(202);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_requests_under_one_key_at_once_exactly_one_is_done() {
    let cluster = Cluster::start(2).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let nodes = [enforcer.client.on(0), enforcer.client.on(1)];
    for round in 0..12 {
        let key = format!("key-{round}");
        let messages = [lasting(&enforcer), lasting(&enforcer)];
        let (left, right) = tokio::join!(
            under(&nodes[0], &key, &messages[0]),
            under(&nodes[round % 2], &key, &messages[1]),
        );
        let answers = [left, right];
        let won = answers.iter().filter(|answer| answer.status == 202).count();
        assert_eq!(won, 1, "{answers:?}");
        for (message, answer) in messages.iter().zip(answers) {
            let request = message["requestId"].as_str().unwrap();
            if answer.status == 202 {
                assert_eq!(enforcer.state(request).await, "pendingApproval");
            } else {
                answer.refused(409, "IDEMPOTENCY_KEY_REUSED");
                enforcer.status(request).await.refused(404, "NOT_FOUND");
            }
        }
    }
    assert_eq!(cluster.database.number(EXCHANGES).await, 12);
    assert_eq!(cluster.database.number(KEYS).await, 12);
    let payloads = "select count(*) from exchange_payloads";
    assert_eq!(cluster.database.number(payloads).await, 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_request_sent_everywhere_at_once_is_done_once() {
    let cluster = Cluster::start(3).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let message = lasting(&enforcer);
    let sends = (0..9).map(|_| under(&enforcer.client, "key-1", &message));
    let answers = futures_util::future::join_all(sends).await;
    let first = answers.iter().filter(|answer| {
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.body("/duplicate") == false
    });
    assert_eq!(first.count(), 1);
    assert_eq!(cluster.database.number(EXCHANGES).await, 1);
    assert_eq!(
        cluster
            .database
            .number("select count(*) from inbox_items")
            .await,
        1
    );
    assert_eq!(
        cluster
            .database
            .number("select count(*) from exchange_events")
            .await,
        1
    );
}
