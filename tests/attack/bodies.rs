//! Bodies that cost more to read than to send.

use std::sync::atomic::{AtomicUsize, Ordering};

use countersign::store::identity::credential::RoleName;
use futures_util::future::{join, join_all};
use serde_json::json;

use super::honest_exchange;
use super::peers::{PATIENCE, memory};
use crate::support::{Client, Cluster, request_id, sealed, until, with};

/// Somebody of another tenant.
async fn mallory(cluster: &Cluster) -> Client {
    let other = cluster.administration.create_tenant("other").await.unwrap();
    let key = cluster.key(&other, RoleName::Enforcer, Some("mallory"));
    cluster.client(Some(&key.await))
}

/// A snapshot of so many values.
fn snapshot(values: usize) -> Vec<u8> {
    let values = "1,".repeat(values);
    let body =
        format!(r#"{{"sessionId":"s","eventType":"session.snapshot","payload":[{values}1]}}"#);
    body.into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_of_a_million_values_are_refused_and_others_go_on() {
    let cluster = Cluster::start(1).await;
    let (enforcer, approver) = (
        cluster.enforcer("honest-bot").await,
        cluster.approver("alice").await,
    );
    let (mallory, body) = (mallory(&cluster).await, snapshot(1_000_000));
    let attack = join_all((0..16).map(async |_| {
        let call = mallory.call(reqwest::Method::POST, "/v1/session/event");
        let call = call.header("content-type", "application/json");
        call.bytes(body.clone()).send().await
    }));
    let honest = async {
        for _ in 0..20 {
            honest_exchange(&enforcer, &approver).await;
        }
    };
    let (answers, ()) = join(attack, honest).await;
    for answer in answers {
        let refused = answer.refused(400, "MALFORMED_JSON");
        assert!(refused.text.contains("250,000 values"), "{refused:?}");
    }
    let stored = "select count(*) from sessions";
    assert_eq!(cluster.database.number(stored).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_of_one_tenant_wait_for_each_other_and_not_in_front_of_others() {
    const BODIES: usize = 32;
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("honest-bot").await;
    let (mallory, body) = (mallory(&cluster).await, snapshot(260_000));
    let parsed = AtomicUsize::new(0);
    let attack = join_all((0..BODIES).map(async |_| {
        let call = mallory.call(reqwest::Method::POST, "/v1/session/event");
        let call = call.header("content-type", "application/json");
        let answer = call.bytes(body.clone()).send().await;
        answer.refused(400, "MALFORMED_JSON");
        parsed.fetch_add(1, Ordering::Relaxed);
    }));
    let honest = async {
        #[expect(clippy::cast_precision_loss, reason = "bytes")]
        let waiting = (body.len() * BODIES / 2) as f64;
        until("half of them wait", PATIENCE, async || {
            memory(&cluster).await > waiting
        })
        .await;
        let large = json!("x".repeat(100 << 10));
        let large = with(&sealed(), "/ciphertext/data", large);
        let taken = enforcer.submit(&request_id(), "alice", large).await;
        taken.expect(202);
        parsed.load(Ordering::Relaxed)
    };
    let (_, before) = join(attack, honest).await;
    println!("{before} of {BODIES} large bodies of another tenant were parsed first");
    assert!(before < BODIES * 3 / 4, "{before}");
}
