//! Client certificates claimed from a proxy's network, used past their end, or revoked.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::clock::Clock;
use countersign::config::{Secret, TlsMode};
use countersign::protocol::credential::RoleName;
use time::OffsetDateTime;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::Site;
use crate::support::push::Socket;
use crate::support::scrape::scrape;
use crate::support::tls::{Authority, Conversation, Pair, TlsClient, from};
use crate::support::{Cluster, until};

const EXCHANGES: &str = "/platform/v1/exchanges";

fn soon(seconds: i64) -> OffsetDateTime {
    Clock::system().now().inner() + time::Duration::seconds(seconds)
}

#[tokio::test(flavor = "multi_thread")]
async fn claiming_a_certificate_from_the_proxies_network() {
    const SECRET: &str = "secret-of-the-proxies-0123456789abcdef";
    let cluster = Cluster::with(1, |config| {
        config.tls.mode = TlsMode::Upstream;
        config.tls.proxies = vec!["127.0.0.0/8".parse().unwrap()];
        config.tls.client_cert_header = "X-Client-Cert".into();
        config.tls.proxy_secret = Secret::from(SECRET);
    })
    .await;
    let pair = Authority::new("clients").client();
    cluster.bind(&pair, RoleName::Enforcer, "build-bot").await;
    let shown = STANDARD.encode(&pair.der);
    let claimed = [
        ("x-forwarded-proto", "https"),
        ("x-client-cert", shown.as_str()),
    ];
    let ask = async |source: &str, more: &[(&str, &str)]| {
        let stream = from(source, &cluster.nodes[0].url).await.unwrap();
        let mut calls = Conversation::over(stream).await.unwrap();
        let headers = [&claimed[..], more].concat();
        calls.get(EXCHANGES, &headers).await.unwrap()
    };
    let wrong = SECRET.replace('0', "1");
    for more in [
        &[][..],
        &[("x-proxy-secret", "")],
        &[("x-proxy-secret", &SECRET[1..])],
        &[("x-proxy-secret", &wrong)],
        &[("authorization", SECRET)],
    ] {
        for source in ["127.0.0.1", "127.0.0.2"] {
            ask(source, more).await.refused(403, "FORBIDDEN");
        }
    }
    let good = ("x-proxy-secret", SECRET);
    ask("127.0.0.1", &[good]).await.expect(200);
    // While the secret is changed a proxy sends both.
    let both = [("x-proxy-secret", wrong.as_str()), good];
    ask("127.0.0.1", &both).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn staying_connected_past_the_end_of_the_certificate() {
    let site = Site::start().await;
    let bot = site.clients.client_until(soon(6));
    let (_, code) = site.pending(&site.cluster.tenant).await;
    site.bind(&bot, &code).await.expect(200);
    let connect = async || site.showing(&bot).connect(site.url()).await.unwrap();
    let socket = Socket::over(connect().await, "enforcer", "build-bot").await;
    let mut socket = socket.unwrap();
    let mut events = connect().await;
    let ask = b"GET /v1/sse/enforcers/build-bot HTTP/1.1\r\nHost: test\r\n\r\n";
    events.write_all(ask).await.unwrap();
    let mut calls = Conversation::over(connect().await).await.unwrap();
    calls.get(EXCHANGES, &[]).await.unwrap().expect(200);
    let ending = async {
        assert_eq!(socket.closed().await, 1008);
        let mut text = String::new();
        let mut buffer = vec![0; 16 << 10];
        while let Ok(count @ 1..) = events.read(&mut buffer).await {
            text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        let answer = calls.get(EXCHANGES, &[]).await.unwrap();
        answer.refused(401, "UNAUTHENTICATED");
    };
    timeout(Duration::from_secs(20), ending)
        .await
        .expect("they end with it");
}

#[tokio::test(flavor = "multi_thread")]
async fn connecting_with_a_revoked_certificate() {
    let far = soon(3_600);
    let site = Site::with(|config, files, clients| {
        config.tls.reload_seconds = 1;
        config.tls.client_crl_file = Some(files.put("crl.pem", &clients.revocations(&[], far)));
    })
    .await;
    let (bot, other) = (site.clients.client(), site.clients.client());
    let is_let_in = async |pair: &Pair| {
        let answer = site.showing(pair).get(site.url(), "/livez", &[]).await;
        answer.is_ok()
    };
    assert!(is_let_in(&bot).await && is_let_in(&other).await);
    let list = site.clients.revocations(&[&bot], far);
    site.files.put("crl.pem", &list);
    until(
        "the list is in force",
        Duration::from_secs(10),
        async || !is_let_in(&bot).await,
    )
    .await;
    assert!(is_let_in(&other).await);

    // A list that cannot be used changes nothing.
    site.files.put("crl.pem", "no list");
    let metrics = &site.cluster.nodes[0].metrics;
    until(
        "it has been looked at",
        Duration::from_secs(10),
        async || {
            let read = scrape(metrics).await;
            read.value("countersign_tls_files_refused", &[]) > 0.5
        },
    )
    .await;
    assert!(!is_let_in(&bot).await && is_let_in(&other).await);
    // One that is past its next update may lack the latest revocations.
    let stale = site.clients.revocations(&[], soon(-1));
    site.files.put("crl.pem", &stale);
    until("nobody is let in", Duration::from_secs(10), async || {
        !is_let_in(&other).await
    })
    .await;
    until("it is complained of", Duration::from_secs(10), async || {
        let read = scrape(metrics).await;
        read.value("countersign_tls_files_refused", &[]) > 0.5
    })
    .await;
    let without = TlsClient::trusting(&site.servers);
    without
        .get(site.url(), "/livez", &[])
        .await
        .unwrap()
        .expect(200);
}
