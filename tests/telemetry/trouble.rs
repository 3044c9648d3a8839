//! Metrics that move when something is wrong: hints that do not arrive, channels that the gateway
//! ends.

use std::time::Duration;

use countersign::config::Secret;

use crate::support::database::Database;
use crate::support::proxy::Proxy;
use crate::support::push::Socket;
use crate::support::scrape::{scrape, whole};
use crate::support::{Cluster, until};

const SOON: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_hears_nothing_says_so_until_it_hears_again() {
    let database = Database::create().await;
    let proxy = Proxy::start(&database.url).await;
    let cluster = Cluster::on(database, 1, |config| {
        config.database.listen_url = Secret::from(proxy.url.as_str());
        config.wake.canary_ms = 500;
    })
    .await;
    let metrics = &cluster.nodes[0].metrics;
    let healthy = async || whole(scrape(metrics).await.value("countersign_wake_healthy", &[]));
    until("it hears", SOON, async || healthy().await == 1).await;
    proxy.refuse(true);
    proxy.cut();
    until("it hears nothing", SOON, async || healthy().await == 0).await;
    proxy.refuse(false);
    until("it hears again", SOON, async || healthy().await == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn channels_that_the_gateway_ends_are_counted_by_reason() {
    let cluster = Cluster::with(1, |config| {
        config.limits.channels_per_identity = 1;
        config.push.ping_seconds = 1;
        config.push.idle_seconds = 5;
    })
    .await;
    let closed = async || {
        let read = scrape(&cluster.nodes[0].metrics).await;
        let name = "countersign_channels_closed_total";
        ["replaced", "credential", "silent", "drain"]
            .map(|reason| whole(read.value(name, &[("reason", reason)])))
    };
    let open = async |id: &str, key: &str| {
        let url = &cluster.nodes[0].url;
        Socket::connect(url, "approver", id, key).await.unwrap()
    };
    assert_eq!(closed().await, [0, 0, 0, 0]);
    let alice = cluster.approver("alice").await;
    let mut first = open("alice", alice.client.key()).await;
    let mut second = open("alice", alice.client.key()).await;
    assert_eq!(first.closed().await, 1008);
    assert_eq!(closed().await, [1, 0, 0, 0]);

    let id = alice.client.key().split('_').nth(1).unwrap();
    let path = format!("/platform/v1/credentials/{id}");
    cluster.admin().await.delete(&path).await.expect(204);
    assert_eq!(second.closed().await, 1008);
    assert_eq!(closed().await, [1, 1, 0, 0]);

    // A client that does not read does not answer pings either.
    let bob = cluster.approver("bob").await;
    let _mute = open("bob", bob.client.key()).await;
    until("it is let go", SOON, async || {
        closed().await == [1, 1, 1, 0]
    })
    .await;

    // Those who leave by themselves do not count.
    let carol = cluster.approver("carol").await;
    drop(open("carol", carol.client.key()).await);
    until("it is gone", SOON, async || {
        cluster.nodes[0].gateway.channels.channel_count() == 0
    })
    .await;
    assert_eq!(closed().await, [1, 1, 1, 0]);
}
