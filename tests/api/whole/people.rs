//! Pairings, prompts, sessions and presence.

use serde_json::{Value, json};

use super::{ApiScene, Everyone, submission};
use crate::support::{envelope, now, request_id, sealed};

#[tokio::test(flavor = "multi_thread")]
async fn pairings_prompts_sessions_and_presence() {
    let scene = ApiScene::new().await;
    let Everyone {
        enforcer,
        approver,
        admin,
        ..
    } = &scene.everyone;
    let begin = json!({ "enforcerId": "build-bot", "enforcerLabel": "Bot", "workspaceName": "w", "publicKey": "k" });
    let begun = scene
        .post(enforcer, "/v1/pairing/initiate", &begin)
        .await
        .expect(200)
        .json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let (code, nonce) = (text(&begun["code"]), text(&begun["nonce"]));
    scene
        .get(enforcer, &format!("/v1/pairing/status/{nonce}"))
        .await
        .expect(200);
    scene
        .get(approver, &format!("/v1/pairing/resolve/{code}"))
        .await
        .expect(200);
    let complete = json!({ "nonce": nonce, "approverId": "alice", "publicKey": "k" });
    let paired = scene
        .post(approver, "/v1/pairing/complete", &complete)
        .await
        .expect(200)
        .json();
    scene
        .post(approver, "/v1/pairing/complete", &complete)
        .await
        .refused(409, "INVALID_STATE");
    scene
        .get(enforcer, &format!("/v1/pairing/{nonce}/status"))
        .await
        .expect(200);
    for client in [enforcer, approver] {
        let page = scene.get(client, "/v1/pairings").await.expect(200).json();
        assert_eq!(page["items"].as_array().unwrap().len(), 1);
    }
    // Wrong codes, until there is no answer any more.
    let mut last = 404;
    for _ in 0..12 {
        last = scene
            .get(approver, "/v1/pairing/resolve/0000-0000")
            .await
            .status;
    }
    assert_eq!(last, 429);

    let prompt = |text: &str| {
        let mut body = json!({
            "requestId": request_id(), "artifactType": "prompt.send", "createdAt": now(), "target": "tool", "text": text,
            "promptHashAlg": "SHA-256", "metadata": { "enforcerId": "build-bot" },
        });
        body["promptHash"] = json!(crate::support::hash_of(&body.to_string(), "promptHash"));
        body
    };
    let sent = |body: &Value| {
        envelope(
            "prompt.send",
            body["requestId"].as_str().unwrap(),
            json!({ "approverId": "alice" }),
            body.clone(),
        )
    };
    let body = prompt("one");
    scene
        .post(approver, "/v1/prompt", &sent(&body))
        .await
        .expect(202);
    scene
        .post(admin, "/v1/prompt", &prompt("two"))
        .await
        .expect(202);
    scene
        .post(enforcer, "/v1/prompt", &sent(&body))
        .await
        .refused(403, "FORBIDDEN");
    let mut wrong = body.clone();
    wrong["text"] = json!("other");
    scene
        .post(approver, "/v1/prompt", &sent(&wrong))
        .await
        .refused(422, "HASH_MISMATCH");
    let mut nowhere = prompt("three");
    nowhere["metadata"] = json!({});
    nowhere["promptHash"] = json!(crate::support::hash_of(&nowhere.to_string(), "promptHash"));
    scene
        .post(approver, "/v1/prompt", &sent(&nowhere))
        .await
        .refused(422, "NO_RECIPIENT");
    let waiting = "/v1/enforcers/build-bot/prompts?sessionId=s";
    let waiting = scene.get(enforcer, waiting).await.expect(200).json();
    assert_eq!(waiting["items"].as_array().unwrap().len(), 2);
    let ack = |status: &str| json!({ "requestId": body["requestId"], "promptHash": body["promptHash"], "status": status, "ackAt": now(), "details": { "a": 1 } });
    scene
        .post(enforcer, "/v1/prompt", &ack("queued"))
        .await
        .expect(200);
    scene
        .post(enforcer, "/v1/prompt", &ack("delivered"))
        .await
        .expect(200);
    scene
        .post(enforcer, "/v1/prompt", &ack("rejected"))
        .await
        .refused(409, "INVALID_STATE");
    scene
        .get(
            approver,
            &format!("/v1/prompt/{}", text(&body["requestId"])),
        )
        .await
        .expect(200);

    let event = |kind: &str, more: Value| {
        let mut event = json!({ "sessionId": "s", "eventType": kind });
        event
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        event
    };
    let report = async |event: Value| scene.post(enforcer, "/v1/session/event", &event).await;
    let start = event(
        "session.start",
        json!({ "createdAt": now(), "agentHost": "h", "metadata": { "enforcerId": "build-bot" } }),
    );
    report(start).await.expect(202);
    report(event(
        "session.status",
        json!({ "state": "editing", "updatedAt": now() }),
    ))
    .await
    .expect(202);
    let mut snapshot = event(
        "session.snapshot",
        json!({
            "snapshotId": "1", "snapshotType": "plan", "createdAt": now(), "payload": {}, "snapshotHashAlg": "SHA-256",
        }),
    );
    snapshot["snapshotHash"] = json!(crate::support::hash_of(
        &snapshot.to_string(),
        "snapshotHash"
    ));
    report(snapshot.clone()).await.expect(202);
    snapshot["payload"] = json!({ "a": 1 });
    report(snapshot).await.refused(422, "HASH_MISMATCH");
    report(event(
        "session.end",
        json!({ "reason": "timeout", "endedAt": now() }),
    ))
    .await
    .expect(202);
    report(event(
        "session.status",
        json!({ "state": "idle", "updatedAt": now() }),
    ))
    .await
    .refused(409, "SESSION_CLOSED");
    for client in [enforcer, admin] {
        scene.get(client, "/v1/session/s").await.expect(200);
    }
    scene.get(approver, "/v1/session/none").await.expect(404);
    scene.get(admin, "/v1/presence/enforcers").await.expect(200);

    let token = json!({ "routingToken": paired["routingToken"] });
    scene
        .post(enforcer, "/v1/pairing/revoke", &token)
        .await
        .expect(200);
    let mut routed = sealed();
    routed["metadata"] = token;
    let mut sent = submission(&request_id(), routed);
    sent.as_object_mut().unwrap().remove("recipient");
    scene
        .post(enforcer, "/v1/artifacts", &sent)
        .await
        .refused(403, "PAIRING_REVOKED");
    sent["body"]["metadata"] = json!({});
    scene
        .post(enforcer, "/v1/artifacts", &sent)
        .await
        .refused(422, "NO_APPROVER");
}
