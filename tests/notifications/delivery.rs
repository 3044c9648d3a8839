//! Delivered notifications: content, proofs, and how often.

use std::time::Duration;

use serde_json::json;

use super::receiver::{Browser, Receiver, is_signed, says, vapid_claims};
use super::{NotificationScene, PATH};
use crate::support::cluster::CLUSTER_SECRET;
use crate::support::exchanges::DAY;
use crate::support::fleet::Fleet;
use crate::support::scrape::scrape;
use crate::support::{Client, Enforcer, compact, crowd, request_id, sealed, sealed_for, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_is_told_that_something_waits_encrypted_and_with_proof() {
    let scene = NotificationScene::with(1, |config| {
        config.notifications.contact = "mailto:ops@example.com".into();
    })
    .await;
    let phone = scene.owner.first(&scene.alice.client, "phone").await;
    let browser = Browser::new(7);
    let body = scene.push(&phone, &browser, "/push/secret-path");
    let added = scene.post(&body).await.expect(201).json();
    assert_eq!(added.as_object().unwrap().len(), 1, "{added}");
    let list = scene.list().await;
    let line = &list["notifications"][0];
    let host = scene.receiver.url.strip_prefix("http://").unwrap();
    assert_eq!(
        (
            &line["kind"],
            &line["deviceId"],
            &line["host"],
            &line["state"],
            &line["notificationId"]
        ),
        (
            &json!("webpush"),
            &json!(phone.id()),
            &json!(host),
            &json!("active"),
            &added["notificationId"]
        )
    );
    assert_eq!(
        (&list["enabled"], &list["approverId"]),
        (&json!(true), &json!("alice"))
    );

    scene.submit().await;
    let sent = scene
        .receiver
        .awaited("/push/secret-path", 1)
        .await
        .remove(0);
    assert_eq!(browser.open(&sent.body), br#"{"type":"waiting"}"#);
    for (name, value) in [
        ("content-encoding", "aes128gcm"),
        ("content-type", "application/octet-stream"),
        ("urgency", "high"),
        ("topic", "waiting"),
    ] {
        assert_eq!(sent.header(name), value);
    }
    let ttl: i64 = sent.header("ttl").parse().unwrap();
    assert!((60..=86_400).contains(&ttl), "{ttl}");
    let claims = vapid_claims(
        sent.header("authorization"),
        list["vapidKey"].as_str().unwrap(),
    );
    assert_eq!(
        (&claims["aud"], &claims["sub"]),
        (&json!(scene.receiver.url), &json!("mailto:ops@example.com"))
    );
    let ahead =
        claims["exp"].as_i64().unwrap() - scene.cluster.clock.now().inner().unix_timestamp();
    assert!((1..=86_400).contains(&ahead), "{ahead}");

    scene.noted(1).await;
    let read = scrape(&scene.cluster.nodes[0].metrics).await;
    let labels = [("kind", "webpush"), ("outcome", "delivered")];
    let sent = read.count("countersign_notifications_total", &labels);
    let labels = [("kind", "webpush")];
    let measured = read.count("countersign_notification_delay_seconds_count", &labels);
    assert!((sent, measured) == (1.0, 1.0), "{sent} {measured}");
    assert!(scene.only_line().await["deliveredAt"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_told_how_many_wait_signed_and_nothing_else() {
    let scene = NotificationScene::with(1, |config| {
        config.page.url = "https://approve.example.com".into();
    })
    .await;
    let (id, secret) = scene.add_webhook("/hook").await;
    let first = scene.submit().await;
    let sent = scene.receiver.awaited("/hook", 1).await.remove(0);
    assert!(is_signed(&sent, &secret));
    assert_eq!(sent.header("content-type"), "application/json");
    assert_eq!(sent.header("webhook-id"), format!("{id}-0"));
    let told = sent.json();
    let text = "A request is waiting for your decision.";
    let expected = json!({
        "type": "waiting", "approverId": "alice", "waiting": 1, "url": "https://approve.example.com", "at": told["at"],
        "title": "Countersign", "text": text, "message": text,
    });
    assert_eq!(told, expected);
    assert!(told["at"].is_string());
    scene.noted(1).await;
    // The same requests are not told again; a new one is, with another id.
    scene.submit().await;
    let sent = scene.receiver.awaited("/hook", 2).await.remove(1);
    assert_eq!(
        (sent.header("webhook-id"), &sent.json()["waiting"]),
        (format!("{id}-1").as_str(), &json!(2))
    );
    scene.noted(2).await;
    scene
        .alice
        .decide(&first, compact("reject"))
        .await
        .expect(200);
    scene.settled().await;
    assert_eq!(scene.receiver.at("/hook").len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_requests_are_one_notification() {
    let scene =
        NotificationScene::with(2, |config| config.notifications.pause_seconds = 3_600).await;
    let (id, _) = scene.add_webhook("/hook").await;
    scene.submit().await;
    scene.receiver.awaited("/hook", 1).await;
    scene.noted(1).await;
    for _ in 0..30 {
        let request = request_id();
        let submitted = scene.bot.submit(&request, "alice", sealed_for(DAY)).await;
        submitted.expect(202);
    }
    scene.settled().await;
    assert_eq!(scene.receiver.at("/hook").len(), 1);
    // When the pause is over, the sweep tells of all of them.
    scene.cluster.pass(Duration::from_secs(3_601));
    let sent = scene.receiver.awaited("/hook", 2).await.remove(1);
    assert_eq!(
        (sent.header("webhook-id"), &sent.json()["waiting"]),
        (format!("{id}-1").as_str(), &json!(30))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_commits_after_a_younger_one_was_told_is_told_too() {
    let scene = NotificationScene::new(1).await;
    scene.add_webhook("/hook").await;
    let late = scene.submit().await;
    scene.receiver.awaited("/hook", 1).await;
    scene.noted(1).await;
    // As if it had been written before, and only now become visible.
    let sql = format!(
        "update inbox_items set created_at = created_at - interval '1 minute', message_id = gen_random_uuid()
          where request_id = '{late}'"
    );
    scene
        .cluster
        .database
        .run("update notifications set seen_until = seen_until - interval '5 minutes'")
        .await;
    scene.cluster.database.run(&sql).await;
    scene.receiver.awaited("/hook", 2).await;
    scene.noted(2).await;
    scene.settled().await;
    assert_eq!(scene.receiver.at("/hook").len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_crash_left_is_sent_again_under_the_same_id() {
    let scene = NotificationScene::new(1).await;
    let (id, _) = scene.add_webhook("/hook").await;
    let before = "select concat_ws('|', seen_until, seen::text) from notifications";
    let before = scene.cluster.database.text(before).await;
    let (until_then, seen) = before.split_once('|').unwrap();
    scene.submit().await;
    scene.receiver.awaited("/hook", 1).await;
    scene.noted(1).await;
    // The state that a node leaves if it dies after the answer and before it records the result.
    let sql = format!(
        "update notifications set seen_until = '{until_then}', seen = '{seen}', delivered = 0, claim = gen_random_uuid(),
                claimed_until = clock_timestamp() + interval '1 second'"
    );
    scene.cluster.database.run(&sql).await;
    let sent = scene.receiver.awaited("/hook", 2).await;
    let ids: Vec<_> = sent.iter().map(|sent| sent.header("webhook-id")).collect();
    assert_eq!(ids, [format!("{id}-0"), format!("{id}-0")]);
    scene.noted(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_node_delivers_what_a_killed_one_did_not() {
    let scene = NotificationScene::with(1, |config| config.notifications.enabled = false).await;
    let settings = [
        ("NOTIFICATIONS__ALLOW", r#"["127.0.0.0/8"]"#),
        ("NOTIFICATIONS__SWEEP_MS", "500"),
    ];
    let mut fleet = Fleet::start_with(&scene.cluster.database.url, 2, &settings);
    assert!(!CLUSTER_SECRET.is_empty());
    let alice = Client::new(fleet.urls(), Some(scene.alice.client.key()));
    alice.post(PATH, &scene.webhook("/hook")).await.expect(201);
    // The first answer never comes, so that the node dies while it waits.
    scene
        .receiver
        .answer("/hook", [receiver_hangs(), says(204)]);
    let bot = Enforcer {
        client: Client::new(vec![fleet.urls()[0].clone()], Some(scene.bot.client.key())),
        id: "bot".into(),
    };
    bot.submit(&request_id(), "alice", sealed())
        .await
        .expect(202);
    scene.receiver.awaited("/hook", 1).await;
    fleet.kill(0);
    // Its claim ends by itself; nobody waits for that here.
    let sql = "update notifications set claimed_until = clock_timestamp() + interval '1 second'";
    scene.cluster.database.run(sql).await;
    let sent = scene.receiver.awaited("/hook", 2).await;
    assert_eq!(sent[0].header("webhook-id"), sent[1].header("webhook-id"));
    scene.noted(1).await;
}

fn receiver_hangs() -> super::receiver::Says {
    super::receiver::Says {
        after: Duration::from_secs(60),
        ..says(200)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_target_delays_neither_exchanges_nor_other_targets() {
    let scene = NotificationScene::new(1).await;
    scene.receiver.answer("/slow", [receiver_hangs()]);
    for number in 0..10 {
        scene.add_webhook(&format!("/slow?{number}")).await;
    }
    scene.add_webhook("/quick").await;
    let other = Receiver::start().await;
    let bob = scene.cluster.approver("bob").await;
    let url = format!("{}/bob", other.url);
    let webhook = json!({ "kind": "webhook", "url": url });
    bob.client
        .post("/v1/approvers/bob/notifications", &webhook)
        .await
        .expect(201);
    let tenant = scene
        .cluster
        .administration
        .create_tenant("other")
        .await
        .unwrap();
    let role = countersign::store::identity::credential::RoleName::Approver;
    let key = scene.cluster.key(&tenant, role, Some("carol")).await;
    let carol = scene.cluster.client(Some(&key));
    let webhook = json!({ "kind": "webhook", "url": format!("{}/carol", other.url) });
    carol
        .post("/v1/approvers/carol/notifications", &webhook)
        .await
        .expect(201);

    scene.submit().await;
    until("they hang", Duration::from_secs(10), async || {
        scene.receiver.at("/slow").len() >= 7
    })
    .await;
    let begun = tokio::time::Instant::now();
    let request = scene.submit().await;
    scene
        .alice
        .decide(&request, compact("reject"))
        .await
        .expect(200);
    assert!(begun.elapsed() < Duration::from_secs(5));
    let role = countersign::store::identity::credential::RoleName::Enforcer;
    let key = scene.cluster.key(&tenant, role, Some("bot")).await;
    let there = Enforcer {
        client: scene.cluster.client(Some(&key)),
        id: "bot".into(),
    };
    let begun = tokio::time::Instant::now();
    there
        .submit(&request_id(), "carol", sealed())
        .await
        .expect(202);
    other.awaited("/carol", 1).await;
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    scene
        .bot
        .submit(&request_id(), "bob", sealed())
        .await
        .expect(202);
    other.awaited("/bob", 1).await;
}

/// Each of them holds its turn for a second, not until it is given up.
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_targets_that_hang_delay_no_other_of_their_tenant() {
    let crowd = crowd(100).await;
    // The sweep would make up for what the first round leaves.
    let scene = NotificationScene::with(1, |config| config.notifications.sweep_ms = 600_000).await;
    let cluster = &scene.cluster;
    scene.receiver.answer("/slow", [receiver_hangs()]);
    let names: Vec<_> = (0..crowd.size.div_ceil(10))
        .map(|number| format!("a-{number}"))
        .collect();
    for name in &names {
        let approver = cluster.approver(name).await;
        let path = format!("/v1/approvers/{name}/notifications");
        for number in 0..10 {
            let webhook = scene.webhook(&format!("/slow?{name}-{number}"));
            approver.client.post(&path, &webhook).await.expect(201);
        }
    }
    scene.add_webhook("/quick").await;
    for name in &names {
        let submitted = scene.bot.submit(&request_id(), name, sealed()).await;
        submitted.expect(202);
    }
    until("turns are taken", Duration::from_secs(10), async || {
        scene.receiver.at("/slow").len() >= 20
    })
    .await;
    scene.submit().await;
    let told = async || !scene.receiver.at("/quick").is_empty();
    until("the healthy one is told", Duration::from_secs(8), told).await;
    until("all are asked", Duration::from_secs(8), async || {
        scene.receiver.at("/slow").len() >= names.len() * 10
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_is_sent_at_once_and_says_what_came_of_it() {
    let scene = NotificationScene::with(1, |config| config.rates.enabled = true).await;
    let (id, secret) = scene.add_webhook("/hook").await;
    let test = format!("{PATH}/{id}/test");
    let answer = scene
        .alice
        .client
        .call(reqwest::Method::POST, &test)
        .send()
        .await;
    assert_eq!(
        answer.expect(200).json(),
        json!({ "delivered": true, "status": 201 })
    );
    let sent = scene.receiver.at("/hook").remove(0);
    assert!(is_signed(&sent, &secret));
    assert_eq!(
        (&sent.json()["type"], &sent.json()["waiting"]),
        (&json!("test"), &json!(0))
    );
    scene.receiver.answer("/hook", [says(500)]);
    let answer = scene
        .alice
        .client
        .call(reqwest::Method::POST, &test)
        .send()
        .await;
    let failed = json!({ "delivered": false, "status": 500, "failure": "the answer is 500" });
    assert_eq!(answer.expect(200).json(), failed);
    let mut refused = None;
    for _ in 0..10 {
        let answer = scene
            .alice
            .client
            .call(reqwest::Method::POST, &test)
            .send()
            .await;
        if answer.status == 429 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("a limit");
    assert!(refused.header("retry-after").is_some());
}
