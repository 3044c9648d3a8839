//! Withdrawing an exchange, and asking for it to be submitted again.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    Approver, Cluster, Enforcer, compact, envelope, in_time, raw, request_id, sealed_for, with,
    without,
};

const REFRESHES: &str = "select count(*) from messages where kind = 'refresh.request'";

async fn parties(nodes: usize) -> (Cluster, Enforcer, Approver) {
    let cluster = Cluster::start(nodes).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let alice = cluster.approver("alice").await;
    (cluster, enforcer, alice)
}

async fn pending(enforcer: &Enforcer) -> String {
    let request = request_id();
    let short = sealed_for(Duration::from_secs(600));
    enforcer.submit(&request, "alice", short).await.expect(202);
    request
}

/// Submits again what is decided, delivered, expired, withdrawn and cancelled by then.
async fn ended(cluster: &Cluster, enforcer: &Enforcer, alice: &Approver) -> [String; 5] {
    let requests = [
        pending(enforcer).await,
        pending(enforcer).await,
        pending(enforcer).await,
        pending(enforcer).await,
        pending(enforcer).await,
    ];
    for decided in &requests[..2] {
        alice.decide(decided, compact("approve")).await.expect(200);
    }
    let message = enforcer.wait(&requests[1], 5).await.json()["msgId"].clone();
    enforcer
        .ack(&requests[1], message.as_str().unwrap())
        .await
        .expect(200);
    enforcer.withdraw(&requests[3]).await.expect(200);
    let admin = cluster.admin().await;
    let cancel = format!("/platform/v1/exchanges/{}/cancel", requests[4]);
    admin.post(&cancel, &json!({})).await.expect(200);
    cluster.pass(Duration::from_secs(601));
    requests
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawn_exchange_is_gone_for_its_approver() {
    let (cluster, enforcer, alice) = parties(2).await;
    let request = pending(&enforcer).await;
    let kept = pending(&enforcer).await;
    let body = envelope(
        "exchange.withdrawn",
        &request,
        json!({ "enforcerId": "build-bot" }),
        json!({ "reason": "superseded" }),
    );
    let path = format!("/v1/exchanges/{request}/withdraw");
    let (waited, withdrawn) = tokio::join!(
        enforcer.wait(&request, 30),
        enforcer.client.post(&path, &body)
    );
    let withdrawn = withdrawn.expect(200).json();
    assert_eq!(withdrawn["msgType"], "exchange.withdrawn");
    assert_eq!(withdrawn["requestId"], request.as_str());
    assert!(withdrawn["expiresAt"].is_string());
    let at = withdrawn["body"]["withdrawnAt"].clone();
    assert_eq!(
        withdrawn["body"],
        json!({ "requestId": request, "state": "withdrawn", "withdrawnAt": at, "reason": "superseded" })
    );
    assert_eq!(waited.status, 204, "a waiter is released: {waited:?}");
    assert_eq!(waited.header("exchange-state"), Some("withdrawn"));
    assert_eq!(enforcer.state(&request).await, "withdrawn");
    assert_eq!(alice.inbox_ids().await, [kept.as_str()]);
    alice
        .decide(&request, compact("approve"))
        .await
        .refused(404, "NOT_FOUND");
    alice.remove(&request).await.refused(404, "NOT_FOUND");
    let row = "select recipient_kind || ' ' || recipient || ' ' || kind from messages";
    assert_eq!(
        cluster.database.text(row).await,
        "approver alice exchange.withdrawn"
    );
    let row = "select end_reason || ' ' || (ended_at is not null)
                 from exchanges where state = 'withdrawn'";
    assert_eq!(cluster.database.text(row).await, "superseded true");

    // Nothing at all is a withdrawal too, whatever it is said to be.
    let call = enforcer
        .client
        .call(Method::POST, &format!("/v1/exchanges/{kept}/withdraw"));
    let answer = call.send().await.expect(200);
    assert_eq!(answer.body("/state"), "withdrawn");
    assert!(answer.json()["body"].get("reason").is_none());
    let third = pending(&enforcer).await;
    let call = enforcer
        .client
        .call(Method::POST, &format!("/v1/exchanges/{third}/withdraw"));
    call.text("").send().await.expect(200);
    let fifth = pending(&enforcer).await;
    let head = format!(
        "POST /v1/exchanges/{fifth}/withdraw HTTP/1.1\r\nauthorization: Bearer {}\r\ntransfer-encoding: chunked",
        enforcer.client.key()
    );
    let url = enforcer.client.url(0);
    let something = raw::send(url, &head, b"2\r\n{}\r\n0\r\n\r\n").await;
    something.refused(415, "UNSUPPORTED_MEDIA_TYPE");
    assert_eq!(enforcer.state(&fifth).await, "pendingApproval");
    raw::send(url, &head, b"0\r\n\r\n").await.expect(200);
    let unbound = cluster.key(
        &cluster.tenant,
        countersign::store::identity::credential::RoleName::Enforcer,
        None,
    );
    let unbound = cluster.client(Some(&unbound.await));
    let fourth = pending(&enforcer).await;
    let call = unbound.call(Method::POST, &format!("/v1/exchanges/{fourth}/withdraw"));
    call.send().await.expect(200);
    assert!(alice.inbox_ids().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_pending_exchange_of_ones_own_can_be_withdrawn() {
    let (cluster, enforcer, alice) = parties(2).await;
    let other = cluster.enforcer("other-bot").await;
    let request = pending(&enforcer).await;
    let unknown = request_id();
    for (who, id) in [(&other, &request), (&enforcer, &unknown)] {
        let answer = who.withdraw(id).await.refused(404, "NOT_FOUND");
        assert_eq!(answer.body("/requestId"), id.as_str());
        let call = who
            .client
            .call(Method::POST, &format!("/v1/exchanges/{id}/withdraw"));
        call.send().await.refused(404, "NOT_FOUND");
    }
    let good = envelope(
        "exchange.withdrawn",
        &request,
        json!({ "enforcerId": "build-bot" }),
        json!({}),
    );
    let path = format!("/v1/exchanges/{request}/withdraw");
    let post = async |message: Value| enforcer.client.post(&path, &message).await;
    for pointer in [
        "/msgType",
        "/requestId",
        "/createdAt",
        "/sender",
        "/sender/enforcerId",
        "/body",
    ] {
        let answer = post(without(&good, pointer)).await;
        answer.refused_at(400, "VALIDATION", pointer);
    }
    for (pointer, value, code) in [
        ("/msgType", json!("exchange.withdraw"), "VALIDATION"),
        ("/requestId", json!(unknown), "VALIDATION"),
        ("/body/surprise", json!(1), "VALIDATION"),
        ("/body/reason", json!(1), "VALIDATION"),
        ("/body/reason", json!("x".repeat(2_001)), "VALIDATION"),
        ("/createdAt", json!(in_time(65)), "TIMESTAMP"),
    ] {
        post(with(&good, pointer, value))
            .await
            .refused_at(400, code, pointer);
    }
    let answer = post(with(&good, "/sender/enforcerId", json!("other-bot"))).await;
    answer.refused_at(403, "FORBIDDEN", "/sender/enforcerId");
    assert_eq!(enforcer.state(&request).await, "pendingApproval");

    let requests = ended(&cluster, &enforcer, &alice).await;
    let codes = [
        "ALREADY_DECIDED",
        "ALREADY_DECIDED",
        "EXPIRED",
        "INVALID_STATE",
        "INVALID_STATE",
    ];
    for (request, code) in requests.iter().zip(codes) {
        let state = enforcer.state(request).await;
        enforcer.withdraw(request).await.refused(409, code);
        assert_eq!(enforcer.state(request).await, state);
        other.withdraw(request).await.refused(404, "NOT_FOUND");
    }
    let messages = "select count(*) from messages where kind = 'exchange.withdrawn'";
    assert_eq!(cluster.database.number(messages).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_is_queued_once_until_the_enforcer_acknowledges_it() {
    let (cluster, enforcer, alice) = parties(3).await;
    let request = pending(&enforcer).await;
    let asked = alice
        .refresh(&request, json!({ "reason": "stale" }))
        .await
        .expect(202);
    let first = asked.json();
    assert_eq!(
        first,
        json!({
            "msgId": first["msgId"],
            "msgType": "refresh.request",
            "requestId": request,
            "createdAt": first["createdAt"],
            "sender": { "approverId": "alice", "gatewayId": "countersign" },
            "recipient": { "enforcerId": "build-bot" },
            "body": { "reason": "stale" },
        })
    );
    assert_eq!(asked.header("content-type"), Some("application/proto+json"));
    let admin = cluster.admin().await;
    let by_admin = envelope("refresh.request", &request, json!({}), json!({}));
    for path in [
        format!("/v1/requests/{request}/refresh"),
        format!("/v1/exchanges/{request}/refresh"),
    ] {
        let why = json!({ "reason": "another" });
        let again = envelope("refresh.request", &request, json!({}), why);
        let again = alice.client.post(&path, &again).await.expect(202);
        assert_eq!(again.json(), first, "the one that waits");
        assert_eq!(admin.post(&path, &by_admin).await.expect(202).json(), first);
    }
    assert_eq!(cluster.database.number(REFRESHES).await, 1);

    let message = first["msgId"].as_str().unwrap();
    let other = cluster.enforcer("other-bot").await;
    other.ack(&request, message).await.refused(404, "NOT_FOUND");
    alice.ack(&request, message).await.refused(404, "NOT_FOUND");
    let acked = enforcer.ack(&request, message).await.expect(200);
    assert_eq!(acked.body("/msgId"), message);
    enforcer.ack(&request, message).await.expect(200);
    assert_eq!(enforcer.state(&request).await, "pendingApproval");

    cluster.pass(Duration::from_secs(601));
    let path = format!("/v1/requests/{request}/refresh");
    let next = admin.post(&path, &by_admin).await.expect(202).json();
    assert_ne!(next["msgId"], first["msgId"]);
    assert_eq!(next["body"], json!({}));
    assert_eq!(next["sender"], json!({ "gatewayId": "countersign" }));
    assert_eq!(cluster.database.number(REFRESHES).await, 2);
    assert_eq!(
        enforcer.state(&request).await,
        "expired",
        "a refresh changes no state"
    );

    let sends = (0..6).map(|_| alice.refresh(&request, json!({})));
    for answer in futures_util::future::join_all(sends).await {
        assert_eq!(answer.expect(202).json()["msgId"], next["msgId"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_is_for_those_who_were_asked_about_what_is_still_open() {
    let (cluster, enforcer, alice) = parties(1).await;
    let request = pending(&enforcer).await;
    let unknown = request_id();
    let bob = cluster.approver("bob").await;
    bob.refresh(&request, json!({}))
        .await
        .refused(404, "NOT_FOUND");
    alice
        .refresh(&unknown, json!({}))
        .await
        .refused(404, "NOT_FOUND");
    let path = format!("/v1/exchanges/{request}/refresh");
    let good = envelope(
        "refresh.request",
        &request,
        json!({ "approverId": "alice" }),
        json!({}),
    );
    let post = async |message: Value| alice.client.post(&path, &message).await;
    for (pointer, value) in [
        ("/msgType", json!("refresh")),
        ("/requestId", json!(unknown)),
        ("/body/surprise", json!(1)),
        ("/body/reason", json!(null)),
        ("/body/reason", json!("x".repeat(2_001))),
        ("/surprise", json!(1)),
    ] {
        let answer = post(with(&good, pointer, value)).await;
        answer.refused_at(400, "VALIDATION", pointer);
    }
    let answer = post(with(&good, "/sender/approverId", json!("bob"))).await;
    answer.refused_at(403, "FORBIDDEN", "/sender/approverId");
    let enforcers = enforcer.client.post(&path, &good).await;
    enforcers.refused(403, "FORBIDDEN");
    assert_eq!(cluster.database.number(REFRESHES).await, 0);

    // Removed from the inbox, alice was still asked.
    alice.remove(&request).await.expect(200);
    alice.refresh(&request, json!({})).await.expect(202);

    let requests = ended(&cluster, &enforcer, &alice).await;
    for (index, state) in [
        (0, "decided"),
        (1, "delivered"),
        (3, "withdrawn"),
        (4, "cancelled"),
    ] {
        let answer = alice.refresh(&requests[index], json!({})).await;
        let answer = answer.refused(409, "INVALID_STATE");
        assert_eq!(answer.detail("state"), state);
        bob.refresh(&requests[index], json!({}))
            .await
            .refused(404, "NOT_FOUND");
    }
    alice.refresh(&requests[2], json!({})).await.expect(202);
    assert_eq!(cluster.database.number(REFRESHES).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ciphertext_is_replaced_while_it_is_pending_and_by_its_enforcer_alone() {
    let (cluster, enforcer, alice) = parties(2).await;
    let (request, life) = (request_id(), sealed_for(Duration::from_secs(600)));
    let submission = enforcer.submission(&request, "alice", life);
    let sent = enforcer.client.post("/v1/artifacts", &submission).await;
    sent.expect(202);
    let path = format!("/v1/exchanges/{request}/ciphertext");
    let put = async |client: &crate::support::Client, body: &Value| {
        client.call(Method::PUT, &path).json(body).send().await
    };
    let again = with(&submission, "/body/ciphertext/data", json!("YWdhaW4"));
    put(&enforcer.client, &again).await.expect(204);
    put(&enforcer.client, &again).await.expect(204);
    let inbox = alice.client.get("/v1/approvers/alice/inbox").await;
    let inbox = inbox.expect(200).json();
    let item = &inbox["body"]["items"][0]["body"];
    assert_eq!(item["ciphertext"]["data"], "YWdhaW4");
    assert_eq!(item["artifactHash"], submission["body"]["artifactHash"]);

    let hash = json!("0".repeat(64));
    for (pointer, value) in [
        ("/body/artifactHash", hash),
        ("/body/artifactType", json!("plan.review")),
        ("/body/expiresAt", json!(in_time(900))),
    ] {
        let other = with(&submission, pointer, value);
        put(&enforcer.client, &other)
            .await
            .refused(409, "ALREADY_EXISTS");
    }
    let another = with(&submission, "/requestId", json!(request_id()));
    put(&enforcer.client, &another)
        .await
        .refused(400, "VALIDATION");
    let stranger = cluster.enforcer("stranger").await;
    let foreign = with(&submission, "/sender/enforcerId", json!("stranger"));
    put(&stranger.client, &foreign)
        .await
        .refused(404, "NOT_FOUND");
    put(&stranger.client, &again)
        .await
        .refused(403, "FORBIDDEN");
    put(&alice.client, &again).await.refused(403, "FORBIDDEN");
    let count = "select count(*) from exchange_payloads where body::text like '%YWdhaW4%'";
    assert_eq!(cluster.database.number(count).await, 1);

    alice.decide(&request, compact("approve")).await.expect(200);
    put(&enforcer.client, &submission)
        .await
        .refused(409, "ALREADY_DECIDED");
    assert_eq!(
        cluster.database.number(count).await,
        1,
        "nothing was replaced"
    );
    let late = pending(&enforcer).await;
    enforcer.withdraw(&late).await.expect(200);
    let body = with(&submission, "/requestId", json!(late));
    let path = format!("/v1/exchanges/{late}/ciphertext");
    let refused = enforcer.client.call(Method::PUT, &path).json(&body).send();
    assert_eq!(refused.await.status, 409);
}
