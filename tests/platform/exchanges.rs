//! The listing of exchanges, and their cancellation by an administrator.

use std::time::Duration;

use countersign::store::identity::credential::RoleName;
use reqwest::Method;
use serde_json::{Value, json};

use super::items;
use crate::support::{
    Answer, Client, Cluster, HASH, compact, in_time, request_id, sealed, sealed_for, with,
};

const LISTING: &str = "/platform/v1/exchanges";

fn ids(answer: &Answer) -> Vec<String> {
    let lines = items(answer);
    lines
        .iter()
        .map(|line| line["requestId"].as_str().unwrap().to_owned())
        .collect()
}

async fn list(client: &Client, query: &str) -> Vec<String> {
    ids(&client.get(&format!("{LISTING}{query}")).await.expect(200))
}

#[tokio::test(flavor = "multi_thread")]
async fn exchanges_are_listed_by_state_enforcer_and_approver_without_their_payloads() {
    let cluster = Cluster::start(1).await;
    let admin = cluster.admin().await;
    let (bot, other) = (
        cluster.enforcer("build-bot").await,
        cluster.enforcer("other-bot").await,
    );
    let (alice, bob) = (
        cluster.approver("alice").await,
        cluster.approver("bob").await,
    );
    let requests: Vec<_> = (0..7).map(|_| request_id()).collect();
    let mut body = sealed_for(Duration::from_secs(7_200));
    body["ciphertext"]["data"] = json!("UEFZTE9BRA");
    body["metadata"] = json!({ "title": "PAYLOAD" });
    for request in &requests[..5] {
        bot.submit(request, "alice", body.clone()).await.expect(202);
    }
    let short = sealed_for(Duration::from_secs(600));
    bot.submit(&requests[5], "alice", short).await.expect(202);
    other
        .submit(&requests[6], "bob", body.clone())
        .await
        .expect(202);
    for decided in &requests[1..3] {
        let decision = with(&compact("reject"), "/reason", json!("PAYLOAD"));
        alice.decide(decided, decision).await.expect(200);
    }
    let message = bot.wait(&requests[2], 5).await.json()["msgId"].clone();
    bot.ack(&requests[2], message.as_str().unwrap())
        .await
        .expect(200);
    bot.withdraw(&requests[3]).await.expect(200);
    let cancel = format!("{LISTING}/{}/cancel", requests[4]);
    admin.post(&cancel, &json!({})).await.expect(200);
    cluster.pass(Duration::from_secs(601));

    let pick = |indices: &[usize]| -> Vec<String> {
        indices.iter().map(|i| requests[*i].clone()).collect()
    };
    for (query, expected) in [
        ("", vec![6, 5, 4, 3, 2, 1, 0]),
        ("?state=pendingApproval", vec![6, 0]),
        ("?state=decided", vec![1]),
        ("?state=delivered", vec![2]),
        ("?state=withdrawn", vec![3]),
        ("?state=cancelled", vec![4]),
        ("?state=expired", vec![5]),
        ("?enforcerId=other-bot", vec![6]),
        ("?enforcerId=nobody", vec![]),
        ("?approverId=alice", vec![5, 4, 3, 2, 1, 0]),
        ("?approverId=bob&enforcerId=build-bot", vec![]),
        (
            "?approverId=bob&enforcerId=other-bot&state=pendingApproval",
            vec![6],
        ),
    ] {
        assert_eq!(list(&admin, query).await, pick(&expected), "{query}");
    }
    let all = admin.get(LISTING).await.expect(200);
    assert_eq!(all.json()["nextCursor"], Value::Null);
    for secret in [
        "UEFZTE9BRA",
        "PAYLOAD",
        "ciphertext",
        "metadata",
        "nonce",
        "signature",
    ] {
        assert!(!all.text.contains(secret), "{secret}: {}", all.text);
    }
    let mut lines = items(&all);
    lines.reverse();
    assert_eq!(
        lines[2],
        json!({
            "requestId": requests[2],
            "state": "delivered",
            "enforcerId": "build-bot",
            "approverIds": ["alice"],
            "artifactType": "command.review",
            "artifactHash": HASH,
            "createdAt": lines[2]["createdAt"],
            "expiresAt": crate::support::printed(&body["expiresAt"]),
            "decision": "reject",
            "decidedBy": "alice",
            "decidedAt": lines[2]["decidedAt"],
            "verified": false,
            "deliveredAt": lines[2]["deliveredAt"],
        })
    );
    assert!(lines[0].get("decision").is_none());

    // An enforcer sees its own, an unbound one any it may act as, an approver none.
    assert_eq!(list(&other.client, "").await, pick(&[6]));
    assert_eq!(
        list(&other.client, "?enforcerId=other-bot").await,
        pick(&[6])
    );
    assert_eq!(list(&bot.client, "?approverId=bob").await, pick(&[]));
    let unbound = cluster.key(&cluster.tenant, RoleName::Enforcer, None).await;
    let unbound = cluster.client(Some(&unbound));
    assert_eq!(list(&unbound, "").await.len(), 7);
    assert_eq!(list(&unbound, "?enforcerId=other-bot").await, pick(&[6]));
    bob.client.get(LISTING).await.refused(403, "FORBIDDEN");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_listing_is_paged_and_its_parameters_are_checked() {
    let cluster = Cluster::with(2, |config| {
        config.limits.page_default = 2;
        config.limits.page_max = 3;
    })
    .await;
    let admin = cluster.admin().await;
    let bot = cluster.enforcer("build-bot").await;
    let mut requests = Vec::new();
    for _ in 0..5 {
        let request = request_id();
        bot.submit(&request, "alice", sealed()).await.expect(202);
        requests.insert(0, request);
    }
    let (mut query, mut seen) = (String::new(), Vec::new());
    loop {
        let page = admin.get(&format!("{LISTING}{query}")).await.expect(200);
        seen.push(ids(&page));
        match page.json()["nextCursor"].as_str() {
            Some(next) => query = format!("?cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, [&requests[..2], &requests[2..4], &requests[4..]]);
    assert_eq!(list(&admin, "?limit=200").await, requests[..3]);
    let page = admin
        .get(&format!("{LISTING}?limit=1&state=pendingApproval"))
        .await
        .expect(200);
    let cursor = page.json()["nextCursor"].as_str().unwrap().to_owned();
    let same = format!("?limit=3&state=pendingApproval&cursor={cursor}");
    assert_eq!(
        list(&admin, &same).await,
        requests[1..4],
        "another limit is the same listing"
    );

    for (query, parameter) in [
        (format!("?cursor={cursor}"), "cursor"),
        (format!("?state=decided&cursor={cursor}"), "cursor"),
        ("?cursor=AAAA".to_owned(), "cursor"),
        ("?limit=0".to_owned(), "limit"),
        ("?limit=x".to_owned(), "limit"),
        ("?state=pending".to_owned(), "state"),
        ("?state=".to_owned(), "state"),
        ("?enforcerId=".to_owned(), "enforcerId"),
        ("?approverId=a%0Ab".to_owned(), "approverId"),
    ] {
        let answer = admin.get(&format!("{LISTING}{query}")).await;
        let answer = answer.refused(400, "VALIDATION");
        assert_eq!(answer.detail("parameter"), parameter, "{query}");
    }
    let twice = admin
        .get(&format!("{LISTING}?state=decided&state=expired"))
        .await;
    twice.refused(400, "VALIDATION");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_cancels_what_is_pending_and_nothing_else() {
    let cluster = Cluster::start(2).await;
    let admin = cluster.admin().await;
    let bot = cluster.enforcer("build-bot").await;
    let alice = cluster.approver("alice").await;
    let pending = async || {
        let request = request_id();
        let short = sealed_for(Duration::from_secs(600));
        bot.submit(&request, "alice", short).await.expect(202);
        (format!("{LISTING}/{request}/cancel"), request)
    };
    let (path, request) = pending().await;
    for (body, pointer) in [
        (json!({ "reason": 7 }), "/reason"),
        (json!({ "reason": "x".repeat(2_001) }), "/reason"),
        (json!({ "surprise": 1 }), "/surprise"),
        (json!("text"), ""),
    ] {
        let answer = admin.post(&path, &body).await;
        answer.refused_at(400, "VALIDATION", pointer);
    }
    assert_eq!(bot.state(&request).await, "pendingApproval");
    let reason = json!({ "reason": "an incident" });
    let (waited, answer) = tokio::join!(bot.wait(&request, 30), admin.post(&path, &reason));
    let answer = answer.expect(200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(
        answer.json(),
        json!({ "requestId": request, "state": "cancelled" })
    );
    assert_eq!(
        (waited.status, waited.header("exchange-state")),
        (204, Some("cancelled"))
    );
    assert_eq!(bot.state(&request).await, "cancelled");
    assert!(alice.inbox_ids().await.is_empty());
    alice
        .decide(&request, compact("approve"))
        .await
        .refused(404, "NOT_FOUND");
    let actor = "select to_state || ' ' || split_part(actor, ':', 1) || ' '
                        || (split_part(actor, ':', 2) in (select credential_id from credentials where role = 'admin'))
                   from exchange_events where from_state is not null";
    assert_eq!(cluster.database.text(actor).await, "cancelled admin true");
    let told = "select kind || ' ' || recipient from messages";
    assert_eq!(
        cluster.database.text(told).await,
        "exchange.withdrawn alice"
    );
    let answer = admin
        .post(&path, &reason)
        .await
        .refused(409, "INVALID_STATE");
    assert_eq!(answer.detail("state"), "cancelled");

    let (nothing, _) = pending().await;
    admin.call(Method::POST, &nothing).send().await.expect(200);
    let (decided, request) = pending().await;
    alice.decide(&request, compact("approve")).await.expect(200);
    admin
        .post(&decided, &json!({}))
        .await
        .refused(409, "ALREADY_DECIDED");
    let (withdrawn, request) = pending().await;
    bot.withdraw(&request).await.expect(200);
    admin
        .post(&withdrawn, &json!({}))
        .await
        .refused(409, "INVALID_STATE");
    let (expired, request) = pending().await;
    cluster.pass(Duration::from_secs(601));
    admin
        .post(&expired, &json!({}))
        .await
        .refused(409, "EXPIRED");
    assert_eq!(bot.state(&request).await, "expired");
    let unknown = format!("{LISTING}/unknown/cancel");
    let answer = admin.post(&unknown, &json!({})).await;
    let answer = answer.refused(404, "NOT_FOUND");
    assert!(
        answer.json()["requestId"].is_null(),
        "transport JSON has no such member"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_changes_nothing() {
    let cluster = Cluster::start(1).await;
    let admin = cluster.admin().await;
    let bot = cluster.enforcer("build-bot").await;
    let alice = cluster.approver("alice").await;
    let (open, decided) = (request_id(), request_id());
    for request in [&open, &decided] {
        let mut body = sealed();
        body["expiresAt"] = json!(in_time(7_200));
        bot.submit(request, "alice", body).await.expect(202);
    }
    alice.decide(&decided, compact("approve")).await.expect(200);
    let before = cluster.database.everything().await;
    bot.wait(&decided, 1).await.expect(200);
    assert_eq!(
        bot.wait(&open, 1)
            .await
            .expect(204)
            .header("exchange-state"),
        None
    );
    for client in [&bot.client, &alice.client, &admin] {
        client
            .get(&format!("/v1/exchanges/{decided}"))
            .await
            .expect(200);
    }
    alice.inbox("").await.expect(200);
    alice.expired("").await.expect(200);
    for path in [
        LISTING,
        super::CREDENTIALS,
        "/platform/v1/approvers/alice/keys",
    ] {
        admin.get(path).await.expect(200);
    }
    assert_eq!(cluster.database.everything().await, before);
}
