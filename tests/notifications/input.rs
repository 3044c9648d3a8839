//! Refused input, each error naming the member.

use reqwest::Method;
use serde_json::{Value, json};

use super::receiver::Browser;
use super::{NotificationScene, PATH};
use crate::support::devices::Device;
use crate::support::{with, without};

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_refused_by_its_member() {
    let scene = NotificationScene::new(1).await;
    let phone = scene.owner.first(&scene.alice.client, "phone").await;
    let push = scene.push(&phone, &Browser::new(9), "/push");
    let hook = scene.webhook("/hook");
    let counts = scene.cluster.database.counts().await;
    let long = format!("https://example.com/{}", "x".repeat(1_024));
    let no_point = format!("B{}", "A".repeat(86));
    let cases: &[(Value, &str)] = &[
        (json!([]), ""),
        (without(&hook, "/kind"), "/kind"),
        (with(&hook, "/kind", json!("mail")), "/kind"),
        (with(&hook, "/kind", json!(1)), "/kind"),
        (without(&hook, "/url"), "/url"),
        (with(&hook, "/url", json!("example.com")), "/url"),
        (with(&hook, "/url", json!("ftp://example.com")), "/url"),
        (
            with(&hook, "/url", json!("https://user:word@example.com/")),
            "/url",
        ),
        (
            with(&hook, "/url", json!("https://example.com/#part")),
            "/url",
        ),
        (with(&hook, "/url", json!("https:///path")), "/url"),
        (
            with(&hook, "/url", json!("https://example.com/a b")),
            "/url",
        ),
        (with(&hook, "/url", json!(long)), "/url"),
        (with(&hook, "/url", json!("https://[::1/")), "/url"),
        (with(&hook, "/secret", json!("secret")), "/secret"),
        (with(&hook, "/secret", json!("whsec_c2hvcnQ=")), "/secret"),
        (with(&hook, "/secret", json!(null)), "/secret"),
        (with(&hook, "/deviceId", json!(phone.id())), "/deviceId"),
        (without(&push, "/deviceId"), "/deviceId"),
        (with(&push, "/deviceId", json!("phone")), "/deviceId"),
        (without(&push, "/endpoint"), "/endpoint"),
        (
            with(&push, "/endpoint", json!("wss://example.com")),
            "/endpoint",
        ),
        (without(&push, "/keys"), "/keys"),
        (without(&push, "/keys/p256dh"), "/keys/p256dh"),
        (with(&push, "/keys/p256dh", json!("AAAA")), "/keys/p256dh"),
        (with(&push, "/keys/p256dh", json!(no_point)), "/keys/p256dh"),
        (without(&push, "/keys/auth"), "/keys/auth"),
        (with(&push, "/keys/auth", json!("AAAA")), "/keys/auth"),
        (with(&push, "/keys/more", json!(1)), "/keys/more"),
        (with(&push, "/more", json!(1)), "/more"),
    ];
    for (body, pointer) in cases {
        let answer = scene.post(body).await;
        assert_eq!(answer.status, 400, "{body} {}", answer.text);
        answer.refused_at(400, "VALIDATION", pointer);
    }
    let stranger = scene.push(&Device::new("stranger"), &Browser::new(9), "/push");
    scene
        .post(&stranger)
        .await
        .refused_at(403, "POLICY_DENY", "/deviceId");
    let large = format!("{hook}{}", " ".repeat(4_096));
    let answer = scene
        .alice
        .client
        .call(Method::POST, PATH)
        .text(&large)
        .send()
        .await;
    assert_eq!(answer.status, 413);
    assert_eq!(scene.cluster.database.counts().await, counts);
    for id in ["01a1dd2f-5ffd-7004-b20c-8d6678c773dd", "none"] {
        let unknown = format!("{PATH}/{id}");
        let refused = scene.alice.client.delete(&unknown).await;
        refused.refused(404, "NOT_FOUND");
        let test = format!("{unknown}/test");
        let refused = scene.alice.client.call(Method::POST, &test).send().await;
        refused.refused(404, "NOT_FOUND");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_target_is_added_once_and_a_browser_has_one() {
    let scene = NotificationScene::new(2).await;
    let phone = scene.owner.first(&scene.alice.client, "phone").await;
    let (id, secret) = scene.add_webhook("/hook").await;
    let again = scene.post(&scene.webhook("/hook")).await.expect(200).json();
    assert_eq!(again, json!({ "notificationId": id }));
    let own = with(&scene.webhook("/hook"), "/secret", json!(secret));
    assert_eq!(
        scene.post(&own).await.expect(200).json(),
        json!({ "notificationId": id })
    );
    let first = scene.push(&phone, &Browser::new(1), "/first");
    let added = scene.post(&first).await.expect(201).json();
    assert_eq!(scene.post(&first).await.expect(200).json(), added);
    let second = scene.push(&phone, &Browser::new(1), "/second");
    assert_ne!(scene.post(&second).await.expect(201).json(), added);
    assert_eq!(
        scene.list().await["notifications"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let audit = scene.audit().await;
    let actions: Vec<_> = audit
        .split('|')
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    let expected = ["added", "renewed", "renewed", "added", "renewed", "added"];
    assert_eq!(
        actions,
        expected.map(|action| format!("notification.{action}"))
    );
    let host = scene.receiver.url.strip_prefix("http://").unwrap();
    assert!(
        audit.starts_with(&format!(
            "notification.added alice/{id} webhook at {host} approver:alice"
        )),
        "{audit}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn their_number_is_bounded() {
    let scene = NotificationScene::new(1).await;
    let phone = scene.owner.first(&scene.alice.client, "phone").await;
    for number in 0..15 {
        scene.add_webhook(&format!("/hook/{number}")).await;
    }
    let push = |path: &str| scene.push(&phone, &Browser::new(1), path);
    scene.post(&push("/one")).await.expect(201);
    let refused = scene.post(&scene.webhook("/more")).await;
    assert_eq!(refused.detail("limit"), 16);
    refused.refused(422, "TOO_LARGE");
    // A replacement does not count as one more.
    scene.post(&push("/two")).await.expect(201);
    scene.post(&scene.webhook("/hook/3")).await.expect(200);
    assert_eq!(
        scene.list().await["notifications"]
            .as_array()
            .unwrap()
            .len(),
        16
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_sends_none_says_so_in_words() {
    let scene = NotificationScene::with(1, |config| config.notifications.enabled = false).await;
    let list = scene.list().await;
    let expected = json!({
        "approverId": "alice", "enabled": false, "reason": "notifications.enabled is false", "notifications": [],
    });
    assert_eq!(list, expected);
    let refused = scene.post(&scene.webhook("/hook")).await;
    let message = "this gateway doesn't send notifications: notifications.enabled is false";
    assert_eq!(refused.json()["message"], message, "{}", refused.text);
    refused.refused(403, "POLICY_DENY");

    let database = crate::support::database::Database::create().await;
    let cluster = crate::support::Cluster::on(database, 1, |config| {
        config.security.cluster_secret = countersign::config::Secret::default();
    })
    .await;
    let alice = cluster.approver("alice").await.client;
    let list = alice.get(PATH).await.expect(200).json();
    assert_eq!(list["reason"], "security.cluster_secret is not set");
}
