//! The rules of writing under races, each made to happen: a test holds a lock or an uncommitted
//! row, as a statement of another node would, looks until the node's own statement waits for it,
//! and lets go.

use std::time::Duration;

use countersign::clock::Clock;
use countersign::protocol::artifact::{self, ArtifactRules};
use countersign::protocol::envelope::IncomingEnvelope;
use countersign::protocol::exchange::SubmissionFact;
use countersign::protocol::id::{ApproverId, EnforcerId, NodeId, TextId as _};
use countersign::protocol::json;
use countersign::store::audit::AuditSource;
use countersign::store::database::batch_statement::BatchStatement as _;
use countersign::store::exchanges::submit::{
    AskedApprover, InboxLimits, SubmissionRow, TakeSubmissions,
};
use countersign::store::seconds;
use futures_util::future::{join, join_all};
use reqwest::Method;
use serde_json::Value;
use sqlx::PgConnection;

use crate::support::database::finish;
use crate::support::{
    Answer, Approver, Cluster, Enforcer, HASH, compact, counts, crowd, request_id, sealed,
    sealed_for, tally, until,
};

/// Two nodes that are patient with locks, and two parties.
pub async fn scene() -> (Cluster, Enforcer, Approver) {
    let cluster = Cluster::with(2, |config| {
        config.database.lock_timeout_ms = 20_000;
        config.database.statement_timeout_ms = 30_000;
    })
    .await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    (cluster, enforcer, approver)
}

/// An exchange of another node, not yet committed.
pub async fn uncommitted_twin(cluster: &Cluster, request: &str, hash: &str) -> PgConnection {
    let mut connection = cluster.database.connect().await;
    let insert = format!(
        "begin;
         insert into exchanges (tenant_id, request_id, submission_id, operation_id, state, seq, enforcer_id, form,
                                artifact_type, artifact_hash, accepted_at, expires_at)
         values ('{}', '{request}', gen_random_uuid(), gen_random_uuid(), 'pendingApproval', 1, 'build-bot', 'sealed',
                 'command.review', '{hash}', now(), now() + interval '1 hour');
         insert into inbox_items (tenant_id, request_id, approver_id, message_id, created_at, expires_at)
         values ('{}', '{request}', 'alice', gen_random_uuid(), now(), now() + interval '1 hour')",
        cluster.tenant, cluster.tenant
    );
    finish(&mut connection, &insert).await;
    connection
}

