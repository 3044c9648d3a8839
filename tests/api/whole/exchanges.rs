//! Exchanges, to every end.

use reqwest::Method;
use serde_json::{Value, json};

use super::{ApiScene, Everyone, decision, submission};
use crate::support::{
    Client, compact, envelope, full, in_time, now, open, public_key, registration, request_id,
    sealed, signed, signing_key,
};

#[tokio::test(flavor = "multi_thread")]
async fn exchanges_from_submission_to_every_end() {
    let scene = ApiScene::new().await;
    let Everyone {
        enforcer,
        approver,
        admin,
        ..
    } = &scene.everyone;
    let request = request_id();
    let sent = submission(&request, sealed());
    let key = ("idempotency-key", "key-1");
    scene
        .with(enforcer, "/v1/artifacts", key, &sent)
        .await
        .expect(202);
    let again = scene
        .with(enforcer, "/v1/artifacts", key, &sent)
        .await
        .expect(202);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    let other = submission(&request_id(), sealed());
    let reused = scene.with(enforcer, "/v1/artifacts", key, &other).await;
    reused.refused(409, "IDEMPOTENCY_KEY_REUSED");
    scene
        .with(enforcer, "/v1/artifacts", ("idempotency-key", "a b"), &sent)
        .await
        .expect(400);
    scene
        .post(enforcer, "/v1/artifact", &sent)
        .await
        .expect(202);
    let inbox = scene
        .get(approver, "/v1/approvers/alice/inbox?limit=1")
        .await
        .expect(200);
    assert_eq!(inbox.body("/items/0/requestId"), request.as_str());
    scene
        .get(approver, "/v1/approvers/alice/inbox?limit=0")
        .await
        .expect(400);
    scene
        .get(approver, "/v1/approvers/alice/inbox?cursor=x")
        .await
        .expect(400);
    scene
        .get(enforcer, &format!("/v1/exchanges/{request}/wait?timeout=1"))
        .await
        .expect(204);
    let decided = decision(&request, compact("approve"));
    scene
        .post(approver, "/v1/decisions", &decided)
        .await
        .expect(200);
    scene
        .post(approver, "/v1/decisions", &decided)
        .await
        .expect(200);
    let mut other = compact("reject");
    other["nonce"] = json!("another");
    scene
        .post(approver, "/v1/decisions", &decision(&request, other))
        .await
        .refused(409, "ALREADY_DECIDED");
    let path = format!("/v1/exchanges/{request}");
    let delivered = scene
        .get(enforcer, &format!("{path}/wait"))
        .await
        .expect(200);
    scene.get(admin, &path).await.expect(200);
    let ack = json!({ "msgId": delivered.json()["msgId"], "status": "processed", "ackAt": now() });
    let ack = envelope(
        "ack.submit",
        &request,
        json!({ "enforcerId": "build-bot" }),
        ack,
    );
    scene.post(enforcer, "/v1/acks", &ack).await.expect(200);
    scene.post(enforcer, "/v1/acks", &ack).await.expect(200);
    let refresh = |request: &str| {
        envelope(
            "refresh.request",
            request,
            json!({ "approverId": "alice" }),
            json!({}),
        )
    };
    scene
        .post(approver, &format!("{path}/refresh"), &refresh(&request))
        .await
        .refused(409, "INVALID_STATE");

    // An open one, decided in full and with a key.
    let key = signing_key(7);
    let alice = scene.cluster.approver("alice").await.client;
    let tenant = &scene.cluster.tenant;
    let mut registered = registration(tenant, "alice", "k", &key);
    registered["notAfter"] = json!(in_time(3_600));
    let keys = "/platform/v1/approvers/alice/keys";
    let put = async |client: &Client, key: &str, body: &Value| {
        let path = format!("{keys}/{key}");
        scene
            .contract
            .call(client, Method::PUT, &path, Some(body))
            .await
    };
    let bare = json!({ "publicKey": public_key(&key) });
    put(approver, "k", &bare).await.refused(403, "FORBIDDEN");
    put(&alice, "k", &bare).await.refused(400, "VALIDATION");
    let others = registration(tenant, "bob", "k", &key);
    put(&alice, "k", &others)
        .await
        .refused(403, "SIGNATURE_INVALID");
    put(&alice, "k", &registered).await.expect(200);
    let second = registration(tenant, "alice", "k2", &signing_key(8));
    put(&alice, "k2", &second).await.refused(403, "FORBIDDEN");
    let second = json!({ "publicKey": public_key(&signing_key(8)) });
    put(admin, "k", &second)
        .await
        .refused(409, "ALREADY_EXISTS");
    scene.get(admin, keys).await.expect(200);
    let request = request_id();
    let artifact = open(&request);
    scene
        .post(
            enforcer,
            "/v1/artifacts",
            &submission(&request, artifact.clone()),
        )
        .await
        .expect(202);
    let inbox = scene
        .get(approver, "/v1/approvers/alice/inbox")
        .await
        .expect(200);
    assert_eq!(
        inbox.body("/items/0/body/artifact/requestId"),
        request.as_str()
    );
    let mut whole = full(&request, artifact["artifactHash"].as_str().unwrap());
    whole["signerKeyId"] = json!("k");
    scene
        .post(
            approver,
            "/v1/decisions",
            &decision(&request, whole.clone()),
        )
        .await
        .refused(403, "SIGNATURE_INVALID");
    let whole = signed(whole, &key);
    scene
        .post(approver, "/v1/decision", &whole)
        .await
        .expect(200);
    scene
        .get(enforcer, &format!("/v1/exchanges/{request}"))
        .await
        .expect(200);
    scene
        .contract
        .call(approver, Method::DELETE, &format!("{keys}/k"), None)
        .await
        .expect(204);
    scene.get(admin, keys).await.expect(200);

    // Ended otherwise.
    let ends: Vec<_> = (0..4).map(|_| request_id()).collect();
    for request in &ends {
        scene
            .post(enforcer, "/v1/artifacts", &submission(request, sealed()))
            .await
            .expect(202);
    }
    let path = |end: usize, rest: &str| format!("/v1/exchanges/{}{rest}", ends[end]);
    scene
        .contract
        .call(enforcer, Method::POST, &path(0, "/withdraw"), None)
        .await
        .expect(200);
    scene
        .contract
        .call(enforcer, Method::POST, &path(0, "/withdraw"), None)
        .await
        .refused(409, "INVALID_STATE");
    let gone = scene.get(enforcer, &path(0, "/wait")).await.expect(204);
    assert_eq!(gone.header("exchange-state"), Some("withdrawn"));
    let ids = json!({ "requestIds": ends });
    let ended = scene.post(approver, "/v1/waits", &ids).await.expect(200);
    assert_eq!(ended.json()["requestIds"], json!([ends[0]]));
    let ids = json!({ "requestIds": ends[1..] });
    let path_of_waits = "/v1/waits?timeout=1";
    scene.post(approver, path_of_waits, &ids).await.expect(204);
    let cancel = format!("/platform/v1/exchanges/{}/cancel", ends[1]);
    scene
        .post(admin, &cancel, &json!({ "reason": "because" }))
        .await
        .expect(200);
    scene
        .contract
        .call(admin, Method::POST, &cancel, None)
        .await
        .refused(409, "INVALID_STATE");
    scene
        .post(approver, &path(2, "/refresh"), &refresh(&ends[2]))
        .await
        .expect(202);
    scene
        .post(
            approver,
            &format!("/v1/requests/{}/refresh", ends[2]),
            &refresh(&ends[2]),
        )
        .await
        .expect(202);
    let item = format!("/v1/approvers/alice/inbox/{}", ends[2]);
    scene
        .contract
        .call(approver, Method::DELETE, &item, None)
        .await
        .expect(200);
    scene
        .contract
        .call(approver, Method::DELETE, &item, None)
        .await
        .refused(404, "NOT_FOUND");
    scene
        .cluster
        .pass(std::time::Duration::from_secs(40 * 24 * 3_600));
    scene
        .get(approver, "/v1/approvers/alice/inbox/expired")
        .await
        .expect(200);
    scene.get(enforcer, &path(3, "/wait")).await.expect(204);
    for (query, status) in [
        ("", 200),
        ("?limit=2", 200),
        ("?state=decided", 200),
        ("?state=none", 400),
        ("?enforcerId=build-bot&approverId=alice", 200),
    ] {
        let path = format!("/platform/v1/exchanges{query}");
        scene.get(admin, &path).await.expect(status);
    }
    scene
        .get(admin, "/platform/v1/audit?limit=2")
        .await
        .expect(200);
}
