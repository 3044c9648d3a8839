//! The accept loop under peers that do not behave: silent, slow, or too many.

mod framing;
mod streams;
mod unread;

use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::support::push::Socket;
use crate::support::tls::Conversation;
use crate::support::{Cluster, request_id, sealed};
use countersign::store::identity::credential::RoleName;

/// Sends these bytes and waits for the node to close the connection; what it said before comes
/// back.
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
    let cluster = Cluster::with(1, |config| {
        config.server.header_timeout_seconds = 1;
        config.server.idle_timeout_seconds = 3;
    })
    .await;
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

/// `P` may be the beginning of a method, or of the preface of HTTP/2.
#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_begins_like_either_version_has_as_long_as_headers_may_take() {
    let cluster = Cluster::with(1, |config| config.server.header_timeout_seconds = 1).await;
    let address = cluster.nodes[0].url.replace("http://", "");
    for begun in [&b"P"[..], b"PR"] {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(begun).await.unwrap();
        let mut said = [0; 1];
        let ended = timeout(Duration::from_secs(20), stream.read(&mut said)).await;
        // Reset rather than ended: what was sent was never read.
        assert!(matches!(ended, Ok(Ok(0) | Err(_))), "{ended:?}");
    }
    // A request in pieces is understood all the same.
    let mut stream = TcpStream::connect(&address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let request = b"PATCH /livez HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
    for byte in request {
        stream.write_all(&[*byte]).await.unwrap();
    }
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    assert!(said.starts_with("HTTP/1.1 405"), "{said}");
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

/// Clients open connections before they need them, and one may be needed just when it has been idle
/// for long enough.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_request_may_come_late() {
    let cluster = Cluster::with(1, |config| {
        config.server.header_timeout_seconds = 1;
        config.server.idle_timeout_seconds = 4;
    })
    .await;
    let enforcer = cluster.enforcer("build-bot").await;
    let request = request_id();
    let taken = enforcer.submit(&request, "alice", sealed()).await;
    taken.expect(202);
    let address = cluster.nodes[0].url.replace("http://", "");
    let path = format!("/v1/exchanges/{request}/wait?timeout=2");
    let bearer = format!("Bearer {}", enforcer.client.key());
    let late = async || {
        let stream = TcpStream::connect(&address).await.unwrap();
        let mut conversation = Conversation::over(stream).await.unwrap();
        // Longer than headers may take; and the answer comes after the patience with a silent peer
        // has ended.
        sleep(Duration::from_millis(3_300)).await;
        let answer = conversation.get(&path, &[("authorization", &bearer)]).await;
        answer.map(|answer| answer.status)
    };
    let answers = join_all((0..8).map(|_| late())).await;
    for status in answers {
        assert_eq!(status.expect("an answer"), 204);
    }
}

/// A balancer keeps connections for its next calls, and takes a moment to see that a node stops.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_can_still_be_used_while_balancers_look_away() {
    let mut cluster = Cluster::with(1, |config| config.server.lame_duck_ms = 5_000).await;
    let node = cluster.nodes.remove(0);
    let address = node.url.replace("http://", "");
    let connect = async || {
        let stream = TcpStream::connect(&address).await.unwrap();
        Conversation::over(stream).await.unwrap()
    };
    let (mut kept, mut unused) = (connect().await, connect().await);
    kept.get("/livez", &[]).await.unwrap().expect(200);
    let stopping = tokio::spawn(node.stop());
    crate::support::until("the node says so", Duration::from_secs(4), async || {
        let ready = connect().await.get("/readyz", &[]).await;
        ready.unwrap().status == 503
    })
    .await;
    let answer = kept.get("/livez", &[]).await.unwrap().expect(200);
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(kept.get("/livez", &[]).await.is_err(), "that was the last");
    // Longer than a connection may take for its first words once the door is closed.
    sleep(Duration::from_millis(1_500)).await;
    unused.get("/livez", &[]).await.unwrap().expect(200);
    stopping.await.unwrap();
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

