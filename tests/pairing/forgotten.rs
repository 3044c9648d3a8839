//! Pairings that were revoked and tokens that were replaced are forgotten in the end; what is in
//! force never is.

use std::time::Duration;

use serde_json::json;

use super::{PAIRINGS, REVOKE, pair, revocation, unaddressed};
use crate::support::exchanges::DAY;
use crate::support::{Answer, Cluster, Enforcer, in_time, request_id, until};

/// Submits by a token, this many days from now.
async fn submit(enforcer: &Enforcer, token: &str, days: i64) -> Answer {
    let mut message = unaddressed(enforcer, &request_id(), Some(token));
    message["body"]["expiresAt"] = json!(in_time((days + 1) * 24 * 3_600));
    enforcer.client.post("/v1/artifacts", &message).await
}

#[tokio::test(flavor = "multi_thread")]
async fn revoked_pairings_and_replaced_tokens_are_forgotten_after_their_time() {
    let cluster = Cluster::with(2, |config| {
        config.retention.every_seconds = 1;
        config.retention.pairing_seconds = 10 * 24 * 3_600;
    })
    .await;
    let enforcer = cluster.enforcer("build-bot").await;
    let (alice, bob) = (
        cluster.approver("alice").await,
        cluster.approver("bob").await,
    );
    let replaced = pair(&enforcer, &alice).await;
    let revoked = pair(&enforcer, &bob).await;
    // Long in force before they end: their time begins at their end.
    cluster.pass(20 * DAY);
    let current = pair(&enforcer, &alice).await;
    bob.client
        .post(REVOKE, &revocation(&revoked))
        .await
        .expect(200);
    cluster.pass(9 * DAY);
    let forgotten = "select count(*) from pairing_sessions";
    until("a pass is over", Duration::from_secs(10), async || {
        cluster.database.number(forgotten).await == 0
    })
    .await;
    for token in [&replaced, &revoked] {
        let refused = submit(&enforcer, token, 29).await;
        refused.refused(403, "PAIRING_REVOKED");
    }
    cluster.pass(2 * DAY);
    let left = "select (select count(*) from pairings) + (select count(*) from routing_tokens)";
    until("they are gone", Duration::from_secs(10), async || {
        cluster.database.number(left).await == 2
    })
    .await;
    for token in [&replaced, &revoked] {
        let refused = submit(&enforcer, token, 31).await;
        refused.refused(422, "NO_APPROVER");
    }
    // A pairing in force stays, however old.
    cluster.pass(100 * DAY);
    submit(&enforcer, &current, 131).await.expect(202);
    let listed = enforcer.client.get(PAIRINGS).await.expect(200);
    assert_eq!(listed.json()["items"][0]["routingToken"], current);
}
