//! Presence by calls: which calls count, for whom, and for how long.

use std::time::Duration;

use countersign::store::identity::credential::RoleName;
use reqwest::Method;
use serde_json::json;

use super::{channels, everywhere, online_by_calls, scene, seen, socket, written};
use crate::support::database::finish;
use crate::support::{Cluster, Enforcer, compact, envelope, now, request_id, sealed_for, until};

/// A life that outlasts every test here, however far it moves the clock.
const LONG: Duration = Duration::from_secs(20 * 24 * 3_600);

#[tokio::test(flavor = "multi_thread")]
async fn a_call_keeps_an_enforcer_online_for_ten_minutes() {
    let (cluster, enforcer) = scene(3).await;
    let admin = cluster.admin().await;
    let before = now();
    enforcer
        .submit(&request_id(), "alice", sealed_for(LONG))
        .await
        .expect(202);
    let after = now();
    online_by_calls(&admin).await;
    everywhere(&cluster, &admin, "online", "poll").await;
    let called = super::record(&admin).await["lastSeenAt"].clone();
    let called = called.as_str().unwrap();
    assert!(before.as_str() <= called && called <= after.as_str());
    cluster.pass(Duration::from_secs(570));
    everywhere(&cluster, &admin, "online", "poll").await;
    cluster.pass(Duration::from_secs(31));
    everywhere(&cluster, &admin, "offline", "poll").await;
    let last = super::record(&admin).await["lastSeenAt"].clone();
    assert_eq!(last, called);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_its_last_channel_only_a_later_call_brings_an_enforcer_back() {
    let (cluster, enforcer) = scene(2).await;
    let admin = cluster.admin().await;
    let request = request_id();
    for node in [0, 1, 0] {
        let open = socket(&cluster, node, &enforcer).await;
        // Served by the other node, and as a rule not written down before the channel is closed.
        enforcer.on(1 - node).status(&request).await;
        drop(open);
        channels(&cluster, 0).await;
        everywhere(&cluster, &admin, "offline", "websocket").await;
        written(&cluster, &admin).await;
        everywhere(&cluster, &admin, "offline", "websocket").await;
    }
    enforcer.status(&request).await;
    online_by_calls(&admin).await;
    everywhere(&cluster, &admin, "online", "poll").await;
}

/// Lets the ten minutes pass, makes the call, and waits for it to show.
async fn shows(cluster: &Cluster, admin: &crate::support::Client, call: impl Future<Output = u16>) {
    written(cluster, admin).await;
    cluster.pass(Duration::from_secs(700));
    if admin.get("/v1/presence/enforcers/build-bot").await.status == 200 {
        assert_eq!(seen(admin).await.0, "offline");
    }
    let status = call.await;
    assert!(status < 500, "{status}");
    online_by_calls(admin).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_of_an_enforcer_counts() {
    let (cluster, enforcer) = scene(2).await;
    let (admin, approver) = (cluster.admin().await, cluster.approver("alice").await);
    let key = cluster.key(&cluster.tenant, RoleName::Enforcer, None).await;
    let unbound = Enforcer {
        client: cluster.client(Some(&key)),
        id: enforcer.id.clone(),
    };
    let (decided, withdrawn, emptily, waited) =
        (request_id(), request_id(), request_id(), request_id());
    for request in [&decided, &withdrawn, &emptily, &waited] {
        let call = async {
            enforcer
                .submit(request, "alice", sealed_for(LONG))
                .await
                .status
        };
        shows(&cluster, &admin, call).await;
    }
    for caller in [&enforcer, &unbound] {
        shows(&cluster, &admin, async {
            caller.status(&waited).await.expect(200).status
        })
        .await;
        shows(&cluster, &admin, async {
            caller.wait(&waited, 1).await.expect(204).status
        })
        .await;
    }
    // A bound credential polls as its enforcer, whatever it asks for.
    shows(&cluster, &admin, async {
        enforcer.status("unknown").await.expect(404).status
    })
    .await;
    shows(&cluster, &admin, async {
        enforcer.withdraw(&withdrawn).await.expect(200).status
    })
    .await;
    // Without a body, an unbound credential acts as the exchange's enforcer.
    shows(&cluster, &admin, async {
        let path = format!("/v1/exchanges/{emptily}/withdraw");
        let call = unbound.client.call(Method::POST, &path);
        call.send().await.expect(200).status
    })
    .await;
    approver
        .decide(&decided, compact("approve"))
        .await
        .expect(200);
    let path = format!("/v1/exchanges/{decided}/wait?timeout=1");
    let message = admin.get(&path).await.expect(200).json()["msgId"].clone();
    shows(&cluster, &admin, async {
        let message = message.as_str().unwrap();
        enforcer.ack(&decided, message).await.expect(200).status
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_counts_when_it_ends_too() {
    let (cluster, enforcer) = scene(1).await;
    let (admin, approver) = (cluster.admin().await, cluster.approver("alice").await);
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed_for(LONG))
        .await
        .expect(202);
    let ending = async {
        online_by_calls(&admin).await;
        until("it waits", Duration::from_secs(10), async || {
            cluster.nodes[0].gateway.exchanges.waiting() == 1
        })
        .await;
        written(&cluster, &admin).await;
        // Long after it began, as the clock has it; nothing it did then shows any more.
        cluster.pass(Duration::from_secs(700));
        assert_eq!(seen(&admin).await.0, "offline");
        approver
            .decide(&request, compact("approve"))
            .await
            .expect(200);
    };
    let (waited, ()) = tokio::join!(enforcer.wait(&request, 60), ending);
    waited.expect(200);
    online_by_calls(&admin).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_over_a_socket_count_but_the_channel_is_what_shows() {
    let (cluster, enforcer) = scene(1).await;
    let admin = cluster.admin().await;
    let mut open = socket(&cluster, 0, &enforcer).await;
    let submission = enforcer.submission(&request_id(), "alice", sealed_for(LONG));
    let ack = json!({ "msgId": request_id(), "status": "received", "ackAt": now() });
    let ack = envelope("ack.submit", &request_id(), json!({}), ack);
    for frame in [submission, ack] {
        let before = "update enforcers set called_at = null";
        cluster.database.run(before).await;
        open.send(&frame).await;
        open.expect().await;
        let written = "select count(*) from enforcers where called_at is not null";
        until("it is written down", Duration::from_secs(30), async || {
            cluster.database.number(written).await == 1
        })
        .await;
        everywhere(&cluster, &admin, "online", "websocket").await;
    }
    drop(open);
    channels(&cluster, 0).await;
    everywhere(&cluster, &admin, "offline", "websocket").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_others_about_its_exchanges_do_not_count() {
    let (cluster, enforcer) = scene(1).await;
    let (admin, approver) = (cluster.admin().await, cluster.approver("alice").await);
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed_for(LONG))
        .await
        .expect(202);
    written(&cluster, &admin).await;
    cluster.pass(Duration::from_secs(700));
    let path = format!("/v1/exchanges/{request}");
    admin.get(&path).await.expect(200);
    let waiting = format!("{path}/wait?timeout=1");
    admin.get(&waiting).await.expect(204);
    approver.client.get(&path).await.expect(200);
    approver.refresh(&request, json!({})).await.expect(202);
    let message = approver.inbox("").await.body("/items/0/msgId");
    let message = message.as_str().unwrap();
    approver.ack(&request, message).await.expect(200);
    // Another enforcer, bound to its own id, learns nothing and says nothing of this one.
    let other = cluster.enforcer("other").await;
    other.status(&request).await.expect(404);
    let cancel = format!("/platform/v1/exchanges/{request}/cancel");
    admin.post(&cancel, &json!({})).await.expect(200);
    written(&cluster, &admin).await;
    everywhere(&cluster, &admin, "offline", "poll").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_written_is_written_later() {
    let cluster = Cluster::with(1, |config| {
        config.presence.write_seconds = 1;
        config.database.lock_timeout_ms = 300;
    })
    .await;
    let (enforcer, admin) = (cluster.enforcer("build-bot").await, cluster.admin().await);
    let mut lock = cluster.database.connect().await;
    finish(&mut lock, "begin; lock table enforcers in exclusive mode").await;
    enforcer.status("unknown").await.expect(404);
    let waiting = "select count(*) from pg_stat_activity
                    where datname = current_database() and wait_event_type = 'Lock'";
    for _ in 0..3 {
        cluster.database.blocked(1).await;
        until("the write gives up", Duration::from_secs(10), async || {
            cluster.database.number(waiting).await == 0
        })
        .await;
    }
    finish(&mut lock, "rollback").await;
    online_by_calls(&admin).await;
}
