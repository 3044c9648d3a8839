//! One peer takes the connections that others need.

use std::net::SocketAddr;
use std::time::Duration;

use countersign::config::{DIRECT_CONNECTIONS_PER_ADDRESS, Server};
use countersign::http::server::connection_limit::ConnectionLimiter;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::peers::{get, multiplexed};
use crate::support::cluster::metrics;
use crate::support::push::Socket;
use crate::support::{Cluster, raw, request_id, sealed};

#[test]
fn a_network_of_ipv6_counts_as_one_address() {
    let config = Server {
        max_connections_per_address: 2,
        ..Server::default()
    };
    let limiter = ConnectionLimiter::new(&config, true, &metrics());
    let take = |address: &str| limiter.acquire(SocketAddr::new(address.parse().unwrap(), 1_000));
    let first = take("2001:db8:0:1::1").unwrap();
    let _second = take("2001:db8:0:1:ffff::2").unwrap();
    assert!(take("2001:db8:0:1::3").is_none(), "there is no room");
    let _neighbour = take("2001:db8:0:2::1").unwrap();
    let _ours = take("192.0.2.1").unwrap();
    let _ours_too = take("::ffff:192.0.2.1").unwrap();
    assert!(
        take("192.0.2.1").is_none(),
        "the same, however it is written"
    );
    let _beside = take("192.0.2.2").unwrap();
    drop(first);
    assert!(take("2001:db8:0:1::3").is_some(), "there is room again");
}

#[test]
fn one_address_has_few_connections_where_clients_connect_themselves() {
    let most = |direct| {
        let limiter = ConnectionLimiter::new(&Server::default(), direct, &metrics());
        let peer = SocketAddr::from(([192, 0, 2, 1], 1_000));
        let taken: Vec<_> = (0..1_000).map_while(|_| limiter.acquire(peer)).collect();
        taken.len()
    };
    assert_eq!(most(true), DIRECT_CONNECTIONS_PER_ADDRESS);
    assert_eq!(most(false), 1_000, "a proxy has as many as it needs");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_node_makes_room_by_closing_whoever_has_not_authenticated() {
    let cluster = Cluster::with(1, |config| config.server.max_connections = 4).await;
    let address = cluster.nodes[0].url.replace("http://", "");
    let enforcer = cluster.enforcer("build-bot").await;
    let key = enforcer.client.key();
    let url = &cluster.nodes[0].url;
    let mut known = Socket::connect(url, "enforcer", "build-bot", key)
        .await
        .unwrap();
    // The oldest that is not a channel, and silent meanwhile.
    let (mut calling, unknown) = (multiplexed(url).await, "/v1/exchanges/unknown");
    assert_eq!(get(&mut calling, key, unknown).await.status(), 404);
    let mut idle = Vec::new();
    for _ in 0..20 {
        idle.push(TcpStream::connect(&address).await.unwrap());
    }
    // The honest caller gets through, and keeps its connection.
    let submitted = enforcer.submit(&request_id(), "alice", sealed()).await;
    submitted.expect(202);
    for mut stream in idle.drain(..10) {
        let mut bytes = [0; 16];
        let read = timeout(Duration::from_secs(5), stream.read(&mut bytes)).await;
        assert!(matches!(read, Ok(Ok(0) | Err(_))), "the oldest are closed");
    }
    assert!(known.is_silent(Duration::from_millis(200)).await);
    assert_eq!(get(&mut calling, key, unknown).await.status(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_full_of_callers_still_answers_health_checks() {
    let cluster = Cluster::with(1, |config| config.server.max_connections = 2).await;
    let (url, enforcer) = (&cluster.nodes[0].url, cluster.enforcer("build-bot").await);
    let key = enforcer.client.key();
    let mut channels = Vec::new();
    for _ in 0..2 {
        let socket = Socket::connect(url, "enforcer", "build-bot", key).await;
        channels.push(socket.unwrap());
    }
    let health = raw::send(url, "GET /livez HTTP/1.1", b"").await;
    assert_eq!(health.status, 200);
    let head = format!("GET /v1/status HTTP/1.1\r\nauthorization: Bearer {key}");
    let refused = raw::send(url, &head, b"").await.refused(503, "UNAVAILABLE");
    assert!(refused.header("retry-after").is_some());
    assert!(channels[0].is_silent(Duration::from_millis(200)).await);
}
