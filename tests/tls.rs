//! TLS in the process: what is spoken, what is refused, and peers that do not behave. Then client
//! certificates, and proxies that end TLS.

mod believed;
mod clients;
mod handshakes;
mod networks;
mod reload;
mod startup;
mod upstream;

use std::time::Duration;

use axum::body::Bytes;
use countersign::config::Config;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ProtocolVersion;
use rustls::version::{TLS12, TLS13};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::Cluster;
use crate::support::tls::{Authority, Files, TlsClient, address};

/// A node with TLS, and who signed its certificate.
struct Site {
    authority: Authority,
    files: Files,
    cluster: Cluster,
}

impl Site {
    async fn start() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: impl Fn(&mut Config)) -> Self {
        let authority = Authority::new("servers");
        let files = Files::with(&authority.server());
        let cluster = Cluster::with(1, |config| {
            files.configure(config);
            change(config);
        })
        .await;
        Self {
            authority,
            files,
            cluster,
        }
    }

    fn url(&self) -> &str {
        &self.cluster.nodes[0].url
    }
}

/// Sends these bytes and reads until the node closes the connection.
async fn closed_after(url: &str, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address(url)).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut said = Vec::new();
    let closing = stream.read_to_end(&mut said);
    // A reset is a way to close, too.
    let _reset = timeout(Duration::from_secs(20), closing)
        .await
        .expect("the node closes it");
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_1_2_and_1_3_are_spoken() {
    let site = Site::start().await;
    for (version, expected) in [
        (&TLS12, ProtocolVersion::TLSv1_2),
        (&TLS13, ProtocolVersion::TLSv1_3),
    ] {
        let client = TlsClient::trusting(&site.authority).speaking(version);
        let stream = client.connect(site.url()).await.unwrap();
        assert_eq!(stream.get_ref().1.protocol_version(), Some(expected));
        let answer = client.get(site.url(), "/livez", &[]).await.unwrap();
        answer.expect(200);
    }
}

/// A `ClientHello` of TLS 1.`minor - 1`, by hand: our library does not speak the old ones.
fn hello(minor: u8) -> Vec<u8> {
    // ECDHE with ECDSA: AES in CBC for the old versions, in GCM for 1.2.
    let suites = [0xc0, 0x09, 0xc0, 0x2b];
    let groups = [0, 10, 0, 4, 0, 2, 0, 23];
    let formats = [0, 11, 0, 2, 1, 0];
    let signatures = [0, 13, 0, 4, 0, 2, 4, 3];
    let extensions = [&groups[..], &formats, &signatures].concat();
    let length = |part: &[u8]| u8::try_from(part.len()).unwrap();
    let body = [
        &[3, minor][..],
        &[7; 32],
        &[0],
        &[0, length(&suites)],
        &suites,
        &[1, 0],
        &[0, length(&extensions)],
        &extensions,
    ]
    .concat();
    let head = [22, 3, 1, 0, length(&body) + 4, 1, 0, 0, length(&body)];
    [&head[..], &body].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_1_1_is_refused() {
    let site = Site::with(|config| config.tls.handshake_timeout_seconds = 1).await;
    for minor in [0, 1, 2] {
        let said = closed_after(site.url(), &hello(minor)).await;
        // A fatal alert: protocol_version.
        assert!(matches!(said[..], [21, 3, _, 0, 2, 2, 70]), "{said:?}");
    }
    // The same hello in 1.2 is answered with one.
    let said = closed_after(site.url(), &hello(3)).await;
    assert!(matches!(said[..], [22, 3, 3, _, _, 2, ..]), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_http_is_not_answered_where_tls_is_spoken() {
    let site = Site::start().await;
    for words in [
        "GET /livez HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let said = closed_after(site.url(), words.as_bytes()).await;
        assert!(!String::from_utf8_lossy(&said).contains("HTTP"), "{said:?}");
        assert!(
            said.is_empty() || said[0] == 21,
            "an alert at most: {said:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_trusts_another_authority_does_not_talk_to_the_node() {
    let site = Site::start().await;
    let other = Authority::new("others");
    let refused = TlsClient::trusting(&other).connect(site.url()).await;
    let error = refused.expect_err("it is not trusted").to_string();
    assert!(error.contains("UnknownIssuer"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn http_2_is_negotiated() {
    let site = Site::start().await;
    let client = TlsClient::trusting(&site.authority).offering(&[b"h2", b"http/1.1"]);
    let stream = client.connect(site.url()).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    tokio::spawn(connection);
    for _ in 0..2 {
        let request = hyper::Request::get("https://localhost/livez");
        let request = request.body(Empty::<Bytes>::new()).unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.version(), hyper::Version::HTTP_2);
        assert_eq!(response.status(), 200);
        response.into_body().collect().await.unwrap();
    }
    let client = TlsClient::trusting(&site.authority).offering(&[b"http/1.1"]);
    let stream = client.connect(site.url()).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
}
