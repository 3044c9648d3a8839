//! Behind a proxy that ends TLS: what it must say, and who is believed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::config::{Config, Secret, TlsMode};
use countersign::store::identity::credential::RoleName;
use serde_json::json;
use std::net::IpAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::tls::{Authority, Conversation, Files, Pair, TlsClient, from};
use crate::support::{Answer, Cluster};

const PROXY: &str = "127.0.0.1";
const STRANGER: &str = "127.0.0.2";
const HTTPS: (&str, &str) = ("x-forwarded-proto", "https");
const SECRET: (&str, &str) = ("x-proxy-secret", "secret-of-the-proxies-0123456789abcdef");
const INBOX: &str = "/v1/approvers/alice/inbox";

fn behind_proxy(config: &mut Config) {
    config.tls.mode = TlsMode::Upstream;
    config.tls.proxies = vec![PROXY.parse::<IpAddr>().unwrap().into()];
    config.tls.proxy_secret = Secret::from(SECRET.1);
    config.tls.client_cert_header = "X-Client-Cert".into();
}

/// A call from an address, with the proxies' secret.
async fn ask(cluster: &Cluster, source: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let stream = from(source, &cluster.nodes[0].url).await.unwrap();
    let mut calls = Conversation::over(stream).await.unwrap();
    let headers = [headers, &[SECRET]].concat();
    calls.get(path, &headers).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn browsers_are_told_to_come_by_tls_only() {
    let name = "strict-transport-security";
    let cluster = Cluster::with(1, behind_proxy).await;
    let page = ask(&cluster, PROXY, "/", &[HTTPS]).await.expect(200);
    assert_eq!(page.header(name), Some("max-age=31536000"));
    let site = super::Site::start().await;
    let client = TlsClient::trusting(&site.authority);
    let page = client.get(site.url(), "/", &[]).await.unwrap().expect(200);
    assert_eq!(page.header(name), Some("max-age=31536000"));
    // On loopback without TLS there is nothing to come back to.
    let plain = Cluster::start(1).await;
    let page = plain.client(None).get("/").await.expect(200);
    assert_eq!(page.header(name), None);
}

/// A certificate that stands for alice.
async fn alice(cluster: &Cluster) -> Pair {
    let pair = Authority::new("clients").client();
    cluster.bind(&pair, RoleName::Approver, "alice").await;
    pair
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_must_have_been_called_over_tls() {
    let cluster = Cluster::with(1, behind_proxy).await;
    let key = cluster.key(&cluster.tenant, RoleName::Approver, Some("alice"));
    let bearer = format!("Bearer {}", key.await);
    let token = ("authorization", bearer.as_str());
    for (path, envelope) in [
        (INBOX, true),
        ("/v1/status", false),
        ("/v1/pairings", false),
    ] {
        let answer = ask(&cluster, PROXY, path, &[token, HTTPS]).await;
        answer.expect(200);
        for proto in [&[][..], &[("x-forwarded-proto", "http")]] {
            let headers = [&[token], proto].concat();
            let answer = ask(&cluster, PROXY, path, &headers).await;
            let answer = answer.refused(403, "FORBIDDEN");
            assert!(
                answer.text.contains("X-Forwarded-Proto: https"),
                "{answer:?}"
            );
            assert_eq!(answer.json()["msgType"] == "error", envelope, "{answer:?}");
        }
    }
    let forwarded = ("x-forwarded-for", "6.6.6.6, 192.0.2.1");
    let answer = ask(&cluster, PROXY, INBOX, &[token, HTTPS, forwarded]).await;
    answer.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn health_needs_no_proxy() {
    let cluster = Cluster::with(1, behind_proxy).await;
    for source in [PROXY, STRANGER] {
        for path in ["/livez", "/readyz"] {
            ask(&cluster, source, path, &[]).await.expect(200);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_no_listed_proxy_is_not_served() {
    let cluster = Cluster::with(1, behind_proxy).await;
    let pair = alice(&cluster).await;
    let shown = STANDARD.encode(&pair.der);
    let forged = [HTTPS, ("x-client-cert", &shown), ("x-forwarded-for", PROXY)];
    for path in [INBOX, "/v1/status"] {
        ask(&cluster, STRANGER, path, &forged)
            .await
            .refused(403, "FORBIDDEN");
    }
    // From another machine, as far as one can be had on this one: not even a connection.
    let Some(outside) = own_address() else {
        return;
    };
    let mut stream = from(&outside, &cluster.nodes[0].url).await.unwrap();
    let ask = "GET /livez HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
    let _closed = stream.write_all(ask.as_bytes()).await;
    let mut said = String::new();
    let _reset = stream.read_to_string(&mut said).await;
    assert_eq!(said, "");
}

/// An address of this machine that is not loopback. Nothing is sent.
fn own_address() -> Option<String> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("198.51.100.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback()).then(|| address.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_hands_on_the_certificate_in_any_of_three_spellings() {
    let cluster = Cluster::with(1, behind_proxy).await;
    let pair = alice(&cluster).await;
    let escaped: String = pair
        .certificate
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect();
    let plain = STANDARD.encode(&pair.der);
    let between_colons = format!(":{plain}:");
    for spelling in [&escaped, &plain, &between_colons] {
        let shown = ("x-client-cert", spelling.as_str());
        ask(&cluster, PROXY, INBOX, &[HTTPS, shown])
            .await
            .expect(200);
        let bob = "/v1/approvers/bob/inbox";
        ask(&cluster, PROXY, bob, &[HTTPS, shown])
            .await
            .refused(403, "FORBIDDEN");
        let bad = ("authorization", "Bearer nonsense");
        for headers in [&[HTTPS, shown, bad][..], &[HTTPS, shown, shown], &[HTTPS]] {
            ask(&cluster, PROXY, INBOX, headers)
                .await
                .refused(401, "UNAUTHENTICATED");
        }
    }
    let status = ask(&cluster, PROXY, "/v1/status", &[HTTPS]).await.json();
    assert!(
        status["authentication"]
            .as_array()
            .unwrap()
            .contains(&json!("mutualTls"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn in_other_modes_nobody_is_believed() {
    let headers = |shown: &'static str| [HTTPS, ("x-client-cert", shown)];
    // Configured or not: without mode `upstream` there is no proxy.
    let plain = Cluster::with(1, |config| {
        behind_proxy(config);
        config.tls.mode = TlsMode::Off;
    })
    .await;
    let shown: &'static str = STANDARD.encode(alice(&plain).await.der).leak();
    ask(&plain, PROXY, INBOX, &headers(shown))
        .await
        .refused(401, "UNAUTHENTICATED");

    let authority = Authority::new("servers");
    let files = Files::with(&authority.server());
    let encrypted = Cluster::with(1, |config| {
        behind_proxy(config);
        files.configure(config);
    })
    .await;
    let shown: &'static str = STANDARD.encode(alice(&encrypted).await.der).leak();
    let answer = TlsClient::trusting(&authority)
        .get(&encrypted.nodes[0].url, INBOX, &headers(shown))
        .await;
    answer.unwrap().refused(401, "UNAUTHENTICATED");

    let nameless = Cluster::with(1, |config| {
        behind_proxy(config);
        config.tls.client_cert_header = String::new();
    })
    .await;
    let shown: &'static str = STANDARD.encode(alice(&nameless).await.der).leak();
    ask(&nameless, PROXY, INBOX, &headers(shown))
        .await
        .refused(401, "UNAUTHENTICATED");
}
