//! Presence: who is there, as every node sees it. Channels show at once, calls within 30 s, and
//! what has ended is over at once, whether it said goodbye or not.

mod access;
mod calls;
mod crowd;
mod dead;
pub mod hello;
mod judged;
mod locked;

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::push::{Socket, Stream};
use crate::support::{Client, Cluster, Enforcer, now, request_id, until};

/// Nodes that write calls down every second.
async fn scene(nodes: usize) -> (Cluster, Enforcer) {
    let cluster = Cluster::with(nodes, |config| {
        config.presence.write_seconds = 1;
        config.push.drain_spread_ms = 100;
    })
    .await;
    let enforcer = cluster.enforcer("build-bot").await;
    (cluster, enforcer)
}

/// A socket of an enforcer on one node.
async fn socket(cluster: &Cluster, node: usize, enforcer: &Enforcer) -> Socket {
    let url = &cluster.nodes[node].url;
    Socket::connect(url, "enforcer", &enforcer.id, enforcer.client.key())
        .await
        .unwrap()
}

/// An event stream of an enforcer on one node.
async fn stream(cluster: &Cluster, node: usize, enforcer: &Enforcer) -> Stream {
    let url = &cluster.nodes[node].url;
    Stream::connect(url, "enforcers", &enforcer.id, enforcer.client.key(), None)
        .await
        .unwrap()
}

/// The record of `build-bot`, from the next node in turn.
async fn record(client: &Client) -> Value {
    let answer = client.get("/v1/presence/enforcers/build-bot").await;
    answer.expect(200).json()
}

/// Status and transport in that record.
async fn seen(client: &Client) -> (String, String) {
    let record = record(client).await;
    let text = |name: &str| record[name].as_str().expect("a text").to_owned();
    (text("status"), text("transport"))
}

/// Asserts the same on every node, now.
async fn everywhere(cluster: &Cluster, client: &Client, status: &str, transport: &str) {
    for _ in &cluster.nodes {
        let (found, over) = seen(client).await;
        assert_eq!((found.as_str(), over.as_str()), (status, transport));
    }
}

/// Waits until so many channels are on the books.
async fn channels(cluster: &Cluster, count: i64) {
    until("channels come or go", Duration::from_secs(10), async || {
        cluster
            .database
            .number("select count(*) from channels")
            .await
            == count
    })
    .await;
}

/// Waits until it is online by its calls; they show within 30 s.
async fn online_by_calls(client: &Client) {
    until("a call shows", Duration::from_secs(30), async || {
        let answer = client.get("/v1/presence/enforcers/build-bot").await;
        answer.status == 200
            && answer.json()["status"] == "online"
            && answer.json()["transport"] == "poll"
    })
    .await;
}

