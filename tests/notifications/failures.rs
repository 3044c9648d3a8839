//! Failures: retries, addresses that are gone, giving up, and where nothing is ever sent.

use std::time::Duration;

use countersign::config::Secret;
use countersign::protocol::hex;
use reqwest::Method;
use serde_json::json;

use super::receiver::{Browser, Says, says};
use super::{NotificationScene, PATH};
use crate::support::log::Log;
use crate::support::{compact, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_tried_again_under_the_same_id_until_it_gets_through() {
    let scene = NotificationScene::new(2).await;
    scene.add_webhook("/hook").await;
    let redirect = Says {
        headers: vec![("location", format!("{}/elsewhere", scene.receiver.url))],
        ..says(302)
    };
    scene
        .receiver
        .answer("/hook", [says(500), redirect, says(204)]);
    scene.submit().await;
    scene.receiver.awaited("/hook", 1).await;
    until("it is failing", Duration::from_secs(10), async || {
        scene.only_line().await["state"] == "failing"
    })
    .await;
    let line = scene.only_line().await;
    assert!(
        line["failingSince"].is_string()
            && line["failure"]
                .as_str()
                .unwrap()
                .starts_with("the answer is"),
        "{line}"
    );
    let sent = scene.receiver.awaited("/hook", 3).await;
    let ids: std::collections::BTreeSet<_> =
        sent.iter().map(|sent| sent.header("webhook-id")).collect();
    assert_eq!(ids.len(), 1);
    scene.noted(1).await;
    assert_eq!(scene.receiver.at("/elsewhere").len(), 0);
    let line = scene.only_line().await;
    assert_eq!(
        (&line["state"], &line["failure"]),
        (&json!("active"), &json!(null))
    );
    scene.cluster.pass(Duration::from_secs(5));
    scene.settled().await;
    assert_eq!(scene.receiver.at("/hook").len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_asks_for_a_pause_gets_it() {
    let scene = NotificationScene::new(1).await;
    scene.add_webhook("/hook").await;
    let later = Says {
        headers: vec![("retry-after", "3000".into())],
        ..says(429)
    };
    scene.receiver.answer("/hook", [later, says(204)]);
    scene.submit().await;
    scene.receiver.awaited("/hook", 1).await;
    let paused = "select count(*) from notifications where next_attempt_at > clock_timestamp() + interval '2900 seconds'";
    until("it pauses", Duration::from_secs(10), async || {
        scene.cluster.database.number(paused).await == 1
    })
    .await;
    scene.cluster.pass(Duration::from_secs(5));
    scene.settled().await;
    assert_eq!(scene.receiver.at("/hook").len(), 1);
    scene
        .cluster
        .database
        .run("update notifications set next_attempt_at = clock_timestamp()")
        .await;
    scene.receiver.awaited("/hook", 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_again_once_nothing_waits() {
    let scene = NotificationScene::new(1).await;
    scene.add_webhook("/hook").await;
    scene.receiver.answer("/hook", [says(503)]);
    let request = scene.submit().await;
    scene.receiver.awaited("/hook", 1).await;
    scene
        .alice
        .decide(&request, compact("reject"))
        .await
        .expect(200);
    let failed = "select count(*) from notifications where claim is null and attempts > 0";
    until("it has failed", Duration::from_secs(10), async || {
        scene.cluster.database.number(failed).await == 1
    })
    .await;
    let count = scene.receiver.at("/hook").len();
    scene.cluster.pass(Duration::from_secs(5));
    scene.settled().await;
    assert_eq!(scene.receiver.at("/hook").len(), count);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_has_unsubscribed_is_removed_and_the_others_stay() {
    let scene = NotificationScene::new(1).await;
    let phone = scene.owner.first(&scene.alice.client, "phone").await;
    let laptop = scene
        .owner
        .another(&scene.alice.client, &phone, "laptop")
        .await;
    let browser = Browser::new(3);
    let gone = scene
        .post(&scene.push(&phone, &browser, "/gone"))
        .await
        .expect(201)
        .json();
    scene
        .post(&scene.push(&laptop, &browser, "/kept"))
        .await
        .expect(201);
    scene.receiver.answer("/gone", [says(410)]);
    scene.submit().await;
    scene.receiver.awaited("/kept", 1).await;
    until("it is removed", Duration::from_secs(10), async || {
        scene.list().await["notifications"]
            .as_array()
            .unwrap()
            .len()
            == 1
    })
    .await;
    assert_eq!(scene.only_line().await["deviceId"], laptop.id());
    let id = gone["notificationId"].as_str().unwrap();
    let removed =
        format!("notification.removed alice/{id} webpush: the push service answers 410 gateway");
    assert!(
        scene.audit().await.contains(&removed),
        "{}",
        scene.audit().await
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_fails_for_days_is_disabled_until_it_is_added_again_or_a_test_gets_through() {
    let scene = NotificationScene::new(1).await;
    let (id, secret) = scene.add_webhook("/hook").await;
    scene.receiver.answer("/hook", [says(500)]);
    scene.submit().await;
    scene.receiver.awaited("/hook", 1).await;
    let failing = "update notifications set failing_since = failing_since - interval '4 days'";
    until("it is failing", Duration::from_secs(10), async || {
        scene.only_line().await["state"] == "failing"
    })
    .await;
    scene.cluster.database.run(failing).await;
    until("it is disabled", Duration::from_secs(20), async || {
        scene.only_line().await["state"] == "disabled"
    })
    .await;
    let line = scene.only_line().await;
    assert!(
        line["disabledAt"].is_string() && line["failure"] == "the answer is 500",
        "{line}"
    );
    let disabled = format!("notification.disabled alice/{id} webhook: the answer is 500 gateway");
    assert!(
        scene.audit().await.contains(&disabled),
        "{}",
        scene.audit().await
    );
    let count = scene.receiver.at("/hook").len();
    scene.submit().await;
    scene.settled().await;
    assert_eq!(scene.receiver.at("/hook").len(), count);
    // Added again it has the same id and the same secret.
    scene.receiver.answer("/hook", [says(204)]);
    let again = scene.post(&scene.webhook("/hook")).await.expect(200).json();
    assert_eq!(again, json!({ "notificationId": id }));
    let sent = scene.receiver.awaited("/hook", count + 1).await;
    assert!(super::receiver::is_signed(sent.last().unwrap(), &secret));
    scene
        .cluster
        .database
        .run("update notifications set disabled_at = now()")
        .await;
    let test = format!("{PATH}/{id}/test");
    scene
        .alice
        .client
        .call(Method::POST, &test)
        .send()
        .await
        .expect(200);
    assert_eq!(scene.only_line().await["state"], "active");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_says_it_is_gone_is_disabled_and_a_browser_removed_by_a_test() {
    let scene = NotificationScene::new(1).await;
    let (id, _) = scene.add_webhook("/hook").await;
    scene.receiver.answer("/hook", [says(410)]);
    scene.submit().await;
    until("it is disabled", Duration::from_secs(10), async || {
        scene.only_line().await["state"] == "disabled"
    })
    .await;
    scene
        .alice
        .client
        .delete(&format!("{PATH}/{id}"))
        .await
        .expect(204);
    let phone = scene.owner.first(&scene.alice.client, "phone").await;
    let added = scene
        .post(&scene.push(&phone, &Browser::new(3), "/push"))
        .await
        .expect(201)
        .json();
    scene.receiver.answer("/push", [says(404)]);
    let test = format!("{PATH}/{}/test", added["notificationId"].as_str().unwrap());
    let tested = scene
        .alice
        .client
        .call(Method::POST, &test)
        .send()
        .await
        .expect(200)
        .json();
    assert_eq!(
        tested,
        json!({ "delivered": false, "status": 404, "failure": "the answer is 404" })
    );
    assert_eq!(scene.list().await["notifications"], json!([]));
    scene
        .alice
        .client
        .call(Method::POST, &test)
        .send()
        .await
        .expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_to_addresses_that_are_not_public() {
    let scene = NotificationScene::with(1, |config| config.notifications.allow = Vec::new()).await;
    for url in [
        "https://127.0.0.1/hook",
        "https://10.1.2.3/hook",
        "https://172.16.0.1:8443/hook",
        "https://192.168.1.1/hook",
        "https://169.254.169.254/latest/meta-data",
        "https://100.64.0.1/hook",
        "https://0.0.0.0/hook",
        "https://[::1]/hook",
        "https://[::ffff:127.0.0.1]/hook",
        "https://[fd00::1]/hook",
        "https://[fe80::1]/hook",
        "https://[64:ff9b::7f00:1]/hook",
        "https://[2002:7f00:1::]/hook",
        "http://example.com/hook",
        "http://93.184.216.34/hook",
    ] {
        let refused = scene.post(&json!({ "kind": "webhook", "url": url })).await;
        assert_eq!(refused.status, 403, "{url} {}", refused.text);
        refused.refused_at(403, "POLICY_DENY", "/url");
    }
    // A name tells only when it is resolved, and so do unusual spellings of an address.
    for (number, host) in ["localhost", "127.1", "0x7f000001"].into_iter().enumerate() {
        let url = format!("https://{host}/hook");
        let added = scene
            .post(&json!({ "kind": "webhook", "url": url }))
            .await
            .expect(201)
            .json();
        let test = format!("{PATH}/{}/test", added["notificationId"].as_str().unwrap());
        let tested = scene
            .alice
            .client
            .call(Method::POST, &test)
            .send()
            .await
            .expect(200)
            .json();
        let failure = tested["failure"].as_str().unwrap();
        // The resolver may not know the spelling at all.
        assert!(
            failure == "the address is not public" || (number > 0 && failure == "no connection"),
            "{host} {tested}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn under_another_cluster_secret_everything_is_stale_and_can_be_added_again() {
    let scene = NotificationScene::new(1).await;
    let (id, secret) = scene.add_webhook("/hook").await;
    let key = scene.list().await["vapidKey"].clone();
    let mut config = crate::support::cluster::config(&scene.cluster.database);
    super::quick(&mut config);
    config.security.cluster_secret =
        Secret::from("another-secret-0123456789-0123456789-0123456789");
    let node = crate::support::cluster::start_node(config, &scene.cluster.clock).await;
    let there = crate::support::Client::new(vec![node.url.clone()], Some(scene.alice.client.key()));
    let list = there.get(PATH).await.expect(200).json();
    assert_ne!(list["vapidKey"], key);
    let line = &list["notifications"][0];
    assert_eq!(
        (&line["state"], &line["host"]),
        (&json!("stale"), &json!(null))
    );
    let test = format!("{PATH}/{id}/test");
    there
        .call(Method::POST, &test)
        .send()
        .await
        .refused(409, "INVALID_STATE");
    let added = there
        .post(PATH, &scene.webhook("/hook"))
        .await
        .expect(201)
        .json();
    assert_ne!(added["secret"], json!(secret));
    node.stop().await;
}

// On one thread, so that what the node logs is what this thread's subscriber gets.
#[tokio::test]
async fn neither_logs_nor_lists_nor_rows_have_a_url_or_a_secret() {
    let log = Log::keep("countersign=trace");
    let scene = NotificationScene::new(1).await;
    let phone = scene.owner.first(&scene.alice.client, "phone").await;
    let (_, secret) = scene.add_webhook("/capability-of-a-webhook").await;
    let browser = Browser::new(5);
    scene
        .post(&scene.push(&phone, &browser, "/capability-of-a-browser"))
        .await
        .expect(201);
    scene
        .receiver
        .answer("/capability-of-a-webhook", [says(500), says(200)]);
    scene.submit().await;
    scene.receiver.awaited("/capability-of-a-webhook", 2).await;
    scene.noted(2).await;
    let rows = scene
        .cluster
        .database
        .text("select string_agg(n::text, ' ') from notifications n")
        .await;
    let audit = scene
        .cluster
        .database
        .text("select string_agg(a::text, ' ') from audit_events a")
        .await;
    let list = scene.list().await.to_string();
    let keys = browser.keys();
    let secret = secret.strip_prefix("whsec_").unwrap();
    for hidden in [
        "capability-of",
        secret,
        keys["auth"].as_str().unwrap(),
        keys["p256dh"].as_str().unwrap(),
    ] {
        for (place, text) in [
            ("log", &log.text()),
            ("rows", &rows),
            ("list", &list),
            ("audit", &audit),
        ] {
            assert!(!text.contains(hidden), "{hidden} in the {place}: {text}");
        }
    }
    // The rows hold bytes, which PostgreSQL prints in hex.
    assert!(!rows.contains(&hex::encode(b"capability-of")));
}
