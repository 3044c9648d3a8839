//! The prompts that wait, for enforcers that keep no channel open.

use std::time::Duration;

use serde_json::{Value, json};

use super::{acknowledge, prompt, scene, sealed_in, send, send_to, socket};
use crate::support::{Client, in_time};
use countersign::store::identity::credential::RoleName;

const PATH: &str = "/v1/enforcers/build-bot/prompts";

async fn waiting(client: &Client, query: &str) -> Vec<Value> {
    let answer = client.get(&format!("{PATH}{query}")).await.expect(200);
    answer.json()["items"].as_array().unwrap().clone()
}

fn bodies(items: &[Value]) -> Vec<&Value> {
    items.iter().map(|item| &item["body"]).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_listed_oldest_first_as_it_is_pushed_until_it_is_acknowledged() {
    let (cluster, enforcer, approver) = scene(2).await;
    assert!(waiting(&enforcer.client, "").await.is_empty());
    let (first, second) = (prompt(), prompt());
    send(&approver, &first).await.expect(202);
    send(&approver, &second).await.expect(202);
    send_to(&approver, "other-bot", &prompt()).await.expect(202);
    let items = waiting(&enforcer.client, "").await;
    assert_eq!(bodies(&items), [&first, &second]);
    assert_eq!(waiting(&cluster.admin().await, "").await, items);
    // Reading is no delivery, and both ways show the same message.
    let mut agent = socket(&cluster, 0, &enforcer).await;
    assert_eq!(agent.expect_type("prompt.send").await, items[0]);
    for (prompt, status) in [(&first, "delivered"), (&second, "queued")] {
        acknowledge(&enforcer, prompt, status).await.expect(200);
    }
    assert!(waiting(&enforcer.client, "").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_for_other_sessions_and_expired_ones_are_left_out() {
    let (cluster, enforcer, approver) = scene(1).await;
    let with = |member: &str, value: Value| {
        let mut prompt = prompt();
        prompt.as_object_mut().unwrap().remove("promptHash");
        prompt[member] = value;
        sealed_in(prompt)
    };
    let (any, one) = (prompt(), with("sessionId", json!("one")));
    let soon = json!({ "org.proto.prompt": { "expiresAt": in_time(60) } });
    let expiring = with("extensions", soon);
    for prompt in [&any, &one, &expiring] {
        send(&approver, prompt).await.expect(202);
    }
    let all = waiting(&enforcer.client, "").await;
    assert_eq!(bodies(&all), [&any, &one, &expiring]);
    let others = waiting(&enforcer.client, "?sessionId=two").await;
    assert_eq!(bodies(&others), [&any, &expiring]);
    let own = waiting(&enforcer.client, "?sessionId=one").await;
    assert_eq!(own.len(), 3);
    cluster.pass(Duration::from_secs(61));
    let left = waiting(&enforcer.client, "?sessionId=one").await;
    assert_eq!(bodies(&left), [&any, &one]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_bounded_in_number_and_in_bytes() {
    let (_cluster, enforcer, approver) = scene(1).await;
    let large = |bytes: usize| {
        let mut prompt = prompt();
        prompt.as_object_mut().unwrap().remove("promptHash");
        prompt["text"] = json!("x".repeat(bytes));
        sealed_in(prompt)
    };
    let sent: Vec<_> = (0..3).map(|_| large(200 << 10)).collect();
    for prompt in &sent {
        send(&approver, prompt).await.expect(202);
    }
    let items = waiting(&enforcer.client, "").await;
    assert_eq!(bodies(&items), [&sent[0], &sent[1]]);
    for prompt in &sent {
        acknowledge(&enforcer, prompt, "delivered")
            .await
            .expect(200);
    }
    for _ in 0..20 {
        send(&approver, &prompt()).await.expect(202);
    }
    assert_eq!(waiting(&enforcer.client, "").await.len(), 16);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_enforcer_itself_and_administrators_of_its_tenant_read_them() {
    let (cluster, enforcer, approver) = scene(1).await;
    send(&approver, &prompt()).await.expect(202);
    let other = cluster.enforcer("other-bot").await;
    let refused = other.client.get(PATH).await;
    refused.refused(403, "FORBIDDEN");
    approver.client.get(PATH).await.refused(403, "FORBIDDEN");
    let there = cluster.administration.create_tenant("other").await.unwrap();
    for (role, id) in [
        (RoleName::Enforcer, Some("build-bot")),
        (RoleName::Admin, None),
    ] {
        let stranger = cluster.client(Some(&cluster.key(&there, role, id).await));
        assert!(waiting(&stranger, "").await.is_empty());
    }
    for query in [
        "?sessionId=",
        "?sessionId=a%00b",
        "?sessionId=a&sessionId=b",
    ] {
        let path = format!("{PATH}{query}");
        enforcer.client.get(&path).await.refused(400, "VALIDATION");
    }
    let long = "x".repeat(129);
    let path = format!("/v1/enforcers/{long}/prompts");
    let refused = cluster.admin().await.get(&path).await;
    refused.refused(400, "VALIDATION");
}