/// Waits until every node has written down the calls it has served: later ones of witnesses show.
async fn written(cluster: &Cluster, client: &Client) {
    for node in 0..cluster.nodes.len() {
        let witness = cluster.enforcer(&request_id()).await;
        witness.on(node).status("unknown").await.expect(404);
        let path = format!("/v1/presence/enforcers/{}", witness.id);
        until("a witness shows", Duration::from_secs(30), async || {
            client.get(&path).await.status == 200
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_shows_at_once_on_every_node_and_costs_no_row() {
    let (cluster, enforcer) = scene(3).await;
    let admin = cluster.admin().await;
    for _ in &cluster.nodes {
        let answer = admin.get("/v1/presence/enforcers/build-bot").await;
        answer.refused(404, "NOT_FOUND");
    }
    let before = now();
    let _socket = socket(&cluster, 0, &enforcer).await;
    everywhere(&cluster, &admin, "online", "websocket").await;
    let other = cluster.enforcer("other").await;
    let _stream = stream(&cluster, 1, &other).await;
    for _ in &cluster.nodes {
        let list = admin.get("/v1/presence/enforcers").await.expect(200).json();
        let expected = json!([
            { "enforcerDeviceId": "build-bot", "status": "online", "transport": "websocket",
              "lastSeenAt": list[0]["lastSeenAt"] },
            { "enforcerDeviceId": "other", "status": "online", "transport": "sse",
              "lastSeenAt": list[1]["lastSeenAt"] },
        ]);
        assert_eq!(list, expected);
        assert!(list[0]["lastSeenAt"].as_str().unwrap() >= before.as_str());
    }
    let rows = "select count(*) from enforcers";
    assert_eq!(cluster.database.number(rows).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_of_its_channels_takes_an_enforcer_offline_and_no_other() {
    let (cluster, enforcer) = scene(2).await;
    let admin = cluster.admin().await;
    let older = socket(&cluster, 0, &enforcer).await;
    let newer = stream(&cluster, 1, &enforcer).await;
    everywhere(&cluster, &admin, "online", "sse").await;
    drop(newer);
    channels(&cluster, 1).await;
    everywhere(&cluster, &admin, "online", "websocket").await;
    drop(older);
    channels(&cluster, 0).await;
    everywhere(&cluster, &admin, "offline", "websocket").await;
    let closed = record(&admin).await["lastSeenAt"].clone();
    assert_eq!(record(&admin).await["lastSeenAt"], closed);

    let _back = stream(&cluster, 0, &enforcer).await;
    everywhere(&cluster, &admin, "online", "sse").await;
    let seen = record(&admin).await["lastSeenAt"].clone();
    assert!(seen.as_str() >= closed.as_str(), "{seen} {closed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_socket_is_not_live_until_it_shows_a_sign() {
    let cluster = Cluster::with(2, |config| config.push.ping_seconds = 1).await;
    let (enforcer, admin) = (cluster.enforcer("build-bot").await, cluster.admin().await);
    // A handshake by hand, and then silence: nothing reads, so nothing answers.
    let address = cluster.nodes[0].url.replace("http://", "");
    let mut raw = tokio::net::TcpStream::connect(&address).await.unwrap();
    let handshake = format!(
        "GET /v1/ws?role=enforcer&id=build-bot HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: Bearer {}\r\n\r\n",
        enforcer.client.key()
    );
    tokio::io::AsyncWriteExt::write_all(&mut raw, handshake.as_bytes())
        .await
        .unwrap();
    channels(&cluster, 1).await;
    everywhere(&cluster, &admin, "online", "websocket").await;
    let inactive = "select count(*) from channels where not active";
    until("it is not active", Duration::from_secs(10), async || {
        cluster.database.number(inactive).await == 1
    })
    .await;
    everywhere(&cluster, &admin, "offline", "websocket").await;
    // A pong, masked.
    tokio::io::AsyncWriteExt::write_all(&mut raw, &[0x8a, 0x80, 0, 0, 0, 0])
        .await
        .unwrap();
    until("it is back", Duration::from_secs(10), async || {
        seen(&admin).await.0 == "online"
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn enforcers_long_unseen_are_forgotten_unless_they_have_a_channel() {
    let cluster = Cluster::with(2, |config| {
        config.presence.write_seconds = 1;
        config.retention.session_seconds = 3_600;
        config.retention.every_seconds = 1;
    })
    .await;
    let (enforcer, other) = (
        cluster.enforcer("build-bot").await,
        cluster.enforcer("other").await,
    );
    let admin = cluster.admin().await;
    let mut connected = socket(&cluster, 0, &other).await;
    hello::say(&mut connected, &json!({ "enforcerLabel": "Other" })).await;
    enforcer.status("unknown").await.refused(404, "NOT_FOUND");
    online_by_calls(&admin).await;
    cluster.pass(Duration::from_secs(3_500));
    everywhere(&cluster, &admin, "offline", "poll").await;
    cluster.pass(Duration::from_secs(200));
    until("it is forgotten", Duration::from_secs(10), async || {
        let answer = admin.get("/v1/presence/enforcers/build-bot").await;
        answer.status == 404
    })
    .await;
    // A sweep that looked at one of a tenant looked at all.
    let left = admin.get("/v1/presence/enforcers").await.expect(200).json();
    assert_eq!(left[0]["enforcerLabel"], "Other");
    assert_eq!(left[0]["status"], "online");
    drop(connected);
    channels(&cluster, 0).await;
    let left = admin.get("/v1/presence/enforcers/other").await.expect(200);
    assert_eq!(left.json()["status"], "offline");
}
