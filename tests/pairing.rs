//! Pairing, as two people live it: a code on one screen, typed into another, and what they can do
//! with it afterwards.

mod bodies;
mod codes;
mod forgotten;
mod guessing;
mod listing;
mod routing;
mod secrets;
mod sessions;

use serde_json::{Value, json};

use crate::support::{Answer, Approver, Cluster, Enforcer, compact, envelope, request_id, sealed};

const INITIATE: &str = "/v1/pairing/initiate";
const COMPLETE: &str = "/v1/pairing/complete";
const REVOKE: &str = "/v1/pairing/revoke";
const PAIRINGS: &str = "/v1/pairings";

/// A member of an answer that must be text.
#[track_caller]
fn text(answer: &Answer, member: &str) -> String {
    let json = answer.json();
    json[member]
        .as_str()
        .unwrap_or_else(|| panic!("{member} in {json}"))
        .to_owned()
}

/// Begins an attempt; its code and its nonce.
async fn initiate(enforcer: &Enforcer) -> (String, String) {
    let body = json!({ "enforcerId": enforcer.id });
    let begun = enforcer.client.post(INITIATE, &body).await.expect(200);
    (text(&begun, "code"), text(&begun, "nonce"))
}

async fn resolve(approver: &Approver, code: &str) -> Answer {
    let path = format!("/v1/pairing/resolve/{code}");
    approver.client.get(&path).await
}

async fn complete(approver: &Approver, nonce: &str) -> Answer {
    let body = json!({ "nonce": nonce, "approverId": approver.id });
    approver.client.post(COMPLETE, &body).await
}

/// The whole way; the routing token.
pub async fn pair(enforcer: &Enforcer, approver: &Approver) -> String {
    let (code, nonce) = initiate(enforcer).await;
    let resolved = resolve(approver, &code).await.expect(200);
    assert_eq!(text(&resolved, "nonce"), nonce);
    text(
        &complete(approver, &nonce).await.expect(200),
        "routingToken",
    )
}

async fn status(enforcer: &Enforcer, nonce: &str) -> Answer {
    let path = format!("/v1/pairing/status/{nonce}");
    enforcer.client.get(&path).await
}

async fn word(enforcer: &Enforcer, nonce: &str) -> String {
    text(&status(enforcer, nonce).await.expect(200), "status")
}

fn revocation(token: &str) -> Value {
    json!({ "routingToken": token })
}

/// A submission without a recipient, routed by a token or by pairings.
fn unaddressed(enforcer: &Enforcer, request: &str, token: Option<&str>) -> Value {
    let mut body = sealed();
    if let Some(token) = token {
        body["metadata"] = json!({ "routingToken": token, "title": "t" });
    }
    let sender = json!({ "enforcerId": enforcer.id });
    envelope("artifact.submit", request, sender, body)
}

async fn submit(enforcer: &Enforcer, request: &str, token: Option<&str>) -> Answer {
    let message = unaddressed(enforcer, request, token);
    enforcer.client.post("/v1/artifacts", &message).await
}

/// A code as a person might type it: in lower case, dashes elsewhere, look-alikes for digits.
fn typed(code: &str) -> String {
    let sloppy: String = code
        .chars()
        .map(|character| match character {
            '0' => 'o',
            '1' => 'L',
            other => other.to_ascii_lowercase(),
        })
        .collect();
    format!("-{}-", sloppy.replace('-', "--"))
}

#[tokio::test(flavor = "multi_thread")]
async fn two_people_pair_by_a_code_and_work_with_it_each_call_on_another_node() {
    let cluster = Cluster::start(3).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let alice = cluster.approver("alice").await;
    let begun = enforcer
        .on(0)
        .client
        .post(
            INITIATE,
            &json!({
                "enforcerId": "build-bot",
                "enforcerLabel": "The build bot",
                "workspaceName": "widgets",
                "publicKey": "key of the bot",
            }),
        )
        .await
        .expect(200);
    assert_eq!(begun.header("content-type"), Some("application/json"));
    assert_eq!(begun.header("cache-control"), Some("no-store"));
    let (code, nonce) = (text(&begun, "code"), text(&begun, "nonce"));
    assert_eq!((code.len(), code.find('-')), (9, Some(4)), "{code}");
    assert_eq!(nonce.len(), 43, "256 bits in base64url");
    let waiting = status(&enforcer.on(1), &nonce).await.expect(200);
    assert_eq!(
        waiting.json(),
        json!({ "nonce": nonce, "status": "pending", "expiresAt": begun.json()["expiresAt"] })
    );

    for (node, spelling) in [code.clone(), code.replace('-', ""), typed(&code)]
        .iter()
        .enumerate()
    {
        let resolved = resolve(&alice.on(node), spelling).await.expect(200);
        assert_eq!(
            resolved.json(),
            json!({
                "nonce": nonce,
                "enforcerLabel": "The build bot",
                "workspaceName": "widgets",
                "publicKey": "key of the bot",
            })
        );
    }
    assert_eq!(word(&enforcer.on(2), &nonce).await, "resolved");

    let body = json!({ "nonce": nonce, "approverId": "alice", "publicKey": "key of alice" });
    let paired = alice.on(1).client.post(COMPLETE, &body).await.expect(200);
    let token = text(&paired, "routingToken");
    assert_eq!(
        paired.json(),
        json!({ "routingToken": token, "enforcerLabel": "The build bot", "workspaceName": "widgets" })
    );
    let expected = json!({
        "nonce": nonce,
        "status": "completed",
        "expiresAt": begun.json()["expiresAt"],
        "approverId": "alice",
        "publicKey": "key of alice",
        "routingToken": token,
    });
    for path in [
        format!("/v1/pairing/status/{nonce}"),
        format!("/v1/pairing/{nonce}/status"),
    ] {
        let known = enforcer.on(0).client.get(&path).await.expect(200);
        assert_eq!(known.json(), expected, "any node shows the token again");
    }

    let request = request_id();
    let taken = submit(&enforcer.on(2), &request, Some(&token)).await;
    assert_eq!(taken.outcome(), "202");
    assert_eq!(alice.on(0).inbox_ids().await, [request.as_str()]);
    let item = alice.on(1).inbox("").await.body("/items/0/body");
    assert_eq!(item["enforcerLabel"], "The build bot", "as it was paired");
    alice
        .on(1)
        .decide(&request, compact("approve"))
        .await
        .expect(200);
    let delivered = enforcer.on(0).wait(&request, 5).await.expect(200);
    assert_eq!(delivered.body("/decision"), "approve");

    let revoked = alice.on(2).client.post(REVOKE, &revocation(&token)).await;
    assert_eq!(revoked.expect(200).json(), json!({ "status": "revoked" }));
    let refused = submit(&enforcer.on(0), &request_id(), Some(&token)).await;
    refused.refused_at(403, "PAIRING_REVOKED", "/body/metadata/routingToken");
    let ended = status(&enforcer.on(1), &nonce).await.expect(200).json();
    assert_eq!(ended["status"], "completed");
    assert_eq!(ended.get("routingToken"), None);
}
