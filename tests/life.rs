//! The life of an exchange, as its three parties live it.

use std::time::Duration;

use serde_json::json;

use crate::support::{Cluster, compact, request_id, sealed, sealed_for, until};

#[tokio::test(flavor = "multi_thread")]
async fn an_exchange_goes_from_submission_to_delivery_across_nodes() {
    let cluster = Cluster::start(3).await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    let request = request_id();

    let accepted = enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    assert_eq!(
        accepted.header("content-type"),
        Some("application/proto+json")
    );
    assert_eq!(accepted.json()["msgType"], "artifact.accepted");
    assert_eq!(accepted.body("/state"), "pendingApproval");
    assert_eq!(accepted.body("/duplicate"), false);

    let page = approver.inbox("").await.expect(200);
    assert_eq!(page.json()["msgType"], "inbox.page");
    let item = page.body("/items/0");
    assert_eq!(item["msgType"], "approval.request");
    assert_eq!(item["requestId"], request.as_str());
    assert_eq!(item["body"]["enforcerId"], "build-bot");
    assert_eq!(page.body("/nextCursor"), json!(null));
    approver
        .ack(&request, item["msgId"].as_str().unwrap())
        .await
        .expect(200);
    assert_eq!(
        approver.inbox_ids().await,
        [request.as_str()],
        "an acknowledged item stays until it is decided"
    );

    let decision = compact("approve");
    let decided = approver
        .decide(&request, decision.clone())
        .await
        .expect(200);
    assert_eq!(decided.json()["msgType"], "decision.accepted");
    assert_eq!(decided.body("/decision"), "approve");
    assert_eq!(decided.body("/verified"), false);
    assert!(approver.inbox_ids().await.is_empty());

    let delivered = enforcer.wait(&request, 5).await.expect(200);
    assert_eq!(delivered.json()["msgType"], "decision.deliver");
    assert_eq!(delivered.json()["body"], decision);
    let message = delivered.json()["msgId"].as_str().unwrap().to_owned();
    assert_eq!(enforcer.state(&request).await, "decided");
    enforcer.ack(&request, &message).await.expect(200);
    assert_eq!(enforcer.state(&request).await, "delivered");
    enforcer.ack(&request, &message).await.expect(200);
    let again = enforcer.wait(&request, 5).await.expect(200);
    assert_eq!(
        again.json()["msgId"],
        message.as_str(),
        "the same message until the end of retention"
    );

    let events = "select string_agg(coalesce(from_state, '-') || '>' || to_state || ' ' || actor, ',' order by at)
                  from exchange_events";
    assert_eq!(
        cluster.database.text(events).await,
        "->pendingApproval enforcer:build-bot,pendingApproval>decided approver:alice,decided>delivered enforcer:build-bot"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exchange_expires_at_its_time_whether_or_not_a_sweep_has_been_by() {
    let cluster = Cluster::start(2).await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed_for(Duration::from_secs(600)))
        .await
        .expect(202);

    cluster.pass(Duration::from_secs(601));
    assert_eq!(enforcer.state(&request).await, "expired");
    approver
        .decide(&request, compact("approve"))
        .await
        .refused(409, "EXPIRED");
    assert!(approver.inbox_ids().await.is_empty());
    assert_eq!(approver.expired_ids().await, [request.as_str()]);
    assert_eq!(
        approver.expired("").await.body("/items/0/body/state"),
        "expired"
    );

    let swept = "select count(*) from exchanges where state = 'expired' and ended_at = expires_at";
    until(
        "the sweep writes it down",
        Duration::from_secs(10),
        async || cluster.database.number(swept).await == 1,
    )
    .await;
    assert_eq!(approver.expired_ids().await, [request.as_str()]);
    approver.remove(&request).await.expect(200);
    assert!(approver.expired_ids().await.is_empty());
    approver.remove(&request).await.refused(404, "NOT_FOUND");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_that_names_nobody_any_more_is_still_a_repeat() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let request = request_id();
    let mut submission = enforcer.submission(&request, "alice", sealed());
    enforcer
        .client
        .post("/v1/artifacts", &submission)
        .await
        .expect(202);
    submission.as_object_mut().unwrap().remove("recipient");
    let repeated = enforcer
        .client
        .post("/v1/artifacts", &submission)
        .await
        .expect(202);
    assert_eq!(repeated.body("/duplicate"), true);
    submission["requestId"] = json!(request_id());
    let refused = enforcer.client.post("/v1/artifacts", &submission).await;
    refused.refused_at(422, "NO_APPROVER", "/recipient/approverId");
    assert_eq!(
        cluster
            .database
            .number("select count(*) from exchanges")
            .await,
        1
    );
}
