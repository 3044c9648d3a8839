//! Signed or encrypted content passes through byte for byte, however oddly it is spelled.

use reqwest::Method;
use serde_json::json;

use crate::support::{Answer, Client, Cluster, HASH, hash_of, in_time, now, request_id};

async fn send(client: &Client, path: &str, text: &str) -> Answer {
    client.call(Method::POST, path).text(text).send().await
}

#[track_caller]
fn contains(answer: &Answer, text: &str) {
    assert!(
        answer.text.contains(text),
        "{text}\nis not in\n{}",
        answer.text
    );
}

const TRACE: &str = "{ \"z\" :1.0,\n\t\"a\":\"\\u0041\\/\" }";

#[tokio::test(flavor = "multi_thread")]
async fn an_oddly_spelled_ciphertext_comes_back_byte_for_byte() {
    let cluster = Cluster::start(2).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let approver = cluster.approver("alice").await;
    let ciphertext = "{ \"z\" : [1.0, 1e2,-0.0,1E+2 , 0.10],\r\n\t\"data\":\"\\u0041\\/\\u00e9é😀\\ud83d\\ude00\",\n\
                      \"alg\": \"A256GCM\" ,\"a\":{  },\"\\u006eonce\":\"n\" }";
    let metadata = "{ \"b\":1.50 , \"a\":\"\\u0062\" }";
    let expires = in_time(600).replace('Z', "+00:00");
    let text = format!(
        " {{\n \"body\" : {{ \"metadata\" :{metadata} , \"expiresAt\":\"{expires}\",\"ciphertext\" : {ciphertext}\n,\
         \"artifactHash\":\"{HASH}\" , \"artifactType\":\"\\u0070lan\" }} , \"trace\" : {TRACE} ,\n\
         \"sender\":{{\"enforcerId\":\"build-bot\"}},\"recipient\":{{\"approverId\":\"alice\"}},\"createdAt\":\"{}\",\
         \"requestId\":\"odd\",\"msgType\":\"artifact.\\u0073ubmit\" }}\r\n",
        now()
    );
    send(&enforcer.client, "/v1/artifacts", &text)
        .await
        .expect(202);
    for node in 0..2 {
        let client = approver.client.on(node);
        let page = client.get("/v1/approvers/alice/inbox").await.expect(200);
        contains(&page, &format!("\"ciphertext\":{ciphertext}"));
        contains(&page, &format!("\"metadata\":{metadata}"));
        contains(&page, &format!("\"trace\":{TRACE}"));
        contains(&page, &format!("\"expiresAt\":\"{expires}\""));
        contains(&page, "\"artifactType\":\"\\u0070lan\"");
    }
    cluster.pass(std::time::Duration::from_secs(601));
    let page = approver.expired("").await.expect(200);
    contains(&page, &format!("\"ciphertext\":{ciphertext}"));
    contains(&page, &format!("\"trace\":{TRACE}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oddly_spelled_open_artifact_comes_back_byte_for_byte() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let approver = cluster.approver("alice").await;
    let request = request_id();
    let hashless = format!(
        "{{ \"payload\" : {{ \"z\":1.0,\"a\":[1e2 , 100,0.1e-6],\n \"\\u0041\":\"\\/ \\u20ac €\" }},\t\"requestId\":\"{request}\",\
         \"repoRef\":\"r\\u0065po\",\"createdAt\":\"{}\", \"expiresAt\":\"{}\",\r\n\"artifactType\":\"plan.review\",\
         \"artifactHashAlg\":\"SHA-256\"",
        now(),
        in_time(600)
    );
    let hash = hash_of(&format!("{hashless}}}"), "artifactHash");
    let artifact = format!("{hashless} , \"artifactHash\":\"{hash}\"\n}}");
    let text = format!(
        "{{\"msgType\":\"artifact.submit\",\"requestId\":\"{request}\",\"createdAt\":\"{}\",\"body\":  {artifact}  ,\
         \"sender\":{{\"enforcerId\":\"build-bot\"}},\"recipient\":{{\"approverId\":\"alice\"}}}}",
        now()
    );
    send(&enforcer.client, "/v1/artifacts", &text)
        .await
        .expect(202);
    let page = approver.inbox("").await.expect(200);
    contains(&page, &format!("\"artifact\":{artifact}}}"));
    let stored = "select body::text from exchange_payloads where part = 'artifact'";
    assert_eq!(cluster.database.text(stored).await, artifact);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oddly_spelled_decision_comes_back_byte_for_byte() {
    let cluster = Cluster::start(2).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let approver = cluster.approver("alice").await;
    let request = request_id();
    let submitted = enforcer.submit(&request, "alice", crate::support::sealed());
    submitted.await.expect(202);
    let signature = "Bw".repeat(42);
    let body = format!(
        "{{ \"signature\" :\"{signature}Bw==\",\r\n \"reason\":\"\\u0041\\/b\\u00fc ü\", \"nonce\":\"\\u006e\\t\",\
         \"decisionHash\":\"{HASH}\",\t\"signerKeyId\":\"k\\u00e9y\" , \"decision\":\"\\u0061pprove\",\"artifactHash\":\"{HASH}\" }}"
    );
    let text = format!(
        "{{\"body\" :  {body} ,\"trace\": {TRACE} ,\"msgType\":\"decision.submit\",\"requestId\":\"{request}\",\
         \"createdAt\":\"{}\",\"sender\":{{\"approverId\":\"alice\"}}}}",
        now()
    );
    send(&approver.client, "/v1/decisions", &text)
        .await
        .expect(200);
    let waited = enforcer.wait(&request, 5).await.expect(200);
    contains(&waited, &format!("\"body\":{body}"));
    // The gateway says first how far it vouches for it.
    let rest = TRACE.strip_prefix('{').unwrap();
    let vouching = format!("\"trace\":{{\"verified\":false,\"verification\":\"none\",{rest}");
    contains(&waited, &vouching);
    assert_eq!(waited.json()["sender"]["approverId"], json!("alice"));
    for _ in 0..2 {
        let status = enforcer.status(&request).await.expect(200);
        contains(&status, &format!("\"decision\":{body}"));
    }
    let message = waited.json()["msgId"].as_str().unwrap().to_owned();
    enforcer.ack(&request, &message).await.expect(200);
    let waited = enforcer.wait(&request, 5).await.expect(200);
    contains(&waited, &format!("\"body\":{body}"));
}
