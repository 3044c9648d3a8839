//! Exchanges between the two parties that most tests have, as far along as a test needs them.

use std::time::Duration;

use super::{Approver, Cluster, Enforcer, compact, request_id, sealed_for};

/// A day.
pub const DAY: Duration = Duration::from_secs(24 * 3_600);

/// The two parties.
pub async fn parties(cluster: &Cluster) -> (Enforcer, Approver) {
    (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    )
}

/// Submits and decides.
pub async fn decided(enforcer: &Enforcer, approver: &Approver) -> String {
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed_for(20 * DAY))
        .await
        .expect(202);
    approver
        .decide(&request, compact("reject"))
        .await
        .expect(200);
    request
}

/// Submits, decides and acknowledges.
pub async fn delivered(enforcer: &Enforcer, approver: &Approver) -> String {
    let request = decided(enforcer, approver).await;
    let message = enforcer.wait(&request, 5).await.expect(200).json()["msgId"].clone();
    enforcer
        .ack(&request, message.as_str().unwrap())
        .await
        .expect(200);
    request
}

/// Submits for this long.
pub async fn pending(enforcer: &Enforcer, life: Duration) -> String {
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed_for(life))
        .await
        .expect(202);
    request
}
