//! What the balancer does besides balancing: TLS, who is believed about the client, nodes that come, go and die.

use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::store::credential::RoleName;
use reqwest::Method;
use serde_json::json;

use super::Site;
use crate::support::haproxy::{CONFIGURATION, haproxy};
use crate::support::tls::{Authority, Files, Pair, TlsClient};
use crate::support::{Client, Cluster, public_key, request_id, sealed, signing_key};

const INBOX: &str = "/v1/approvers/alice/inbox";

/// A certificate that stands for alice.
async fn alice(cluster: &Cluster, authority: &Authority) -> Pair {
    let pair = authority.client();
    cluster.bind(&pair, RoleName::Approver, "alice").await;
    pair
}

#[tokio::test(flavor = "multi_thread")]
async fn what_clients_say_of_themselves_is_not_believed() {
    let site = Site::start(&[("TLS__CLIENT_CERT_HEADER", "X-Client-Cert")], &[]).await;
    let approver = site.cluster.approver("bob").await;
    let client = Client::new(
        vec![site.balancer.plain_url().await],
        Some(approver.client.key()),
    );
    let key = json!({ "publicKey": public_key(&signing_key(1)) });
    let put = client
        .call(Method::PUT, "/platform/v1/approvers/bob/keys/one")
        .header("X-Forwarded-For", "192.0.2.7")
        .header("X-Forwarded-Proto", "http")
        .json(&key);
    put.send().await.expect(200);
    let address = "select address from audit_events where action = 'key.registered'";
    assert_eq!(site.cluster.database.text(address).await, "127.0.0.1");

    let pair = alice(&site.cluster, &Authority::new("clients")).await;
    let shown = [("x-client-cert", STANDARD.encode(&pair.der))];
    let shown = shown
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    let stranger = TlsClient::trusting(&site.balancer.authority);
    let answer = stranger.get(&site.balancer.url, INBOX, &shown).await;
    answer.unwrap().refused(401, "UNAUTHENTICATED");
}

#[tokio::test(flavor = "multi_thread")]
async fn client_certificates_are_checked_by_the_balancer_and_handed_on() {
    let authority = Authority::new("clients");
    let files = Files::with(&authority.client());
    let trusted = files.put("clients.pem", &authority.pem());
    let site = Site::start(
        &[("TLS__CLIENT_CERT_HEADER", "X-Client-Cert")],
        &[("CLIENT_CA", trusted.to_str().unwrap())],
    )
    .await;
    let (url, servers) = (&site.balancer.url, &site.balancer.authority);
    let pair = alice(&site.cluster, &authority).await;
    let known = TlsClient::trusting(servers).showing(&pair);
    known.get(url, INBOX, &[]).await.unwrap().expect(200);
    let shown = [("x-client-cert", "bm90aGluZw==")];
    known.get(url, INBOX, &shown).await.unwrap().expect(200);

    let nobody = TlsClient::trusting(servers).get(url, INBOX, &[]).await;
    nobody.unwrap().refused(401, "UNAUTHENTICATED");
    let forged = alice(&site.cluster, &Authority::new("clients")).await;
    let forged = TlsClient::trusting(servers).showing(&forged);
    assert!(forged.get(url, INBOX, &[]).await.is_err(), "no handshake");
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_come_go_and_die_without_a_failed_call() {
    let mut site = Site::start(&[], &[]).await;
    let tls = TlsClient::trusting(&site.balancer.authority).offering(&[b"h2", b"http/1.1"]);
    let stream = tls.connect(&site.balancer.url).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));

    let enforcer = site.cluster.enforcer("build-bot").await;
    let url = site.balancer.plain_url().await;
    let enforcer = enforcer.at(vec![url]);
    let submit = async || {
        for _ in 0..20 {
            let submission = enforcer.submission(&request_id(), "alice", sealed());
            let submitted = enforcer.client.post("/v1/artifacts", &submission);
            submitted.await.expect(202);
        }
    };
    site.fleet.add_alike("127.0.0.5");
    site.balancer.name(&site.fleet.urls());
    site.balancer.sees(4).await;
    submit().await;
    site.balancer.name(&site.fleet.urls()[..3]);
    site.balancer.sees(3).await;
    submit().await;
    site.fleet.kill(0);
    submit().await;
    site.balancer.sees(2).await;
}

#[test]
fn nodes_without_a_common_name_are_listed() {
    let text = std::fs::read_to_string(CONFIGURATION).unwrap();
    let line = "server node-1 10.0.0.11:8080";
    assert!(text.contains(line), "as its comment says");
    let text = text.replace(
        "server-template node- 1-32 \"${NODES}\"",
        &format!("{line}\n"),
    );
    let pair = Authority::new("servers").server();
    let files = Files::with(&pair);
    let both = files.put("both.pem", &format!("{}{}", pair.certificate, pair.key));
    let output = Command::new(haproxy())
        .args(["-c", "-f"])
        .arg(files.put("haproxy.cfg", &text))
        .env_remove("NODES")
        .env("CERTIFICATE", both)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}
