//! Inboxes: pages that neither skip nor repeat, and items that leave when they should.

mod acks;

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::client::request_ids;
use crate::support::{
    Answer, Approver, Cluster, Enforcer, compact, request_id, sealed, sealed_for,
};

async fn parties(cluster: &Cluster) -> (Enforcer, Approver) {
    (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    )
}

/// Submits this many, in this order.
async fn fill(enforcer: &Enforcer, approver: &str, count: usize) -> Vec<String> {
    let mut requests = Vec::new();
    for _ in 0..count {
        let request = request_id();
        enforcer
            .submit(&request, approver, sealed())
            .await
            .expect(202);
        requests.push(request);
    }
    requests
}

fn cursor(page: &Answer) -> String {
    page.body("/nextCursor")
        .as_str()
        .expect("a cursor")
        .to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_bounded_and_what_is_no_number_is_refused() {
    let cluster = Cluster::with(2, |config| {
        config.limits.page_default = 3;
        config.limits.page_max = 5;
    })
    .await;
    let (enforcer, alice) = parties(&cluster).await;
    let requests = fill(&enforcer, "alice", 7).await;
    let sizes = [
        ("", 3),
        ("?limit=1", 1),
        ("?limit=5", 5),
        ("?limit=6", 5),
        ("?limit=007", 5),
        ("?limit=99999999999999999999999", 5),
    ];
    for (query, size) in sizes {
        let page = alice.inbox(query).await.expect(200);
        assert_eq!(page.json()["msgType"], "inbox.page");
        assert_eq!(
            request_ids(&page),
            requests[..size],
            "oldest first: {query}"
        );
        assert!(page.body("/nextCursor").is_string(), "{query}");
    }
    for limit in [
        "0",
        "-1",
        "1.0",
        "ten",
        "",
        "1e1",
        "0x10",
        "00000000000000000000",
        "%20",
    ] {
        for listing in ["inbox", "inbox/expired"] {
            let path = format!("/v1/approvers/alice/{listing}?limit={limit}");
            let answer = alice.client.get(&path).await.refused(400, "VALIDATION");
            assert_eq!(answer.detail("parameter"), "limit", "{limit}");
        }
    }
    let twice = alice.inbox("?limit=1&limit=2").await;
    twice.refused(400, "VALIDATION");
    let limits = countersign::config::Limits::default();
    assert_eq!(
        (limits.page_default, limits.page_max, limits.page_bytes),
        (50, 200, 8 << 20)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn paging_neither_skips_nor_repeats_while_items_come_and_go() {
    let cluster = Cluster::start(3).await;
    let (enforcer, alice) = parties(&cluster).await;
    let mut requests = fill(&enforcer, "alice", 6).await;
    fill(&enforcer, "bob", 2).await;
    let mut seen = Vec::new();
    let mut page = alice.inbox("?limit=2").await.expect(200);
    loop {
        let ids = request_ids(&page);
        if seen.is_empty() {
            // The one the cursor points at, and one that is yet to come.
            for decided in [1, 3] {
                alice
                    .decide(&requests[decided], compact("reject"))
                    .await
                    .expect(200);
            }
        }
        if seen.len() < 4 {
            requests.extend(fill(&enforcer, "alice", 1).await);
        }
        seen.extend(ids);
        if page.body("/nextCursor").is_null() {
            break;
        }
        let next = format!("?limit=2&cursor={}", cursor(&page));
        let again = alice.inbox(&next).await.expect(200);
        page = alice.inbox(&next).await.expect(200);
        assert_eq!(
            request_ids(&page),
            request_ids(&again),
            "a cursor can be used twice"
        );
    }
    requests.remove(3);
    assert_eq!(seen, requests);
    let exact = alice.inbox(&format!("?limit={}", requests.len() - 1)).await;
    assert_eq!(
        exact.body("/nextCursor"),
        Value::Null,
        "nothing is left for another page"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_is_good_for_its_own_listing_only() {
    let cluster = Cluster::start(2).await;
    let (enforcer, alice) = parties(&cluster).await;
    let bob = cluster.approver("bob").await;
    for approver in ["alice", "bob"] {
        for _ in 0..2 {
            let short = sealed_for(Duration::from_secs(600));
            enforcer
                .submit(&request_id(), approver, short)
                .await
                .expect(202);
        }
    }
    cluster.pass(Duration::from_secs(601));
    let requests = fill(&enforcer, "alice", 3).await;
    fill(&enforcer, "bob", 3).await;
    let active = cursor(&alice.inbox("?limit=1").await);
    let expired = cursor(&alice.expired("?limit=1").await);
    let bobs = cursor(&bob.inbox("?limit=1").await);
    let next = alice.inbox(&format!("?cursor={active}")).await.expect(200);
    assert_eq!(request_ids(&next), requests[1..]);
    alice
        .expired(&format!("?cursor={expired}"))
        .await
        .expect(200);

    let mut damaged = active.clone();
    let last = if damaged.pop() == Some('A') { 'E' } else { 'A' };
    damaged.push(last);
    let flipped = format!(
        "{}{}",
        if active.starts_with('A') { "B" } else { "A" },
        &active[1..]
    );
    for foreign in [
        &expired,
        &bobs,
        &damaged,
        &flipped,
        &active[1..],
        "",
        "AAAA",
        "not base64!",
        &format!("{active}AAAA"),
    ] {
        let answer = alice.inbox(&format!("?cursor={foreign}")).await;
        let answer = answer.refused(400, "VALIDATION");
        assert_eq!(answer.detail("parameter"), "cursor", "{foreign}");
    }
    let answer = alice.expired(&format!("?cursor={active}")).await;
    answer.refused(400, "VALIDATION");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_ends_when_it_holds_enough_bytes_but_never_empty() {
    let cluster = Cluster::with(1, |config| config.limits.page_bytes = 10_000).await;
    let (enforcer, alice) = parties(&cluster).await;
    let mut requests = Vec::new();
    for size in [4_000, 4_000, 4_000, 30_000, 20_000, 100] {
        let mut body = sealed();
        body["ciphertext"]["data"] = json!("x".repeat(size));
        let request = request_id();
        enforcer.submit(&request, "alice", body).await.expect(202);
        requests.push(request);
    }
    let (mut query, mut sizes, mut seen) = (String::new(), Vec::new(), Vec::new());
    loop {
        let page = alice.inbox(&query).await.expect(200);
        let ids = request_ids(&page);
        sizes.push(ids.len());
        seen.extend(ids);
        match page.body("/nextCursor").as_str() {
            Some(next) => query = format!("?cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, requests);
    assert_eq!(
        sizes,
        [3, 1, 1, 1],
        "a page ends with the item that fills it"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_item_is_hidden_from_its_approver_and_stays_decidable() {
    let cluster = Cluster::start(2).await;
    let (enforcer, alice) = parties(&cluster).await;
    let requests = fill(&enforcer, "alice", 2).await;
    let removed = alice.remove(&requests[0]).await.expect(200);
    assert_eq!(removed.json()["msgType"], "inbox.removed");
    assert_eq!(removed.json()["body"], json!({ "requestId": requests[0] }));
    assert_eq!(removed.json()["requestId"], requests[0].as_str());
    assert_eq!(alice.inbox_ids().await, requests[1..]);
    assert_eq!(enforcer.state(&requests[0]).await, "pendingApproval");
    alice
        .client
        .get(&format!("/v1/exchanges/{}", requests[0]))
        .await
        .expect(200);

    let bob = cluster.approver("bob").await;
    for (who, request) in [
        (&alice, requests[0].as_str()),
        (&alice, "unknown"),
        (&bob, requests[1].as_str()),
    ] {
        let answer = who.remove(request).await.refused(404, "NOT_FOUND");
        assert_eq!(answer.body("/requestId"), request);
    }
    let bobs = format!("/v1/approvers/bob/inbox/{}", requests[1]);
    alice.client.delete(&bobs).await.refused(403, "FORBIDDEN");

    alice
        .decide(&requests[0], compact("approve"))
        .await
        .expect(200);
    enforcer.wait(&requests[0], 5).await.expect(200);
    enforcer.withdraw(&requests[1]).await.expect(200);
    for gone in &requests {
        alice.remove(gone).await.refused(404, "NOT_FOUND");
    }
}
