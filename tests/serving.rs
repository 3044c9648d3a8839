//! The accept loop under peers that do not behave: silent, slow, or too many.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::Cluster;
use crate::support::push::Socket;
use countersign::store::credential::RoleName;

/// Sends these bytes and waits for the node to close the connection; what it said before comes back.
async fn closed_after(address: &str, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut said = Vec::new();
    let closing = stream.read_to_end(&mut said);
    timeout(Duration::from_secs(20), closing)
        .await
        .expect("the node closes it")
        .unwrap();
    String::from_utf8_lossy(&said).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_does_not_finish_its_headers_is_let_go() {
    let cluster = Cluster::with(1, |config| config.server.header_timeout_seconds = 1).await;
    let address = cluster.nodes[0].url.replace("http://", "");
    for begun in [
        &b""[..],
        b"PRI * HTT",
        b"GET /livez HTTP/1.1\r\nHost: test\r\nX-Slow:",
    ] {
        let said = closed_after(&address, begun).await;
        assert!(!said.contains("200 OK"), "{said}");
    }
    let said = closed_after(
        &address,
        b"GET /livez HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n",
    )
    .await;
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_does_not_arrive_is_refused() {
    let cluster = Cluster::with(1, |config| config.server.body_timeout_seconds = 1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let address = cluster.nodes[0].url.replace("http://", "");
    let head = format!(
        "POST /v1/artifacts HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{\"msgType\":",
        enforcer.client.key()
    );
    let said = closed_after(&address, head.as_bytes()).await;
    assert!(
        said.starts_with("HTTP/1.1 400") && said.contains("PROTO_ERR_VALIDATION"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_past_the_limit_are_closed_and_make_room_when_they_end() {
    let cluster = Cluster::with(1, |config| config.server.max_connections_per_address = 2).await;
    let address = cluster.nodes[0].url.replace("http://", "");
    let held = [
        TcpStream::connect(&address).await.unwrap(),
        TcpStream::connect(&address).await.unwrap(),
    ];
    let said = closed_after(&address, b"").await;
    assert_eq!(said, "", "there is no room");
    drop(held);
    let ask = b"GET /livez HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
    crate::support::until("there is room again", Duration::from_secs(5), async || {
        let Ok(mut stream) = TcpStream::connect(&address).await else {
            return false;
        };
        let mut said = String::new();
        stream.write_all(ask).await.is_ok()
            && stream.read_to_string(&mut said).await.is_ok()
            && said.starts_with("HTTP/1.1 200")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_keeps_the_seat_of_its_connection() {
    let cluster = Cluster::with(1, |config| config.server.max_connections_per_address = 2).await;
    let key = cluster.key(&cluster.tenant, RoleName::Enforcer, None).await;
    let url = &cluster.nodes[0].url;
    let connect = async || Socket::connect(url, "enforcer", "build-bot", &key).await;
    let first = connect().await.unwrap();
    let _second = connect().await.unwrap();
    assert_eq!(connect().await.err(), Some(0), "there is no room");
    drop(first);
    crate::support::until("there is room again", Duration::from_secs(5), async || {
        connect().await.is_ok()
    })
    .await;
}
