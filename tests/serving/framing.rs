//! Where a request begins and ends: a node refuses what a proxy in front of it may read
//! differently.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::closed_after;
use crate::support::{Cluster, Enforcer};

/// The statuses of all answers to these bytes, which end the connection.
async fn statuses(address: &str, sent: &str) -> Vec<String> {
    let said = closed_after(address, sent.as_bytes()).await;
    let heads = said.split("HTTP/1.1 ").skip(1);
    heads.map(|head| head[..3].to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_two_readers_could_split_differently_are_refused() {
    let cluster = Cluster::start(1).await;
    let address = cluster.nodes[0].url.replace("http://", "");
    let get = "GET /livez HTTP/1.1\r\nHost: test\r\n";
    let post = "POST /livez HTTP/1.1\r\nHost: test\r\n";
    let refused = [
        "GET /livez HTTP/1.1\nHost: test\r\n\r\n".to_owned(),
        "GET /livez HTTP/1.1\r\nHost: test\n\r\n".to_owned(),
        "GET /livez HTTP/1.1\r\nHost: test\r\n\n".to_owned(),
        "GET /livez HTTP/1.1\nHost: test\n\n".to_owned(),
        "\nGET /livez HTTP/1.1\r\nHost: test\r\n\r\n".to_owned(),
        format!("{get}X-Note: a\nX-More: b\r\n\r\n"),
        format!("{get}X-Note: a\rb\r\n\r\n"),
        format!("{post}Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n"),
        format!("{post}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
        format!("{post}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
        format!("{post}Transfer-Encoding: identity\r\nContent-Length: 0\r\n\r\n"),
        format!("{post}Transfer-Encoding: \r\n\r\n"),
        format!("{post}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("{post}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"),
        format!("{post}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("{post}Content-Length: 0\r\nContent-Length: 0\r\n\r\n"),
        format!("{post}Content-Length: +0\r\n\r\n"),
        format!("{post}Content-Length: 0, 0\r\n\r\n"),
        format!("{post}Content-Length: {}0\r\n\r\n", " ".repeat(60)),
        format!("{post}Content-Length: 99999999999999999999\r\n\r\n"),
        format!("{post}Content-Length : 0\r\n\r\n"),
    ];
    for request in &refused {
        assert_eq!(statuses(&address, request).await, ["400"], "{request:?}");
    }
    let taken = [
        format!("\r\n{get}Connection: close\r\n\r\n"),
        format!("{get}transfer-encoding:\tChunked \r\nConnection: close\r\n\r\n0\r\n\r\n"),
        format!("{get}CONTENT-LENGTH: 2\r\nConnection: close\r\n\r\n\n\n"),
    ];
    for request in &taken {
        assert_eq!(statuses(&address, request).await, ["200"], "{request:?}");
    }
}

/// The head of a call whose body is read, but for the header that says how long it is. The body is
/// no JSON, so the answer is 400.
fn call(enforcer: &Enforcer) -> String {
    let key = enforcer.client.key();
    format!(
        "POST /v1/artifacts HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
    )
}

/// A body may hold any byte, and the request behind it is read as strictly as the first.
#[tokio::test(flavor = "multi_thread")]
async fn the_next_request_of_a_connection_is_read_as_strictly() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let address = cluster.nodes[0].url.replace("http://", "");
    let bodies = [
        "\r\n".to_owned(),
        "Content-Length: 4\r\n\r\n\n\r\n\n".to_owned(),
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(),
        "Transfer-Encoding: chunked\r\n\r\n3;a=b\r\n\n\r\n\r\nA \r\n0123\n\n\r\n\r\n\r\n0\r\nX-Sum: 1\r\n\r\n"
            .to_owned(),
        format!("Content-Length: 300\r\n\r\n{}", "\n".repeat(300)),
    ];
    for body in &bodies {
        let first = format!("{}{body}", call(&enforcer));
        let good = "GET /livez HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
        let both = statuses(&address, &format!("{first}{good}")).await;
        assert_eq!(both, ["400", "200"], "{body:?}");
        let bad = "GET /livez HTTP/1.1\r\nHost: test\nConnection: close\r\n\r\n";
        let second = statuses(&address, &format!("{first}{bad}")).await;
        assert_eq!(second, ["400", "400"], "{body:?}");
    }
}

/// The protocol library does not look at a head again before it has an end.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_refused_in_its_second_segment_is_answered_at_once() {
    let cluster = Cluster::with(1, |config| {
        config.server.header_timeout_seconds = 300;
        config.server.body_timeout_seconds = 300;
    })
    .await;
    let enforcer = cluster.enforcer("build-bot").await;
    let address = cluster.nodes[0].url.replace("http://", "");
    let chunked = format!("{}Transfer-Encoding: chunked\r\n\r\n", call(&enforcer));
    for (first, second) in [
        (
            "GET /livez HTTP/1.1\r\nHost: t\r\n",
            "Transfer-Encoding: gzip\r\n\r\n",
        ),
        ("GET /livez HTTP/1.1\r\nHost: t\r\n", "X-Note: a\n\r\n"),
        (&chunked, "2\r\n{}\r\n0\r\nX-Sum: 1\n\r\n"),
    ] {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        stream.write_all(first.as_bytes()).await.unwrap();
        // Long enough for the first to be read by itself; if it is not, this tests less.
        sleep(Duration::from_millis(200)).await;
        stream.write_all(second.as_bytes()).await.unwrap();
        let mut said = Vec::new();
        let closing = stream.read_to_end(&mut said);
        let closed = timeout(Duration::from_secs(20), closing).await;
        closed.expect("an answer").unwrap();
        let said = String::from_utf8_lossy(&said);
        assert!(said.starts_with("HTTP/1.1 400"), "{said}");
    }
}

/// The same bytes, one at a time: nothing depends on how the network cuts them.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_in_single_bytes_is_read_the_same() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let address = cluster.nodes[0].url.replace("http://", "");
    let chunked = "Transfer-Encoding: chunked\r\n\r\n2\r\n\n\n\r\n0\r\n\r\n";
    let first = format!("{}{chunked}", call(&enforcer));
    for (end, count) in [("\r\n", 1), ("\n", 0)] {
        let sent =
            format!("{first}GET /livez HTTP/1.1\r\nHost: test{end}Connection: close\r\n\r\n");
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (mut reader, mut writer) = stream.split();
        let mut said = Vec::new();
        let write = async {
            for byte in sent.as_bytes() {
                // A node that has refused it closes before the last byte.
                if writer.write_all(&[*byte]).await.is_err() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        };
        let ((), _closed) = tokio::join!(write, reader.read_to_end(&mut said));
        let said = String::from_utf8_lossy(&said);
        assert!(said.starts_with("HTTP/1.1 400"), "{said}");
        assert_eq!(said.matches("HTTP/1.1 200").count(), count, "{said}");
    }
}

/// Frames of HTTP/2 that begin and do not end.
#[tokio::test(flavor = "multi_thread")]
async fn a_frame_that_does_not_end_has_as_long_as_headers_may_take() {
    let cluster = Cluster::with(1, |config| {
        config.server.header_timeout_seconds = 1;
        config.server.idle_timeout_seconds = 600;
    })
    .await;
    let address = cluster.nodes[0].url.replace("http://", "");
    let opening = [
        &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..],
        &[0, 0, 0, 4, 0, 0, 0, 0, 0],
    ]
    .concat();
    let halves: [&[u8]; 4] = [
        // Of its header, of its payload, and of a block that goes on in another frame.
        &[0, 0, 40, 1],
        &[0, 0, 40, 1, 4, 0, 0, 0, 1, 0x82, 0x84],
        &[0, 0, 1, 1, 0, 0, 0, 0, 1, 0x82],
        &[0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2],
    ];
    for half in halves {
        let said = closed_after(&address, &[&opening, half].concat()).await;
        assert!(!said.contains("200 OK"));
    }
    // The opening alone waits for a request, and bytes now and then do not make half a frame
    // younger.
    let mut idle = TcpStream::connect(&address).await.unwrap();
    idle.write_all(&opening).await.unwrap();
    let mut slow = TcpStream::connect(&address).await.unwrap();
    slow.write_all(&[&opening, halves[1]].concat())
        .await
        .unwrap();
    let mut sink = [0; 256];
    let closing = async {
        loop {
            sleep(Duration::from_millis(400)).await;
            let _sent = slow.write_all(&[0x86]).await;
            let read = timeout(Duration::from_millis(50), slow.read(&mut sink)).await;
            if let Ok(Ok(0) | Err(_)) = read {
                return;
            }
        }
    };
    let closed = timeout(Duration::from_secs(15), closing).await;
    closed.expect("the slow one is closed");
    let settings = idle.read(&mut sink).await.unwrap();
    assert!(settings > 0);
    let open = timeout(Duration::from_millis(300), idle.read(&mut sink)).await;
    assert!(!matches!(open, Ok(Ok(0) | Err(_))), "{open:?}");
}
