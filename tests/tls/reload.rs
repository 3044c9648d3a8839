//! Certificates and keys replaced under a running node.

use std::time::Duration;

use super::Site;
use crate::support::scrape::scrape;
use crate::support::tls::{Authority, Conversation, TlsClient};
use crate::support::until;

/// Whether a new connection succeeds for those who trust this authority.
async fn is_trusted(site: &Site, authority: &Authority) -> bool {
    let answer = TlsClient::trusting(authority)
        .get(site.url(), "/livez", &[])
        .await;
    answer.is_ok_and(|answer| answer.status == 200)
}

async fn awaits(site: &Site, authority: &Authority) {
    until(
        "the new certificate is in force",
        Duration::from_secs(10),
        async || is_trusted(site, authority).await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn new_files_serve_new_connections_and_old_connections_go_on() {
    let site = Site::with(|config| config.tls.reload_seconds = 1).await;
    let client = TlsClient::trusting(&site.authority);
    let stream = client.connect(site.url()).await.unwrap();
    let mut old = Conversation::over(stream).await.unwrap();
    old.get("/livez", &[]).await.unwrap().expect(200);

    let next = Authority::new("the next");
    let pair = next.server();
    site.files.put("cert.pem", &pair.certificate);
    site.files.put("key.pem", &pair.key);
    awaits(&site, &next).await;
    assert!(!is_trusted(&site, &site.authority).await);
    old.get("/livez", &[]).await.unwrap().expect(200);
}

/// Waits until the node has looked at its files, and found them good or not.
async fn finds(site: &Site, good: bool) {
    let metrics = &site.cluster.nodes[0].metrics;
    let gauge = async || {
        scrape(metrics)
            .await
            .value("countersign_tls_files_refused", &[])
    };
    until("it has looked", Duration::from_secs(10), async || {
        (gauge().await < 0.5) == good
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_no_good_change_nothing_and_are_complained_of() {
    let site = Site::with(|config| config.tls.reload_seconds = 1).await;
    let good = std::fs::read_to_string(site.files.path("cert.pem")).unwrap();
    let other = site.authority.server();
    for broken in [
        "",
        "no certificate",
        &good[..good.len() / 2],
        &other.certificate,
    ] {
        site.files.put("cert.pem", broken);
        finds(&site, false).await;
        assert!(is_trusted(&site, &site.authority).await, "{broken}");
        site.files.put("cert.pem", &good);
        finds(&site, true).await;
    }
    let key = std::fs::read_to_string(site.files.path("key.pem")).unwrap();
    std::fs::remove_file(site.files.path("key.pem")).unwrap();
    finds(&site, false).await;
    assert!(is_trusted(&site, &site.authority).await);
    site.files.put("key.pem", &key);
    finds(&site, true).await;

    site.files.put("cert.pem", "");
    finds(&site, false).await;
    let next = Authority::new("the next");
    let pair = next.server();
    site.files.put("cert.pem", &pair.certificate);
    site.files.put("key.pem", &pair.key);
    awaits(&site, &next).await;
    finds(&site, true).await;
}
