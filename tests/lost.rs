//! The reply to a commit is lost: the work is done, the node does not know, and its second try
//! recognises its own work.
//!
//! A lock of the test's own holds the statement up; then the proxy begins to lose what the server
//! says, the lock goes, and once the work is seen in the database, the connection is cut.

use std::time::Duration;

use futures_util::future::{join, join_all};
use serde_json::json;
use sqlx::PgConnection;

use crate::support::database::finish;
use crate::support::proxy::Proxy;
use crate::support::{
    Answer, Approver, Cluster, Enforcer, compact, hash_of, now, request_id, sealed, until,
};

/// A node behind a proxy, with connections to lose.
async fn scene() -> (Cluster, Proxy, Enforcer, Approver) {
    let (cluster, proxy) = Cluster::behind_proxy().await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    for answer in join_all((0..20).map(|_| approver.inbox(""))).await {
        answer.expect(200);
    }
    (cluster, proxy, enforcer, approver)
}

/// Makes `call`, which waits for `lock`, and loses the reply to its commit, seen by a count of one.
pub async fn losing_the_reply(
    cluster: &Cluster,
    proxy: &Proxy,
    mut lock: PgConnection,
    done: &str,
    call: impl Future<Output = Answer>,
) -> Answer {
    let (answer, ()) = join(call, async {
        cluster.database.blocked(1).await;
        // New connections work all the time: the second try may come at any moment.
        proxy.silence();
        finish(&mut lock, "rollback").await;
        until("the work is done", Duration::from_secs(10), async || {
            cluster.database.number(done).await == 1
        })
        .await;
        proxy.cut();
    })
    .await;
    answer
}

