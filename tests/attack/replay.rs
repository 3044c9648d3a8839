//! Signatures that are sent once more, for what their signer has never seen.

use std::time::Duration;

use countersign::protocol::decision::CompactRule;
use futures_util::future::{join, join_all, join3};
use serde_json::{Value, json};

use crate::support::database::finish;
use crate::support::exchanges::DAY;
use crate::support::{
    Answer, Approver, Cluster, Enforcer, HASH, OTHER_HASH, compact, counts, full, public_key,
    request_id, sealed, sealed_for, signed, signing_key, tally, until, with,
};

const NONCES: &str = "select count(*) from decision_nonces";
const DECIDED: &str = "select count(*) from exchanges where state = 'decided'";

/// Registers the key that compact decisions of the tests name.
async fn register(cluster: &Cluster, approver: &str) {
    let path = format!("/platform/v1/approvers/{approver}/keys/key-1");
    let body = json!({ "publicKey": public_key(&signing_key(1)) });
    cluster.admin().await.put(&path, &body).await.expect(200);
}

/// A compact decision of alice's.
fn approval() -> Value {
    signed(compact("approve"), &signing_key(1))
}

async fn ask(enforcer: &Enforcer) -> String {
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    request
}

/// Nodes that are patient with locks, and two parties.
async fn scene(nodes: usize) -> (Cluster, Enforcer, Approver) {
    let cluster = Cluster::with(nodes, |config| {
        config.database.lock_timeout_ms = 20_000;
        config.database.statement_timeout_ms = 30_000;
    })
    .await;
    let (enforcer, alice) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    (cluster, enforcer, alice)
}