/// Submits while an uncommitted twin is in the way, which then ends like this.
async fn submit_against_a_twin(hash: &str, end: &str) -> (Answer, i64) {
    let (cluster, enforcer, _) = scene().await;
    let request = request_id();
    let mut twin = uncommitted_twin(&cluster, &request, hash).await;
    let (answer, ()) = join(enforcer.submit(&request, "alice", sealed()), async {
        cluster.database.blocked(1).await;
        finish(&mut twin, end).await;
    })
    .await;
    let exchanges = cluster
        .database
        .number("select count(*) from exchanges")
        .await;
    (answer, exchanges)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_that_met_an_uncommitted_twin_is_its_duplicate_once_that_commits() {
    let (answer, exchanges) = submit_against_a_twin(HASH, "commit").await;
    assert_eq!((answer.outcome().as_str(), exchanges), ("202 duplicate", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_that_met_an_uncommitted_twin_takes_its_place_if_that_fails() {
    let (answer, exchanges) = submit_against_a_twin(HASH, "rollback").await;
    assert_eq!((answer.outcome().as_str(), exchanges), ("202", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_that_met_another_under_its_id_is_refused_once_that_commits() {
    let other = crate::support::OTHER_HASH;
    let (answer, exchanges) = submit_against_a_twin(other, "commit").await;
    assert_eq!(
        (answer.outcome().as_str(), exchanges),
        ("409 ALREADY_EXISTS", 1)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_twins_in_one_statement_only_the_one_that_was_written_is_told_so() {
    let cluster = Cluster::start(1).await;
    let clock = Clock::system();
    let (request, enforcer) = (request_id(), cluster.enforcer("build-bot").await);
    let text = enforcer.submission(&request, "alice", sealed()).to_string();
    let node = json::parse(text.as_bytes()).unwrap();
    let envelope = IncomingEnvelope::parse(&node, "artifact.submit").unwrap();
    let rules = ArtifactRules {
        max_payload: 1 << 20,
        requested_actions: String::new(),
        latest_created: envelope.created_at,
        latest_expiry: "9999-01-01T00:00:00Z".parse_time(),
    };
    let submission = artifact::parse(&envelope, &rules).unwrap();
    let row = || SubmissionRow {
        operation: clock.operation_id(),
        tenant: cluster.tenant.clone(),
        enforcer: EnforcerId::parse("build-bot").unwrap(),
        submission: submission.clone(),
        asked: vec![AskedApprover {
            approver: ApproverId::parse("alice").unwrap(),
            message: clock.message_id(),
            is_awaited: false,
            count: true,
        }],
        idempotency: None,
        source: AuditSource::default(),
    };
    let rows = [row(), row(), row()];
    let submit = TakeSubmissions {
        clock: clock.clone(),
        node: NodeId::parse("here").unwrap(),
        limits: InboxLimits {
            pending: 10,
            share: 10,
        },
        pairing_required: false,
        key_lifetime: seconds(60),
    };
    let mut connection = cluster.database.connect().await;
    let facts = submit.run(&mut connection, &rows).await.unwrap();
    let written: Vec<bool> = facts
        .iter()
        .map(|fact| matches!(fact, SubmissionFact::Written(_)))
        .collect();
    assert_eq!(
        written.iter().filter(|written| **written).count(),
        1,
        "{facts:?}"
    );
    let winner = rows[written.iter().position(|written| *written).unwrap()].operation;
    for fact in facts {
        if let SubmissionFact::Unwritten { existing, .. } = fact {
            assert_eq!(existing.expect("its twin").submission_id, winner);
        }
    }
    assert_eq!(
        cluster
            .database
            .number("select count(*) from inbox_items")
            .await,
        1
    );
}

/// Reads a time that a test wrote.
trait ParseTime {
    fn parse_time(&self) -> countersign::protocol::timestamp::Timestamp;
}

impl ParseTime for str {
    fn parse_time(&self) -> countersign::protocol::timestamp::Timestamp {
        let format = &time::format_description::well_known::Rfc3339;
        time::OffsetDateTime::parse(self, format).unwrap().into()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_twins_and_strangers_on_one_node_is_told_apart() {
    let (cluster, enforcer, _) = scene().await;
    let enforcer = enforcer.on(0);
    let contended: Vec<String> = (0..5).map(|_| request_id()).collect();
    let _crowd = crowd(200).await;
    let calls = (0..200).map(async |turn: usize| {
        let request = match turn % 2 {
            0 => contended[turn / 2 % 5].clone(),
            _ => request_id(),
        };
        enforcer.submit(&request, "alice", sealed()).await
    });
    let answers = join_all(calls).await;
    assert_eq!(
        tally(&answers),
        counts([("202", 105), ("202 duplicate", 95)])
    );
    let items = "select count(*) from inbox_items";
    assert_eq!(cluster.database.number(items).await, 105);
}

/// Does `call` while the exchange is locked and its time runs out, and then lets go.
async fn while_time_runs_out<F: Future<Output = Answer>>(
    cluster: &Cluster,
    enforcer: &Enforcer,
    statement: &str,
    call: impl Fn(String) -> F,
) -> (String, String) {
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed_for(Duration::from_millis(1_500)))
        .await
        .expect(202);
    let mut lock = cluster.database.locking(&request).await;
    let (answer, ()) = join(call(request.clone()), async {
        cluster.busy(statement).await;
        let sql = format!(
            "select count(*) from exchanges where request_id = '{request}' and expires_at <= clock_timestamp()"
        );
        let early = cluster.database.number(&sql).await;
        assert_eq!(early, 0, "it waits since before the end");
        until("its time is over", Duration::from_secs(5), async || {
            cluster.database.number(&sql).await == 1
        })
        .await;
        finish(&mut lock, "commit").await;
    })
    .await;
    (answer.outcome(), enforcer.state(&request).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_waited_past_the_end_is_too_late() {
    let (cluster, enforcer, approver) = scene().await;
    let approver = &approver;
    let decide = async |request: String| approver.decide(&request, compact("approve")).await;
    let late = while_time_runs_out(&cluster, &enforcer, "decide", decide).await;
    assert_eq!(late, ("409 EXPIRED".to_owned(), "expired".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawal_that_waited_past_the_end_is_too_late() {
    let (cluster, enforcer, _) = scene().await;
    let withdraw = async |request: String| enforcer.withdraw(&request).await;
    let late = while_time_runs_out(&cluster, &enforcer, "end_exchange", withdraw).await;
    assert_eq!(late, ("409 EXPIRED".to_owned(), "expired".to_owned()));
}

/// Submits with an idempotency key.
pub async fn submit_keyed(enforcer: &Enforcer, request: &str, body: Value, key: &str) -> Answer {
    let envelope = enforcer.submission(request, "alice", body);
    let call = enforcer.client.call(Method::POST, "/v1/artifacts");
    call.header("idempotency-key", key)
        .json(&envelope)
        .send()
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_for_two_requests_at_once_serves_one_and_hurts_no_neighbour() {
    let (cluster, enforcer, _) = scene().await;
    for turn in 0..30 {
        let key = format!("key-{turn}");
        let keyed =
            (0..2).map(async |_| submit_keyed(&enforcer, &request_id(), sealed(), &key).await);
        let others = (0..16).map(async |_| enforcer.submit(&request_id(), "alice", sealed()).await);
        let (keyed, others) = join(join_all(keyed), join_all(others)).await;
        assert_eq!(
            tally(&keyed),
            counts([("202", 1), ("409 IDEMPOTENCY_KEY_REUSED", 1)])
        );
        assert_eq!(tally(&others), counts([("202", 16)]));
    }
    let exchanges = cluster
        .database
        .number("select count(*) from exchanges")
        .await;
    assert_eq!(exchanges, 30 * 17, "a refused request leaves nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_another_node_binds_meanwhile_is_found_taken() {
    let (cluster, enforcer, _) = scene().await;
    submit_keyed(&enforcer, &request_id(), sealed(), "first")
        .await
        .expect(202);
    let mut bound = cluster.database.connect().await;
    let bind = "begin;
        insert into idempotency_keys (tenant_id, principal, key, fingerprint, submission_id, request_id, expires_at)
        select tenant_id, principal, 'second', '\\x00', gen_random_uuid(), 'elsewhere', expires_at from idempotency_keys";
    finish(&mut bound, bind).await;
    let (answer, ()) = join(
        submit_keyed(&enforcer, &request_id(), sealed(), "second"),
        async {
            cluster.database.blocked(1).await;
            finish(&mut bound, "commit").await;
        },
    )
    .await;
    answer.refused(409, "IDEMPOTENCY_KEY_REUSED");
    let exchanges = cluster
        .database
        .number("select count(*) from exchanges")
        .await;
    assert_eq!(exchanges, 1, "a refused request leaves nothing");
}
