//! Storage and logs of pairing, and the secret that the nodes share.

use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign::config::Secret;
use countersign::protocol::pairing::PairingCode;

use super::{
    PAIRINGS, REVOKE, complete, initiate, pair, resolve, revocation, status, submit, text,
};
use crate::support::cluster::CLUSTER_SECRET;
use crate::support::database::Database;
use crate::support::process::{Process, Signal, countersign, signal};
use crate::support::{Cluster, request_id, until};

#[tokio::test(flavor = "multi_thread")]
async fn neither_codes_nor_tokens_nor_the_secret_are_in_the_database() {
    let cluster = Cluster::start(2).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let alice = cluster.approver("alice").await;
    let (open, nonce) = initiate(&enforcer).await;
    let (used, _) = initiate(&enforcer).await;
    resolve(&alice, &used).await.expect(200);
    resolve(&alice, "0000-0000").await.refused(404, "NOT_FOUND");
    let tokens = [pair(&enforcer, &alice).await, pair(&enforcer, &alice).await];
    let request = request_id();
    submit(&enforcer, &request, Some(&tokens[1]))
        .await
        .expect(202);
    let body = revocation(&tokens[1]);
    alice.client.post(REVOKE, &body).await.expect(200);

    let everything = cluster.database.everything().await;
    assert!(everything.contains(&nonce), "the search sees sessions");
    let hex = |bytes: &[u8]| -> String {
        bytes.iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").unwrap();
            text
        })
    };
    let mut secrets = vec![CLUSTER_SECRET.to_owned(), hex(CLUSTER_SECRET.as_bytes())];
    for code in [&open, &used] {
        let bare = code.replace('-', "");
        let bits = PairingCode::parse(code).unwrap();
        secrets.extend([code.clone(), hex(bare.as_bytes()), hex(code.as_bytes())]);
        secrets.extend([bare, hex(bits.as_bytes())]);
    }
    for token in &tokens {
        let bits = URL_SAFE_NO_PAD.decode(token).unwrap();
        secrets.extend([token.clone(), hex(token.as_bytes()), hex(&bits)]);
    }
    for secret in secrets {
        assert!(!everything.contains(&secret), "{secret} is stored");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_with_different_secrets_do_not_know_each_others_codes_and_live() {
    let cluster = Cluster::with(2, |config| {
        if config.node.id == "node-1" {
            config.security.cluster_secret = Secret::from("x".repeat(32).as_str());
        }
    })
    .await;
    let enforcer = cluster.enforcer("build-bot").await;
    let alice = cluster.approver("alice").await;
    let (code, nonce) = initiate(&enforcer.on(0)).await;
    resolve(&alice.on(1), &code).await.refused(404, "NOT_FOUND");
    resolve(&alice.on(0), &code).await.expect(200);
    let paired = complete(&alice.on(0), &nonce).await.expect(200);
    let token = text(&paired, "routingToken");
    // A token is known by its hash, whichever node is asked; only showing it again takes the
    // secret.
    submit(&enforcer.on(1), &request_id(), Some(&token))
        .await
        .expect(202);
    let elsewhere = status(&enforcer.on(1), &nonce).await.expect(200).json();
    assert_eq!(elsewhere["status"], "completed");
    assert_eq!(elsewhere.get("routingToken"), None);
    let listed = alice.on(1).client.get(PAIRINGS).await.expect(200).json();
    assert_eq!(listed["items"][0]["enforcerId"], "build-bot");
    assert_eq!(listed["items"][0].get("routingToken"), None);
    let listed = alice.on(0).client.get(PAIRINGS).await.expect(200).json();
    assert_eq!(listed["items"][0]["routingToken"], token);
    let checks = "select count(distinct secret_check) from nodes";
    until("both have told", Duration::from_secs(10), async || {
        cluster.database.number(checks).await == 2
    })
    .await;
}

/// A node as a process, without a secret, that logs all it can.
fn without_secret(database_url: &str, ready: &Path, log: &Path) -> Process {
    Process::start(
        countersign()
            .args(["--database-url", database_url, "serve"])
            .args(["--listen", "127.0.0.1:0", "--ready-file"])
            .arg(ready)
            .env("COUNTERSIGN_SERVER__LAME_DUCK_MS", "0")
            .env("COUNTERSIGN_LOG__FILTER", "debug,countersign=trace")
            .stderr(File::create(log).unwrap()),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_a_secret_works_alone_and_logs_neither_codes_nor_tokens() {
    let database = Database::create().await;
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let mut node = without_secret(&database.url, &path("ready"), &path("log"));
    let url = node.await_file(&path("ready"));
    // A second one without a secret joins nobody, and says what to set.
    let second = without_secret(&database.url, &path("ready-2"), &path("log-2"));
    let refused = tokio::task::spawn_blocking(move || second.end().0);
    // A cluster of our own on the same database, for its credentials.
    let cluster = Cluster::on(database, 1, |_| {}).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let alice = cluster.approver("alice").await;
    let enforcer = enforcer.at(vec![url.clone()]);
    let alice = alice.at(vec![url.clone()]);
    let (code, nonce) = initiate(&enforcer).await;
    resolve(&alice, &code).await.expect(200);
    let paired = complete(&alice, &nonce).await.expect(200);
    let token = text(&paired, "routingToken");
    submit(&enforcer, &request_id(), Some(&token))
        .await
        .expect(202);
    status(&enforcer, &nonce).await.expect(200);
    alice.client.get(PAIRINGS).await.expect(200);
    let body = revocation(&token);
    alice.client.post(REVOKE, &body).await.expect(200);
    assert!(!refused.await.unwrap(), "a second node starts");
    let log = std::fs::read_to_string(path("log-2")).unwrap();
    assert!(log.contains("other nodes run on this database"), "{log}");
    signal(node.pid(), Signal::SIGTERM);
    assert!(node.end().0);
    let log = std::fs::read_to_string(path("log")).unwrap();
    assert_eq!(log.matches("security.cluster_secret is not set").count(), 1);
    // Its beats met others' all the while; it warned once.
    assert_eq!(log.matches("set the same on every node").count(), 1);
    assert!(
        log.contains("/v1/pairing/resolve/{code}"),
        "the search sees calls"
    );
    for secret in [&code, &code.replace('-', ""), &nonce, &token] {
        assert!(!log.contains(secret), "{secret} is logged");
    }
}