/// Makes these calls of one node while its statement for an earlier decision waits, so that they
/// are queued together.
async fn queued<F: Future<Output = Answer>>(
    cluster: &Cluster,
    ahead: impl Future<Output = Answer>,
    calls: impl IntoIterator<Item = F>,
) -> Vec<Answer> {
    let database = &cluster.database;
    let lock = "lock table exchanges in exclusive mode";
    let mut held = database.holding(lock).await;
    let waiting = async |statements: i64| {
        let waiting = "select count(*) from pg_stat_activity
                        where datname = current_database() and wait_event_type = 'Lock'
                          and strpos(query, '-- For each row: lock') > 0 and pid <> pg_backend_pid()";
        until("they wait", Duration::from_secs(10), async || {
            database.number(waiting).await >= statements
        })
        .await;
    };
    let calls = async {
        waiting(1).await;
        join_all(calls).await
    };
    let release = async {
        waiting(2).await;
        finish(&mut held, "commit").await;
    };
    let (ahead, answers, ()) = join3(ahead, calls, release).await;
    ahead.expect(200);
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compact_signature_for_one_bot_decides_nothing_of_another() {
    let (cluster, harmless, alice) = scene(2).await;
    register(&cluster, "alice").await;
    let harmful = cluster.enforcer("deploy-bot").await;
    let (seen, unseen) = (ask(&harmless).await, ask(&harmful).await);
    let approval = approval();
    let accepted = alice.decide(&seen, approval.clone()).await.expect(200);
    assert_eq!(accepted.body("/verified"), true);
    for node in [0, 1] {
        let replayed = alice.on(node).decide(&unseen, approval.clone()).await;
        replayed.refused_at(409, "NONCE_REUSED", "/body/nonce");
    }
    // Nor in another framing, where the signature does not even verify.
    let bare = with(&approval, "/requestId", json!(unseen));
    let bare = alice.client.post("/v1/decision", &bare).await;
    bare.refused(403, "SIGNATURE_INVALID");
    assert_eq!(harmful.state(&unseen).await, "pendingApproval");
    harmful.wait(&unseen, 1).await.expect(204);

    // The very same decision where it belongs is a repeat, as ever.
    let again = alice.decide(&seen, approval.clone()).await.expect(200);
    assert_eq!(again.body("/duplicate"), true);
    assert_eq!(again.body("/verified"), true);
    // And what she does approve is decided.
    let fresh = signed(compact("approve"), &signing_key(1));
    alice.decide(&unseen, fresh).await.expect(200);
    assert_eq!(cluster.database.number(NONCES).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nonce_counts_once_in_either_form_and_however_long_it_is() {
    let (cluster, enforcer, alice) = scene(1).await;
    register(&cluster, "alice").await;
    let nonces = ["n".repeat(64), "n".repeat(65), "é".repeat(512)];
    for nonce in &nonces {
        let (first, second, third) = (
            ask(&enforcer).await,
            ask(&enforcer).await,
            ask(&enforcer).await,
        );
        let in_full = |request: &str| {
            let body = with(&full(request, HASH), "/nonce", json!(nonce));
            signed(body, &signing_key(1))
        };
        alice.decide(&first, in_full(&first)).await.expect(200);
        let other = alice.decide(&second, in_full(&second)).await;
        other.refused_at(409, "NONCE_REUSED", "/body/nonce");
        let compact = with(&compact("approve"), "/nonce", json!(nonce));
        let other = alice.decide(&third, signed(compact, &signing_key(1))).await;
        other.refused(409, "NONCE_REUSED");
        let again = alice.decide(&first, in_full(&first)).await;
        // Its time of expiry is another, so that it is another decision.
        again.refused(409, "ALREADY_DECIDED");
    }
    assert_eq!(cluster.database.number(NONCES).await, 3);
    // Another approver's key is another key, whatever it is called.
    register(&cluster, "bob").await;
    let bob = cluster.approver("bob").await;
    let request = request_id();
    enforcer.submit(&request, "bob", sealed()).await.expect(202);
    let same = with(&compact("reject"), "/nonce", json!(nonces[0]));
    let same = signed(same, &signing_key(1));
    bob.decide(&request, same).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_decision_uses_up_nothing() {
    let (cluster, enforcer, alice) = scene(1).await;
    register(&cluster, "alice").await;
    let approval = approval();
    let withdrawn = ask(&enforcer).await;
    enforcer.withdraw(&withdrawn).await.expect(200);
    let decided = ask(&enforcer).await;
    let first = signed(compact("reject"), &signing_key(1));
    alice.decide(&decided, first).await.expect(200);
    let other = request_id();
    let artifact = with(&sealed(), "/artifactHash", json!(OTHER_HASH));
    let submitted = enforcer.submit(&other, "alice", artifact).await;
    submitted.expect(202);
    for (request, status, code) in [
        (&withdrawn, 404, "NOT_FOUND"),
        (&decided, 409, "ALREADY_DECIDED"),
        (&other, 400, "HASH_MISMATCH"),
    ] {
        let refused = alice.decide(request, approval.clone()).await;
        refused.refused(status, code);
    }
    let request = ask(&enforcer).await;
    alice.decide(&request, approval).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_replays_at_once_one_decides() {
    let (cluster, enforcer, alice) = scene(3).await;
    register(&cluster, "alice").await;
    for nodes in [vec![0, 1, 2], vec![0]] {
        let before = cluster.database.number(DECIDED).await;
        let requests = join_all((0..24).map(async |_| ask(&enforcer).await)).await;
        let approval = approval();
        let at: Vec<_> = nodes.iter().map(|node| alice.on(*node)).collect();
        let calls = requests.iter().enumerate();
        let calls = calls.map(|(n, request)| at[n % at.len()].decide(request, approval.clone()));
        let (answers, before) = if nodes.len() > 1 {
            (join_all(calls).await, before)
        } else {
            // In one batch, if they were allowed to.
            let other = ask(&enforcer).await;
            let fresh = signed(compact("reject"), &signing_key(1));
            let ahead = at[0].decide(&other, fresh);
            (queued(&cluster, ahead, calls).await, before + 1)
        };
        let expected = counts([("200", 1), ("409 NONCE_REUSED", 23)]);
        assert_eq!(tally(&answers), expected, "{nodes:?}");
        let after = cluster.database.number(DECIDED).await;
        assert_eq!(after - before, 1, "{nodes:?}");
        // And of repeats of the one that counts, all are repeats.
        let won = answers.iter().position(|answer| answer.status == 200);
        let won = &requests[won.unwrap()];
        let repeats = (0..24).map(|n| at[n % at.len()].decide(won, approval.clone()));
        let repeats = join_all(repeats).await;
        assert_eq!(tally(&repeats), counts([("200 duplicate", 24)]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_decision_sent_by_many_at_once_is_one_decision_and_repeats() {
    let (cluster, enforcer, alice) = scene(3).await;
    register(&cluster, "alice").await;
    let expected = counts([("200", 1), ("200 duplicate", 23)]);
    // On one node, in one batch if they were allowed to.
    let (other, request) = (ask(&enforcer).await, ask(&enforcer).await);
    let (ahead, decision, node) = (approval(), approval(), alice.on(0));
    let sent = (0..24).map(|_| node.decide(&request, decision.clone()));
    let answers = queued(&cluster, node.decide(&other, ahead), sent).await;
    assert_eq!(tally(&answers), expected);
    // On all nodes, while the statement of one of them has not ended.
    let (request, decision) = (ask(&enforcer).await, approval());
    let mut held = cluster.database.holding_writes("decision_nonces").await;
    let sent = (0..24).map(|n| {
        let (node, request, decision) = (alice.on(n % 3), &request, decision.clone());
        async move { node.decide(request, decision).await }
    });
    let release = async {
        cluster.database.blocked_in("-- For each row: lock").await;
        finish(&mut held, "commit").await;
    };
    let (answers, ()) = join(join_all(sent), release).await;
    assert_eq!(tally(&answers), expected);
}

/// An enforcer may know the key from pairing, and verify what the gateway cannot.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_the_gateway_does_not_know_signs_once_too() {
    let (cluster, enforcer, alice) = scene(2).await;
    let (seen, unseen) = (ask(&enforcer).await, ask(&enforcer).await);
    let approval = approval();
    let accepted = alice.decide(&seen, approval.clone()).await.expect(200);
    assert_eq!(accepted.body("/verified"), false);
    let replayed = alice.decide(&unseen, approval.clone()).await;
    replayed.refused(409, "NONCE_REUSED");
    // Nor once it is known.
    register(&cluster, "alice").await;
    let replayed = alice.decide(&unseen, approval).await;
    replayed.refused(409, "NONCE_REUSED");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_signature_is_not_replayed_once_its_exchange_is_forgotten() {
    let month = 30 * DAY;
    let cluster = Cluster::with(1, |config| {
        config.retention.exchange_seconds = 3_600;
        config.retention.nonce_seconds = month.as_secs();
        config.retention.every_seconds = 1;
    })
    .await;
    let (enforcer, alice) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    register(&cluster, "alice").await;
    let approval = approval();
    let seen = ask(&enforcer).await;
    alice.decide(&seen, approval.clone()).await.expect(200);
    cluster.pass(Duration::from_secs(4_000));
    until("it is forgotten", Duration::from_secs(10), async || {
        enforcer.status(&seen).await.status == 404
    })
    .await;
    let unseen = request_id();
    let submitted = enforcer
        .submit(&unseen, "alice", sealed_for(20 * DAY))
        .await;
    submitted.expect(202);
    let replayed = alice.decide(&unseen, approval).await;
    replayed.refused(409, "NONCE_REUSED");
    assert_eq!(cluster.database.number(NONCES).await, 1);
    cluster.pass(month);
    until(
        "nonces are forgotten",
        Duration::from_secs(10),
        async || cluster.database.number(NONCES).await == 0,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whether_compact_decisions_are_accepted_is_a_setting() {
    let of = async |rule: CompactRule| {
        let cluster = Cluster::with(1, |config| config.decisions.compact = rule).await;
        register(&cluster, "alice").await;
        let (enforcer, alice) = (
            cluster.enforcer("build-bot").await,
            cluster.approver("alice").await,
        );
        let (first, second) = (ask(&enforcer).await, ask(&enforcer).await);
        let status = cluster.client(None).get("/v1/status").await.expect(200);
        let expected = json!({ "verify": "registered", "compact": rule.as_str() });
        assert_eq!(status.json()["decisions"], expected);
        (cluster, alice, first, second)
    };
    let approval = approval();
    let (_cluster, alice, first, second) = of(CompactRule::Allow).await;
    alice.decide(&first, approval.clone()).await.expect(200);
    alice.decide(&second, approval.clone()).await.expect(200);

    let (_cluster, alice, first, second) = of(CompactRule::Refuse).await;
    let refused = alice.decide(&first, approval.clone()).await;
    refused.refused_at(403, "POLICY_DENY", "/body/sigAlg");
    let bare = with(&approval, "/requestId", json!(second));
    let bare = alice.client.post("/v1/decision", &bare).await;
    bare.refused(403, "POLICY_DENY");
    let whole = signed(full(&first, HASH), &signing_key(1));
    alice.decide(&first, whole).await.expect(200);
}
