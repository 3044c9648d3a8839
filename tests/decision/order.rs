//! Which fault is named when there are several.

use std::time::Duration;

use serde_json::{Value, json};

use super::{parties, pending};
use crate::support::{
    Approver, HASH, OTHER_HASH, compact, full, in_time, open, public_key, request_id, sealed_for,
    signing_key,
};

#[tokio::test(flavor = "multi_thread")]
async fn faults_are_judged_in_their_order() {
    let (cluster, enforcer, approver) = parties(1).await;
    let carol = cluster.approver("carol").await;
    let key = signing_key(1);
    let admin = cluster.admin().await;
    let bad_hash = |mut body: Value| {
        body["artifactHash"] = json!(OTHER_HASH);
        body
    };
    // Shape before everything; then its own end; then the signature, though the exchange does not
    // exist.
    let keys = "/platform/v1/approvers/carol/keys/key-1";
    let registered = json!({ "publicKey": public_key(&key) });
    admin.put(keys, &registered).await.expect(200);
    let unknown = request_id();
    let mut body = bad_hash(full(&unknown, HASH));
    body["expiresAt"] = json!(in_time(-5));
    body["signature"] = json!("short");
    let answer = carol.decide(&unknown, body.clone()).await;
    answer.refused_at(400, "VALIDATION", "/body/signature");
    body["signature"] = compact("approve")["signature"].clone();
    carol
        .decide(&unknown, body.clone())
        .await
        .refused(400, "EXPIRED");
    body["expiresAt"] = json!(in_time(60));
    let answer = carol.decide(&unknown, body).await;
    answer.refused(403, "SIGNATURE_INVALID");

    // Unknown, not asked, withdrawn, cancelled: 404 whatever else is wrong.
    let short = bad_hash(compact("approve"));
    let not_found = async |request: &str, who: &Approver| {
        let answer = who.decide(request, short.clone()).await;
        let answer = answer.refused(404, "NOT_FOUND");
        assert_eq!(answer.body("/requestId"), request);
        let message = answer.body("/message");
        assert_eq!(message, "not found, or not visible to this caller");
    };
    let asked = pending(&enforcer).await;
    not_found(&unknown, &approver).await;
    not_found(&asked, &cluster.approver("dave").await).await;
    enforcer.withdraw(&asked).await.expect(200);
    not_found(&asked, &approver).await;
    let cancelled = pending(&enforcer).await;
    let cancel = format!("/platform/v1/exchanges/{cancelled}/cancel");
    admin.post(&cancel, &json!({})).await.expect(200);
    not_found(&cancelled, &approver).await;

    // Decided, and past its end, and about another artifact: decided comes first, to everyone who
    // was asked.
    let request = request_id();
    let life = Duration::from_secs(60);
    enforcer
        .submit(&request, "alice", sealed_for(life))
        .await
        .expect(202);
    let expired = request_id();
    enforcer
        .submit(&expired, "alice", sealed_for(life))
        .await
        .expect(202);
    let decision = compact("approve");
    approver
        .decide(&request, decision.clone())
        .await
        .expect(200);
    cluster.pass(Duration::from_secs(120));
    let answer = approver.decide(&request, short.clone()).await;
    let answer = answer.refused(409, "ALREADY_DECIDED");
    assert_eq!(answer.detail("conflict"), "AlreadyDecidedConflict");
    not_found(&request, &cluster.approver("dave").await).await;
    let again = approver.decide(&request, decision).await.expect(200);
    assert_eq!(again.body("/duplicate"), true);
    // Expired before the hash is looked at.
    let answer = approver.decide(&expired, short.clone()).await;
    answer.refused(409, "EXPIRED");

    // The hash before the repository.
    let artifact = open(&request_id());
    let request = artifact["requestId"].as_str().unwrap().to_owned();
    let hash = artifact["artifactHash"].as_str().unwrap().to_owned();
    enforcer
        .submit(&request, "alice", artifact)
        .await
        .expect(202);
    let mut body = bad_hash(full(&request, &hash));
    body["repoRef"] = json!("repo:acme/other");
    body["expiresAt"] = json!(in_time(3_600));
    let answer = approver.decide(&request, body.clone()).await;
    answer.refused_at(400, "HASH_MISMATCH", "/body/artifactHash");
    body["artifactHash"] = json!(hash);
    let answer = approver.decide(&request, body.clone()).await;
    answer.refused_at(400, "VALIDATION", "/body/repoRef");
    assert_eq!(enforcer.state(&request).await, "pendingApproval");
    body["repoRef"] = json!("repo:acme/widgets");
    approver.decide(&request, body).await.expect(200);
}
