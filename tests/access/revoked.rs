//! Calls that last: a credential that ends meanwhile ends them too.

use std::time::{Duration, Instant};

use countersign::protocol::id::{CredentialId, TextId as _};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::support::{Client, Cluster, request_id, sealed, until};

/// A node refuses a revoked credential within 5 s.
const PATIENCE: Duration = Duration::from_secs(8);
/// A body that takes less is not worth a second look at its credential.
const SLOW: Duration = Duration::from_millis(1_500);

async fn revoke(cluster: &Cluster, client: &Client) {
    let id = CredentialId::parse(client.key().split('_').nth(1).unwrap()).unwrap();
    let administration = &cluster.administration;
    let revoked = administration.revoke_credential(&id).await;
    revoked.unwrap();
}

/// The status of a call whose credential ends while its body arrives, or does not.
async fn status_of_slow_call(
    cluster: &Cluster,
    client: &Client,
    path: &str,
    body: &Value,
    is_revoked: bool,
) -> u16 {
    let body = body.to_string();
    let address = cluster.nodes[0].url.replace("http://", "");
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        client.key(),
        body.len()
    );
    let (early, late) = body.split_at(body.len() / 2);
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(early.as_bytes()).await.unwrap();
    let begun = Instant::now();
    if is_revoked {
        revoke(cluster, client).await;
    }
    let expected = if is_revoked { 401 } else { 200 };
    until("the node knows", PATIENCE, async || {
        begun.elapsed() > SLOW && client.get("/v1/whoami").await.status == expected
    })
    .await;
    stream.write_all(late.as_bytes()).await.unwrap();
    crate::attack::peers::status(&mut stream).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_credential_ends_while_its_body_arrives_is_refused() {
    let cluster = Cluster::start(1).await;
    let request = request_id();
    let new = json!({ "role": "admin" });
    for (is_revoked, made, taken) in [(false, 201, 202), (true, 401, 401)] {
        let admin = cluster.admin().await;
        let path = "/platform/v1/credentials";
        let status = status_of_slow_call(&cluster, &admin, path, &new, is_revoked).await;
        assert_eq!(status, made);
        let enforcer = cluster.enforcer("build-bot").await;
        let submission = enforcer.submission(&request, "alice", sealed());
        let client = &enforcer.client;
        let path = "/v1/artifacts";
        let status = status_of_slow_call(&cluster, client, path, &submission, is_revoked).await;
        assert_eq!(status, taken);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_with_its_credential() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let approver = cluster.approver("alice").await;
    let request = request_id();
    let taken = enforcer.submit(&request, "alice", sealed()).await;
    taken.expect(202);
    let any = json!({ "requestIds": [request] });
    let waits = async {
        tokio::join!(
            enforcer.wait(&request, 50),
            enforcer.client.post("/v1/waits?timeout=50", &any),
            approver.client.post("/v1/waits?timeout=50", &any),
        )
    };
    let revoking = async {
        until("they wait", PATIENCE, async || {
            let scraped = crate::support::scrape::scrape(&cluster.nodes[0].metrics).await;
            scraped.value("countersign_waits", &[]) >= 3.0
        })
        .await;
        revoke(&cluster, &enforcer.client).await;
        revoke(&cluster, &approver.client).await;
        Instant::now()
    };
    let ((one, any, other), revoked) = tokio::join!(waits, revoking);
    assert!(revoked.elapsed() < Duration::from_secs(6), "within 5 s");
    for answer in [one, any, other] {
        assert_eq!(answer.status, 401, "{answer:?}");
    }
}
