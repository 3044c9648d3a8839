//! Whom submissions reach by pairings, and when they no longer do.

use super::{REVOKE, pair, revocation, submit, unaddressed};
use countersign::protocol::artifact::{self, ArtifactRules};
use countersign::protocol::envelope::IncomingEnvelope;
use countersign::protocol::id::{ApproverId, EnforcerId, TextId as _};
use countersign::protocol::json;
use countersign::store::audit::AuditSource;
use countersign::store::database::batch_statement::BatchStatement as _;
use countersign::store::exchanges::submit::{AskedApprover, SubmissionRow, TakeSubmissions};

use crate::support::scrape::scrape;
use crate::support::{Cluster, request_id, sealed};

#[tokio::test(flavor = "multi_thread")]
async fn a_token_reaches_its_approver_and_no_token_reaches_every_paired_one() {
    let cluster = Cluster::start(3).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let other = cluster.enforcer("deploy-bot").await;
    let (alice, bob) = (
        cluster.approver("alice").await,
        cluster.approver("bob").await,
    );
    let nobody = submit(&enforcer, &request_id(), None).await;
    nobody.refused_at(422, "NO_APPROVER", "/recipient/approverId");
    let to_alice = pair(&enforcer, &alice).await;
    let to_bob = pair(&enforcer, &bob).await;
    let others = pair(&other, &alice).await;

    let requests = [request_id(), request_id(), request_id()];
    let [first, second, both] = &requests;
    submit(&enforcer, first, Some(&to_alice)).await.expect(202);
    submit(&enforcer, second, Some(&to_bob)).await.expect(202);
    submit(&enforcer, both, None).await.expect(202);
    assert_eq!(alice.inbox_ids().await, [first.as_str(), both]);
    assert_eq!(bob.inbox_ids().await, [second.as_str(), both]);
    for token in [others.as_str(), "nonsense", ""] {
        let refused = submit(&enforcer, &request_id(), Some(token)).await;
        refused.refused_at(422, "NO_APPROVER", "/body/metadata/routingToken");
    }

    // Without alice, "every paired one" is bob, and then nobody.
    alice
        .client
        .post(REVOKE, &revocation(&to_alice))
        .await
        .expect(200);
    let later = request_id();
    submit(&enforcer, &later, None).await.expect(202);
    assert_eq!(bob.inbox_ids().await.last(), Some(&later));
    assert_eq!(alice.inbox_ids().await, [first.as_str(), both]);
    enforcer
        .client
        .post(REVOKE, &revocation(&to_bob))
        .await
        .expect(200);
    let nobody = submit(&enforcer, &request_id(), None).await;
    nobody.refused_at(422, "NO_APPROVER", "/recipient/approverId");
    submit(&other, &request_id(), Some(&others))
        .await
        .expect(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn either_side_revokes_and_a_repeat_of_what_was_taken_is_still_a_repeat() {
    let cluster = Cluster::start(2).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let alice = cluster.approver("alice").await;
    for side in [&enforcer.client, &alice.client] {
        let token = pair(&enforcer, &alice).await;
        let by_token = unaddressed(&enforcer, &request_id(), Some(&token));
        let by_pairing = unaddressed(&enforcer, &request_id(), None);
        for message in [&by_token, &by_pairing] {
            let taken = enforcer.client.post("/v1/artifacts", message).await;
            assert_eq!(taken.outcome(), "202");
        }
        for _ in 0..2 {
            side.post(REVOKE, &revocation(&token)).await.expect(200);
        }
        let refused = submit(&enforcer, &request_id(), Some(&token)).await;
        refused.refused(403, "PAIRING_REVOKED");
        for message in [&by_token, &by_pairing] {
            let again = enforcer.client.post("/v1/artifacts", message).await;
            assert_eq!(again.outcome(), "202 duplicate");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pairing_again_replaces_the_token_and_undoes_a_revocation() {
    let cluster = Cluster::start(3).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let alice = cluster.approver("alice").await;
    let mut old: Vec<String> = Vec::new();
    for turn in 0..3 {
        let token = pair(&enforcer, &alice).await;
        submit(&enforcer, &request_id(), Some(&token))
            .await
            .expect(202);
        for replaced in &old {
            let refused = submit(&enforcer, &request_id(), Some(replaced)).await;
            refused.refused(403, "PAIRING_REVOKED");
            // It is no longer good, as was wished; the newer one is not touched.
            let again = alice.client.post(REVOKE, &revocation(replaced)).await;
            again.expect(200);
        }
        submit(&enforcer, &request_id(), Some(&token))
            .await
            .expect(202);
        if turn == 1 {
            let revoked = enforcer.client.post(REVOKE, &revocation(&token)).await;
            revoked.expect(200);
        }
        old.push(token);
    }
    let rows = "select count(*) from pairings";
    assert_eq!(cluster.database.number(rows).await, 1);
}

/// Pairs an enforcer with approvers `from` to `to`, by their numbers.
async fn pair_many(cluster: &Cluster, from: usize, to: usize) {
    let sql = format!(
        "insert into pairings (tenant_id, enforcer_id, approver_id, nonce, token_hash, paired_at)
         select '{}', 'build-bot', 'approver-' || n, 'nonce-' || n, decode(md5(n::text), 'hex'), now()
           from generate_series({from}, {to}) n",
        cluster.tenant
    );
    cluster.database.run(&sql).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_asks_as_many_approvers_as_the_limit_says_and_no_more() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    pair_many(&cluster, 1, 200).await;
    let before = connections_taken(&cluster).await;
    let taken = request_id();
    submit(&enforcer, &taken, None).await.expect(202);
    let count = connections_taken(&cluster).await - before;
    assert!(count < 20.0, "counted together, not one by one: {count}");
    let asked = "select count(*) from inbox_items";
    assert_eq!(cluster.database.number(asked).await, 200);

    pair_many(&cluster, 201, 201).await;
    let refused = submit(&enforcer, &request_id(), None).await;
    let refused = refused.refused_at(422, "TOO_LARGE", "/recipient/approverId");
    assert_eq!(refused.detail("limit"), 200);
    assert_eq!(
        refused.body("/message"),
        "the submission would ask 201 approvers; at most 200 may be asked"
    );
    assert_eq!(cluster.database.number(asked).await, 200);
    let status = enforcer.client.get("/v1/status").await.expect(200);
    assert_eq!(status.json()["limits"]["approversPerExchange"], 200);

    // An accepted request is still known, and one that names its approver is not concerned.
    let again = submit(&enforcer, &taken, None).await;
    assert_eq!(again.outcome(), "202 duplicate");
    let named = enforcer.submit(&request_id(), "approver-7", sealed()).await;
    named.expect(202);
}

/// How often a call has taken a connection to the database.
async fn connections_taken(cluster: &Cluster) -> f64 {
    let read = scrape(&cluster.nodes[0].metrics).await;
    read.value(
        "countersign_pool_acquire_seconds_count",
        &[("pool", "requests")],
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_weighs_as_much_in_a_batch_as_it_asks_approvers() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let text = enforcer.submission("r", "alice", sealed()).to_string();
    let document = json::parse(text.as_bytes()).unwrap();
    let envelope = IncomingEnvelope::parse(&document, "artifact.submit").unwrap();
    let now = cluster.clock.now();
    let rules = ArtifactRules {
        max_payload: 1 << 20,
        requested_actions: String::new(),
        latest_created: now,
        latest_expiry: (now.inner() + time::Duration::days(9_000)).into(),
    };
    let mut row = SubmissionRow {
        operation: cluster.clock.operation_id(),
        tenant: cluster.tenant.clone(),
        enforcer: EnforcerId::parse("build-bot").unwrap(),
        submission: artifact::parse(&envelope, &rules).unwrap(),
        asked: Vec::new(),
        idempotency: None,
        source: AuditSource::default(),
    };
    assert_eq!(TakeSubmissions::weight(&row), 1);
    row.asked = (0..200)
        .map(|n| AskedApprover {
            approver: ApproverId::parse(&format!("approver-{n}")).unwrap(),
            message: cluster.clock.message_id(),
            is_awaited: false,
            count: false,
        })
        .collect();
    assert_eq!(TakeSubmissions::weight(&row), 200);
}
