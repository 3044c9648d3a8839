//! Nodes that end, with and without a word, and what that says of the enforcers they held.

use std::time::{Duration, Instant};

use super::{channels, everywhere, online_by_calls, record, scene, seen, socket};
use crate::support::fleet::Fleet;
use crate::support::push::Socket;
use crate::support::{Client, Cluster, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_dies_without_a_word_ends_its_channels_with_its_lease() {
    let (cluster, enforcer) = scene(1).await;
    let admin = cluster.admin().await;
    let mut fleet = Fleet::start(&cluster.database.url, 1);
    let url = fleet.urls().remove(0);
    let key = enforcer.client.key();
    let _socket = Socket::connect(&url, "enforcer", "build-bot", key)
        .await
        .unwrap();
    everywhere(&cluster, &admin, "online", "websocket").await;
    fleet.kill(0);
    let killed = Instant::now();
    assert_eq!(seen(&admin).await.0, "online", "its lease still runs");
    until("its lease is over", Duration::from_secs(20), async || {
        seen(&admin).await.0 == "offline"
    })
    .await;
    assert!(killed.elapsed() < Duration::from_secs(16));
    let nodes = "select count(*) from nodes";
    assert_eq!(cluster.database.number(nodes).await, 2, "not yet buried");
    let before = record(&admin).await;
    assert_eq!(before["transport"], "websocket");
    until("it is buried", Duration::from_secs(30), async || {
        cluster.database.number(nodes).await == 1
    })
    .await;
    channels(&cluster, 0).await;
    assert_eq!(record(&admin).await, before, "the same as before");
    enforcer.status("unknown").await;
    online_by_calls(&admin).await;
}

/// A node whose last heartbeat was `seconds` ago, and `build-bot`'s event stream on it.
async fn dead_node(cluster: &Cluster, seconds: f64) {
    let sql = format!(
        "insert into nodes values ('00000000-0000-7000-8000-000000000001', 'dead', now() - interval '1 hour',
                                   clock_timestamp() - make_interval(secs => {seconds}));
         insert into channels (tenant_id, kind, identity, channel_id, node_id, transport, opened_at)
         values ('{}', 'enforcer', 'build-bot', '00000000-0000-7000-8000-000000000002',
                 '00000000-0000-7000-8000-000000000001', 'sse', now() - interval '1 hour')",
        cluster.tenant
    );
    cluster.database.run(&sql).await;
}

/// Lets the dead node be buried.
async fn bury(cluster: &Cluster) {
    let sql =
        "update nodes set heartbeat_at = heartbeat_at - interval '15 seconds' where name = 'dead'";
    cluster.database.run(sql).await;
    channels(cluster, 0).await;
}

async fn last_seen(client: &Client) -> String {
    let record = record(client).await;
    record["lastSeenAt"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_calls_after_a_nodes_death_count_before_and_after_its_burial() {
    for moved in [0, 5_000_000] {
        let (cluster, enforcer) = scene(2).await;
        let admin = cluster.admin().await;
        cluster.pass(Duration::from_secs(moved));
        enforcer.status("unknown").await;
        online_by_calls(&admin).await;
        let called = last_seen(&admin).await;
        // Its lease ended after the call was made, however little after: the call is a few seconds
        // old at most.
        dead_node(&cluster, 15.0).await;
        everywhere(&cluster, &admin, "offline", "sse").await;
        assert_eq!(last_seen(&admin).await, called, "later than the heartbeat");
        enforcer.status("unknown").await;
        online_by_calls(&admin).await;
        bury(&cluster).await;
        everywhere(&cluster, &admin, "online", "poll").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_buried_nodes_channels_ended_when_its_lease_did() {
    let (cluster, _) = scene(1).await;
    let admin = cluster.admin().await;
    cluster.pass(Duration::from_secs(7_000));
    dead_node(&cluster, 16.0).await;
    everywhere(&cluster, &admin, "offline", "sse").await;
    bury(&cluster).await;
    everywhere(&cluster, &admin, "offline", "sse").await;
    let written = "select count(*) from enforcers
                    where closed_at - seen_at = interval '15 seconds' and called_at is null
                      and closed_at between now() + interval '6900 seconds' and now() + interval '6990 seconds'";
    assert_eq!(cluster.database.number(written).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_whose_closing_was_lost_ends_all_the_same() {
    let (cluster, _) = scene(1).await;
    let admin = cluster.admin().await;
    let ghost = format!(
        "insert into channels (tenant_id, kind, identity, channel_id, node_id, transport, opened_at)
         select '{}', 'enforcer', 'build-bot', gen_random_uuid(), node_id, 'sse', now() - interval '1 minute'
           from nodes cross join generate_series(1, 3)",
        cluster.tenant
    );
    // The node may find them before they are seen; then there are others.
    until(
        "it seems to be there",
        Duration::from_secs(10),
        async || {
            cluster.database.run(&ghost).await;
            seen(&admin).await.0 == "online"
        },
    )
    .await;
    channels(&cluster, 0).await;
    everywhere(&cluster, &admin, "offline", "sse").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draining_node_ends_its_channels_and_writes_its_last_calls() {
    let mut cluster = Cluster::with(2, |config| {
        config.presence.write_seconds = 30;
        config.push.drain_spread_ms = 100;
    })
    .await;
    let (enforcer, other) = (
        cluster.enforcer("build-bot").await,
        cluster.enforcer("other").await,
    );
    let admin = cluster.admin().await.on(1);
    let mut socket = socket(&cluster, 0, &other).await;
    enforcer.on(0).status("unknown").await;
    let leaving = cluster.nodes.remove(0);
    tokio::join!(leaving.stop(), socket.closed());
    assert_eq!(seen(&admin).await, ("online".into(), "poll".into()));
    let record = admin.get("/v1/presence/enforcers/other").await.expect(200);
    assert_eq!(record.json()["status"], "offline");
}
