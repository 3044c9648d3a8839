//! Peers that do not behave, with TLS in between: silent, halting, slow.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::{Site, closed_after};
use crate::support::crowd;
use crate::support::tls::{Conversation, TlsClient, address};

/// The beginning of a `ClientHello` that promises more.
const HALF_A_HELLO: [u8; 12] = [22, 3, 1, 1, 0, 1, 0, 0, 252, 3, 3, 7];

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_that_does_not_end_is_let_go() {
    let site = Site::with(|config| config.tls.handshake_timeout_seconds = 1).await;
    for begun in [&b""[..], &HALF_A_HELLO] {
        let started = Instant::now();
        let said = closed_after(site.url(), begun).await;
        assert!(said.is_empty(), "{said:?}");
        assert!(started.elapsed() < Duration::from_secs(5));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn handshakes_that_hang_stop_nobody_else() {
    let site = Site::start().await;
    let crowd = crowd(200).await;
    let hang = async {
        let mut hanging = Vec::new();
        for number in 0..crowd.size {
            let mut stream = TcpStream::connect(address(site.url())).await.unwrap();
            if number % 2 == 0 {
                stream.write_all(&HALF_A_HELLO).await.unwrap();
            }
            hanging.push(stream);
        }
        hanging
    };
    let hanging = timeout(Duration::from_secs(10), hang)
        .await
        .expect("each is let in");
    let client = TlsClient::trusting(&site.authority);
    let asking = client.get(site.url(), "/livez", &[]);
    let answer = timeout(Duration::from_secs(5), asking).await;
    answer.expect("at once").unwrap().expect(200);
    // The node does not wait for them when it stops, either.
    let Site { cluster, .. } = site;
    let started = Instant::now();
    for node in cluster.nodes {
        node.stop().await;
    }
    assert!(started.elapsed() < Duration::from_secs(8));
    drop(hanging);
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_that_do_not_end_are_not_waited_for() {
    let site = Site::with(|config| {
        config.server.header_timeout_seconds = 1;
        config.server.idle_timeout_seconds = 3;
    })
    .await;
    let client = TlsClient::trusting(&site.authority);
    for begun in [&b""[..], b"GET /livez HTTP/1.1\r\nHost: test\r\nX-Slow:"] {
        let mut stream = client.connect(site.url()).await.unwrap();
        stream.write_all(begun).await.unwrap();
        stream.flush().await.unwrap();
        let mut said = Vec::new();
        let closing = stream.read_to_end(&mut said);
        let _cut = timeout(Duration::from_secs(10), closing)
            .await
            .expect("the node closes it");
        assert!(!String::from_utf8_lossy(&said).contains("200 OK"));
    }
    // A peer that trickles after a first request is let go, too.
    let mut stream = client.connect(site.url()).await.unwrap();
    let first = b"GET /livez HTTP/1.1\r\nHost: test\r\n\r\n";
    stream.write_all(first).await.unwrap();
    let trickling = async {
        loop {
            if stream.write_all(b"G").await.is_err() || stream.flush().await.is_err() {
                return;
            }
            let mut byte = [0; 512];
            let reading = timeout(Duration::from_millis(300), stream.read(&mut byte));
            if matches!(reading.await, Ok(Ok(0) | Err(_))) {
                return;
            }
        }
    };
    timeout(Duration::from_secs(10), trickling)
        .await
        .expect("the node closes it");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_lives_on_though_tls_itself_has_something_to_say() {
    let site = Site::with(|config| config.server.header_timeout_seconds = 1).await;
    let client = TlsClient::trusting(&site.authority);
    let ask = b"GET /livez HTTP/1.1\r\nHost: test\r\n\r\n";
    let mut stream = client.connect(site.url()).await.unwrap();
    let mut buffer = [0; 4_096];
    for _ in 0..2 {
        stream.write_all(ask).await.unwrap();
        let count = stream.read(&mut buffer).await.unwrap();
        let said = String::from_utf8_lossy(&buffer[..count]).into_owned();
        assert!(said.starts_with("HTTP/1.1 200"), "{said}");
        // Longer than headers may take, with new keys in between: bytes, but none of a request.
        for _ in 0..3 {
            sleep(Duration::from_secs(1)).await;
            stream.get_mut().1.refresh_traffic_keys().unwrap();
            stream.flush().await.unwrap();
        }
    }
    let mut conversation = Conversation::over(stream).await.unwrap();
    conversation.get("/livez", &[]).await.unwrap().expect(200);
}