#[tokio::test(flavor = "multi_thread")]
async fn no_tenant_takes_every_channel_of_a_node() {
    let cluster = Cluster::with(1, |config| config.limits.channels_per_tenant = 2).await;
    let url = &cluster.nodes[0].url;
    let key = cluster.key(&cluster.tenant, RoleName::Enforcer, None).await;
    let _first = Socket::connect(url, "enforcer", "one", &key).await.unwrap();
    let _second = Socket::connect(url, "enforcer", "two", &key).await.unwrap();
    let third = Socket::connect(url, "enforcer", "three", &key).await;
    assert_eq!(third.err(), Some(503));
    let tenant = cluster.administration.create_tenant("other").await.unwrap();
    let theirs = cluster.key(&tenant, RoleName::Enforcer, None).await;
    let other = Socket::connect(url, "enforcer", "one", &theirs).await;
    assert!(other.is_ok(), "another tenant has places of its own");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_caller_that_drips_on_is_not_listened_to_for_long() {
    let cluster = Cluster::start(1).await;
    let address = cluster.nodes[0].url.replace("http://", "");
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let head = b"POST /v1/artifacts HTTP/1.1\r\nHost: test\r\nContent-Length: 1000000\r\n\r\n";
    stream.write_all(head).await.unwrap();
    let (mut reading, mut writing) = stream.into_split();
    let dripping = async {
        while writing.write_all(b"x").await.is_ok() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    let mut said = Vec::new();
    let answered = async {
        let mut bytes = [0; 1_024];
        while let Ok(count) = reading.read(&mut bytes).await {
            if count == 0 {
                break;
            }
            said.extend_from_slice(&bytes[..count]);
        }
    };
    timeout(
        Duration::from_secs(10),
        futures_util::future::join(dripping, answered),
    )
    .await
    .expect("it is closed");
    assert!(said.starts_with(b"HTTP/1.1 401"), "and had its answer");
}

/// A node's answer on a connection that a refused call came over: the head, until nothing more
/// comes for a moment.
async fn refused_over(address: &str, head: &str, parts: &[&str]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("POST /v1/artifacts HTTP/1.1\r\nHost: test\r\n{head}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    for part in parts {
        sleep(Duration::from_millis(150)).await;
        stream.write_all(part.as_bytes()).await.unwrap();
    }
    let mut said = String::new();
    while !said.contains("\r\n\r\n") {
        let mut bytes = [0; 1_024];
        let count = timeout(Duration::from_secs(5), stream.read(&mut bytes));
        let count = count.await.expect("an answer").unwrap();
        assert!(count > 0, "closed after {said:?}");
        said.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    said.to_lowercase()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_caller_is_told_whether_its_connection_goes_on() {
    let cluster = Cluster::start(1).await;
    let address = cluster.nodes[0].url.replace("http://", "");
    let goes_on = |said: &str| {
        assert!(said.starts_with("http/1.1 401"), "{said}");
        !said.contains("connection: close")
    };
    // A body in pieces, as slow links bring them.
    let said = refused_over(&address, "Content-Length: 4", &["ab", "cd"]).await;
    assert!(goes_on(&said), "{said}");
    // A client that asks before it sends need not send: then nobody knows where the next request
    // would begin.
    let asks = "Expect: 100-continue\r\nContent-Length: 4";
    let said = refused_over(&address, asks, &[]).await;
    assert!(!goes_on(&said), "{said}");
    // One that was asked to go on, and did, is refused and stays.
    let enforcer = cluster.enforcer("build-bot").await;
    let head = format!(
        "Authorization: Bearer {}\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked",
        enforcer.client.key()
    );
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let head = format!("POST /v1/artifacts HTTP/1.1\r\nHost: test\r\n{head}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut bytes = [0; 4_096];
    let count = stream.read(&mut bytes).await.unwrap();
    assert!(bytes[..count].starts_with(b"HTTP/1.1 100"));
    stream.write_all(b"2\r\n{}\r\n0\r\n\r\n").await.unwrap();
    let count = stream.read(&mut bytes).await.unwrap();
    let said = String::from_utf8_lossy(&bytes[..count]).to_lowercase();
    assert!(said.starts_with("http/1.1 400"), "{said}");
    assert!(!said.contains("connection: close"), "{said}");
}
