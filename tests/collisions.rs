//! Idempotency keys and request ids that collide on two nodes at once: each collision is told to
//! its own caller, and batches stay whole.

use futures_util::future::{join, join_all};
use reqwest::Method;
use serde_json::{Value, json};

use crate::batches::{scene, submit_keyed, uncommitted_twin};
use crate::support::database::finish;
use crate::support::scrape::scrape;
use crate::support::{Cluster, Enforcer, HASH, OTHER_HASH, counts, now, request_id, sealed, tally};

/// How often a batch of a statement did not go through at once, on all nodes.
async fn retried(cluster: &Cluster, statement: &str) -> f64 {
    let labels = [("statement", statement), ("outcome", "retried")];
    let mut sum = 0.0;
    for node in &cluster.nodes {
        let read = scrape(&node.metrics).await;
        sum += read.count("countersign_batch_trouble_total", &labels);
    }
    sum
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_collide_on_two_nodes_split_no_batch() {
    let (cluster, enforcer, _) = scene().await;
    let (here, there) = (enforcer.on(0), enforcer.on(1));
    let (mut pairs, mut same) = (0, 0);
    for turn in 0..10 {
        let keys: Vec<String> = (0..60).map(|n| format!("key-{turn}-{n}")).collect();
        // Every third pair is the same request twice, the others are two requests with one key.
        let calls = keys.iter().enumerate().map(async |(n, key)| {
            let (first, second) = (request_id(), request_id());
            let body = sealed();
            let second = if n % 3 == 0 { &first } else { &second };
            let mut twice = [
                here.submission(&first, "alice", body.clone()),
                there.submission(second, "alice", body),
            ];
            if n % 3 == 0 {
                twice[1] = twice[0].clone();
            }
            let send = async |enforcer: &Enforcer, envelope: &Value| {
                let call = enforcer.client.call(Method::POST, "/v1/artifacts");
                call.header("idempotency-key", key)
                    .json(envelope)
                    .send()
                    .await
            };
            let (one, two) = join(send(&here, &twice[0]), send(&there, &twice[1])).await;
            (n % 3 == 0, [one, two])
        });
        for (repeated, answers) in join_all(calls).await {
            let refused = if repeated {
                "202 duplicate"
            } else {
                "409 IDEMPOTENCY_KEY_REUSED"
            };
            assert_eq!(tally(&answers), counts([("202", 1), (refused, 1)]));
            pairs += 1;
            same += usize::from(repeated);
        }
    }
    assert!(pairs == 600 && same == 200);
    assert!(
        retried(&cluster, "submit").await < 1.0,
        "no batch was split"
    );
    for table in [
        "exchanges",
        "idempotency_keys",
        "exchange_payloads",
        "inbox_items",
    ] {
        let count = cluster
            .database
            .number(&format!("select count(*) from {table}"))
            .await;
        assert_eq!(count, 600, "{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_bound_meanwhile_fails_its_own_request_and_splits_no_batch() {
    let (cluster, enforcer, approver) = scene().await;
    let (enforcer, approver) = (enforcer.on(0), approver.on(0));
    submit_keyed(&enforcer, &request_id(), sealed(), "first")
        .await
        .expect(202);
    let prompt = |id: &str| {
        json!({
            "requestId": id, "artifactType": "prompt.send", "createdAt": now(), "target": "tool",
            "ciphertext": { "alg": "a", "data": "d" }, "metadata": { "enforcerId": "build-bot" },
            "promptHashAlg": "SHA-256", "promptHash": HASH,
        })
    };
    let prompt_keyed = async |key: &str| {
        let call = approver
            .client
            .call(Method::POST, "/v1/prompt")
            .header("idempotency-key", key);
        call.json(&prompt(&request_id())).send().await
    };
    prompt_keyed("first").await.expect(202);
    // Both principals.
    let bind = "insert into idempotency_keys (tenant_id, principal, key, fingerprint, submission_id, request_id, expires_at)
                select tenant_id, principal, 'second', '\\x00', gen_random_uuid(), 'elsewhere', expires_at
                  from idempotency_keys";
    let mut bound = cluster.database.holding(bind).await;
    let submissions = join_all((0..40).map(|n| {
        let key = if n == 20 {
            "second".to_owned()
        } else {
            format!("other-{n}")
        };
        let enforcer = &enforcer;
        async move { submit_keyed(enforcer, &request_id(), sealed(), &key).await }
    }));
    let prompts = join_all((0..40).map(|n| {
        let key = if n == 20 {
            "second".to_owned()
        } else {
            format!("other-{n}")
        };
        let prompt_keyed = &prompt_keyed;
        async move { prompt_keyed(&key).await }
    }));
    let binding = async {
        cluster
            .database
            .blocked_in("form, artifact_type, artifact_hash, repo_ref")
            .await;
        cluster
            .database
            .blocked_in("approver_id, recipient, fallback")
            .await;
        finish(&mut bound, "commit").await;
    };
    let (submissions, prompts, ()) = tokio::join!(submissions, prompts, binding);
    for answers in [submissions, prompts] {
        assert_eq!(
            tally(&answers),
            counts([("202", 39), ("409 IDEMPOTENCY_KEY_REUSED", 1)])
        );
    }
    for statement in ["submit", "submit_prompt"] {
        assert!(
            retried(&cluster, statement).await < 1.0,
            "{statement}: no batch was split"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_refused_because_its_id_was_just_taken_binds_no_key() {
    let (cluster, enforcer, _) = scene().await;
    let request = request_id();
    let mut twin = uncommitted_twin(&cluster, &request, OTHER_HASH).await;
    let (answer, ()) = join(submit_keyed(&enforcer, &request, sealed(), "key"), async {
        cluster
            .database
            .blocked_in("form, artifact_type, artifact_hash, repo_ref")
            .await;
        finish(&mut twin, "commit").await;
    })
    .await;
    answer.refused(409, "ALREADY_EXISTS");
    let keys = "select count(*) from idempotency_keys";
    assert_eq!(cluster.database.number(keys).await, 0);
    submit_keyed(&enforcer, &request_id(), sealed(), "key")
        .await
        .expect(202);
}
