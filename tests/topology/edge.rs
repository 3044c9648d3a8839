//! The balancer beyond balancing: TLS, which proxies are believed about the client, nodes that
//! come, go and die.

use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::store::identity::credential::RoleName;
use reqwest::Method;
use serde_json::json;

use super::Site;
use crate::support::haproxy::{CONFIGURATION, haproxy, major_version};
use crate::support::process::{Signal, signal};
use crate::support::tls::{Authority, Conversation, Files, Pair, TlsClient};
use crate::support::{Client, Cluster, compact, registration, request_id, sealed, signing_key};

const INBOX: &str = "/v1/approvers/alice/inbox";
const SECRET: &str = "secret-of-the-proxies-0123456789abcdef";
/// Nodes that take certificates from a proxy which knows the secret.
const HANDS_ON: [(&str, &str); 2] = [
    ("TLS__CLIENT_CERT_HEADER", "X-Client-Cert"),
    ("TLS__PROXY_SECRET", SECRET),
];

/// A certificate that stands for alice.
async fn alice(cluster: &Cluster, authority: &Authority) -> Pair {
    let pair = authority.client();
    cluster.bind(&pair, RoleName::Approver, "alice").await;
    pair
}

#[tokio::test(flavor = "multi_thread")]
async fn what_clients_say_of_themselves_is_not_believed() {
    let site = Site::start(&HANDS_ON, &[("PROXY_SECRET", SECRET)]).await;
    let approver = site.cluster.approver("bob").await;
    let client = Client::new(
        vec![site.balancer.plain_url().await],
        Some(approver.client.key()),
    );
    let key = registration(&site.cluster.tenant, "bob", "one", &signing_key(1));
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
    let trusted = ("CLIENT_CA", trusted.to_str().unwrap());
    let site = Site::start(&HANDS_ON, &[trusted, ("PROXY_SECRET", SECRET)]).await;
    let (url, servers) = (&site.balancer.url, &site.balancer.authority);
    let pair = alice(&site.cluster, &authority).await;
    let known = TlsClient::trusting(servers).showing(&pair);
    known.get(url, INBOX, &[]).await.unwrap().expect(200);
    let shown = [("x-client-cert", "bm90aGluZw==")];
    known.get(url, INBOX, &shown).await.unwrap().expect(200);

    // Bound through the balancer, by who presents it there.
    let admin = site.cluster.admin().await;
    let body = json!({ "role": "approver", "boundId": "alice", "kind": "certificate" });
    let made = admin.post("/platform/v1/credentials", &body).await;
    let code = json!({ "code": made.expect(201).json()["code"] });
    let bind = "/platform/v1/certificates";
    let nobody = TlsClient::trusting(servers);
    let refused = nobody.post(url, bind, &code).await.unwrap();
    refused.refused(401, "UNAUTHENTICATED");
    let pair = authority.client();
    let holder = TlsClient::trusting(servers).showing(&pair);
    holder.post(url, bind, &code).await.unwrap().expect(200);
    holder.get(url, INBOX, &[]).await.unwrap().expect(200);

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

/// Also on a connection that has served calls before, where older balancers close the connection.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_whose_node_dies_is_answered() {
    let mut site = Site::start(&[], &[]).await;
    site.balancer.name(&site.fleet.urls()[..1]);
    site.balancer.sees(1).await;
    let tls = TlsClient::trusting(&site.balancer.authority);
    let stream = tls.connect(&site.balancer.url).await.unwrap();
    let mut connection = Conversation::over(stream).await.unwrap();
    for _ in 0..3 {
        let status = connection.get("/v1/status", &[]).await;
        status.unwrap().expect(200);
    }
    signal(site.fleet.pid(0), Signal::SIGSTOP);
    let change = connection.call("POST", "/v1/acks", &[], None);
    let crash = async {
        site.balancer.serves(1).await;
        site.fleet.kill(0);
    };
    match futures_util::future::join(change, crash).await.0 {
        Ok(answer) => drop(answer.expect(502)),
        Err(closed) => assert!(major_version() < 3, "{closed}"),
    }
}

/// It begins anew on another node, as the guide says: with its whole `timeout`.
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_survives_the_death_of_its_node() {
    let mut site = Site::start(&[], &[]).await;
    let urls = vec![site.balancer.plain_url().await];
    let enforcer = site.cluster.enforcer("build-bot").await.at(urls.clone());
    let approver = site.cluster.approver("alice").await.at(urls);
    let request = request_id();
    let submitted = enforcer.submit(&request, "alice", sealed()).await;
    submitted.expect(202);
    site.balancer.name(&site.fleet.urls()[..1]);
    site.balancer.sees(1).await;
    let waiting = async { enforcer.wait(&request, 60).await.expect(200) };
    let crash = async {
        site.balancer.serves(1).await;
        site.balancer.name(&site.fleet.urls());
        site.balancer.sees(3).await;
        site.fleet.kill(0);
        site.balancer.sees(2).await;
        let decided = approver.decide(&request, compact("approve")).await;
        decided.expect(200);
    };
    futures_util::future::join(waiting, crash).await;
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