async fn number(cluster: &Cluster, table: &str) -> i64 {
    let sql = format!("select count(*) from {table}");
    cluster.database.number(&sql).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_whose_reply_was_lost_is_accepted_once_and_is_no_duplicate() {
    let (cluster, proxy, enforcer, approver) = scene().await;
    let request = request_id();
    let mut twin = cluster.database.connect().await;
    let insert = format!(
        "begin;
         insert into exchanges (tenant_id, request_id, submission_id, operation_id, state, seq, enforcer_id, form,
                                artifact_type, artifact_hash, accepted_at, expires_at)
         values ('{}', '{request}', gen_random_uuid(), gen_random_uuid(), 'pendingApproval', 1, 'nobody', 'sealed',
                 'command.review', 'none', now(), now())",
        cluster.tenant
    );
    finish(&mut twin, &insert).await;
    let body = sealed();
    let answer = losing_the_reply(
        &cluster,
        &proxy,
        twin,
        "select count(*) from exchanges",
        enforcer.submit(&request, "alice", body.clone()),
    )
    .await;
    assert_eq!(answer.outcome(), "202");
    assert_eq!(number(&cluster, "exchanges").await, 1);
    assert_eq!(number(&cluster, "exchange_events").await, 1);
    assert_eq!(approver.inbox_ids().await, [request.as_str()]);
    let again = enforcer.submit(&request, "alice", body).await;
    assert_eq!(again.outcome(), "202 duplicate");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_whose_reply_was_lost_is_accepted_once_and_is_no_duplicate() {
    let (cluster, proxy, enforcer, approver) = scene().await;
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    let answer = losing_the_reply(
        &cluster,
        &proxy,
        cluster.database.holding_writes("exchange_events").await,
        "select count(*) from exchanges where state = 'decided'",
        approver.decide(&request, compact("approve")),
    )
    .await;
    assert_eq!(answer.outcome(), "200");
    assert_eq!(number(&cluster, "messages").await, 1);
    assert_eq!(number(&cluster, "exchange_events").await, 2);
    enforcer.wait(&request, 5).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ack_whose_reply_was_lost_delivers_once() {
    let (cluster, proxy, enforcer, approver) = scene().await;
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    approver
        .decide(&request, compact("approve"))
        .await
        .expect(200);
    let message = enforcer.wait(&request, 5).await.expect(200).json()["msgId"].clone();
    let answer = losing_the_reply(
        &cluster,
        &proxy,
        cluster.database.holding_writes("exchange_events").await,
        "select count(*) from exchanges where state = 'delivered'",
        enforcer.ack(&request, message.as_str().unwrap()),
    )
    .await;
    assert_eq!(answer.outcome(), "200");
    assert_eq!(number(&cluster, "exchange_events").await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawal_whose_reply_was_lost_succeeds_once() {
    let (cluster, proxy, enforcer, _) = scene().await;
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    let answer = losing_the_reply(
        &cluster,
        &proxy,
        cluster.database.holding_writes("exchange_events").await,
        "select count(*) from exchanges where state = 'withdrawn'",
        enforcer.withdraw(&request),
    )
    .await;
    assert_eq!(answer.outcome(), "200", "its own work, not another's");
    assert_eq!(number(&cluster, "messages").await, 1);
    assert_eq!(number(&cluster, "exchange_events").await, 2);
    enforcer
        .withdraw(&request)
        .await
        .refused(409, "INVALID_STATE");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancellation_whose_reply_was_lost_succeeds_once() {
    let (cluster, proxy, enforcer, _) = scene().await;
    let (request, admin) = (request_id(), cluster.admin().await);
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    let path = format!("/platform/v1/exchanges/{request}/cancel");
    let answer = losing_the_reply(
        &cluster,
        &proxy,
        cluster.database.holding_writes("exchange_events").await,
        "select count(*) from exchanges where state = 'cancelled'",
        admin.post(&path, &json!({})),
    )
    .await;
    answer.expect(200);
    assert_eq!(number(&cluster, "messages").await, 1);
    assert_eq!(number(&cluster, "exchange_events").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_completed_pairing_whose_reply_was_lost_is_completed_once_and_is_no_conflict() {
    let (cluster, proxy, enforcer, approver) = scene().await;
    let body = json!({ "enforcerId": "build-bot" });
    let begun = enforcer.client.post("/v1/pairing/initiate", &body).await;
    let nonce = begun.expect(200).json()["nonce"].clone();
    let mut lock = cluster.database.connect().await;
    finish(
        &mut lock,
        "begin; select from pairing_sessions for no key update",
    )
    .await;
    let body = json!({ "nonce": nonce, "approverId": "alice" });
    let answer = losing_the_reply(
        &cluster,
        &proxy,
        lock,
        "select count(*) from pairings",
        approver.client.post("/v1/pairing/complete", &body),
    )
    .await;
    let token = answer.expect(200).json()["routingToken"].clone();
    assert_eq!(number(&cluster, "pairings").await, 1);
    assert_eq!(number(&cluster, "routing_tokens").await, 1);
    let listed = approver.client.get("/v1/pairings").await.expect(200);
    assert_eq!(listed.json()["items"][0]["routingToken"], token);
    let again = approver.client.post("/v1/pairing/complete", &body).await;
    again.refused(409, "INVALID_STATE");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_and_its_acknowledgement_whose_replies_were_lost_are_taken_once() {
    let (cluster, proxy, enforcer, approver) = scene().await;
    let mut prompt = json!({
        "requestId": request_id(), "artifactType": "prompt.send", "createdAt": now(), "target": "tool", "text": "x",
        "metadata": { "enforcerId": "build-bot" }, "promptHashAlg": "SHA-256",
    });
    prompt["promptHash"] = json!(hash_of(&prompt.to_string(), "promptHash"));
    let send = approver.client.post("/v1/prompt", &prompt);
    // As if another node were about to take the same.
    let twin = format!(
        "insert into prompts (tenant_id, request_id, submission_id, operation_id, message_id, enforcer_id, form, prompt_hash,
                              status, ack_at, accepted_at)
         values ('{}', '{}', gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'build-bot', 'open', 'x', 'queued',
                 now(), now())",
        cluster.tenant,
        prompt["requestId"].as_str().unwrap()
    );
    let lock = cluster.database.holding(&twin).await;
    let done = "select count(*) from prompts";
    let answer = losing_the_reply(&cluster, &proxy, lock, done, send).await;
    assert_eq!(answer.expect(202).json()["status"], "queued");
    assert_eq!(number(&cluster, "messages").await, 1);
    let ack = json!({
        "requestId": prompt["requestId"], "promptHash": prompt["promptHash"], "status": "delivered", "ackAt": now(),
    });
    until(
        "connections are back",
        Duration::from_secs(10),
        async || approver.inbox("").await.status == 200,
    )
    .await;
    let acknowledge = enforcer.client.post("/v1/prompt", &ack);
    let lock = cluster.database.holding_writes("prompts").await;
    let done = "select count(*) from prompts where status = 'delivered'";
    let answer = losing_the_reply(&cluster, &proxy, lock, done, acknowledge).await;
    assert_eq!(answer.expect(200).json()["status"], "delivered");
}
