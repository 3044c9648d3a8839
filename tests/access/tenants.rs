//! Tenants do not learn of one another.

use countersign::store::identity::credential::RoleName;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    Answer, Client, Cluster, compact, envelope, now, public_key, request_id, sealed, signing_key,
};

/// Calls of another tenant's credentials about something that is named by an id.
async fn strangers_calls(clients: &[Client; 3], ids: &Named<'_>) -> Vec<Answer> {
    let [enforcer, approver, admin] = clients;
    let request = ids.request;
    let as_bot = json!({ "enforcerId": "build-bot" });
    let as_alice = json!({ "approverId": "alice" });
    let ack = json!({ "msgId": ids.message, "status": "received", "ackAt": now() });
    let refresh = envelope("refresh.request", request, as_alice.clone(), json!({}));
    let withdrawal = envelope("exchange.withdrawn", request, as_bot, json!({}));
    let decision = envelope(
        "decision.submit",
        request,
        as_alice.clone(),
        compact("approve"),
    );
    let mut answers = Vec::new();
    for client in clients {
        answers.push(client.get(&format!("/v1/exchanges/{request}")).await);
    }
    let path = |tail: &str| format!("/v1/exchanges/{request}/{tail}");
    answers.push(enforcer.get(&path("wait?timeout=1")).await);
    answers.push(admin.get(&path("wait?timeout=1")).await);
    answers.push(enforcer.post(&path("withdraw"), &withdrawal).await);
    answers.push(enforcer.call(Method::POST, &path("withdraw")).send().await);
    answers.push(approver.post(&path("refresh"), &refresh).await);
    let by_nobody = envelope("refresh.request", request, json!({}), json!({}));
    answers.push(admin.post(&path("refresh"), &by_nobody).await);
    answers.push(approver.post("/v1/decisions", &decision).await);
    answers.push(
        approver
            .post("/v1/acks", &envelope("ack.submit", request, as_alice, ack))
            .await,
    );
    answers.push(
        approver
            .delete(&format!("/v1/approvers/alice/inbox/{request}"))
            .await,
    );
    let cancel = format!("/platform/v1/exchanges/{request}/cancel");
    answers.push(admin.post(&cancel, &json!({})).await);
    let key = format!("/platform/v1/approvers/alice/keys/{}", ids.signing_key);
    answers.push(admin.delete(&key).await);
    answers.push(approver.delete(&key).await);
    let credential = format!("/platform/v1/credentials/{}", ids.credential);
    answers.push(admin.delete(&credential).await);
    answers
}

/// The ids that a stranger names.
struct Named<'a> {
    request: &'a str,
    message: &'a str,
    signing_key: &'a str,
    credential: &'a str,
}

/// An answer without what differs from one to the next: ids it was asked about, its own, and times.
fn shape(answer: &Answer, ids: &Named<'_>) -> (u16, Vec<String>, Value) {
    let mut json: Value =
        serde_json::from_str(&answer.text.replace(ids.request, "REQUEST")).expect("JSON");
    for own in ["msgId", "createdAt"] {
        json.as_object_mut().expect("an object").remove(own);
    }
    let names = answer.headers.keys().map(ToString::to_string).collect();
    (answer.status, names, json)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_another_tenant_answers_as_what_does_not_exist() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let alice = cluster.approver("alice").await;
    let admin = cluster.admin().await;
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    let message = alice.inbox("").await.body("/items/0/msgId");
    let key = json!({ "publicKey": public_key(&signing_key(1)) });
    admin
        .put("/platform/v1/approvers/alice/keys/k1", &key)
        .await
        .expect(200);
    let made = admin
        .post(
            "/platform/v1/credentials",
            &json!({ "role": "enforcer", "boundId": "bot" }),
        )
        .await;
    let credential = made.expect(201).json()["credentialId"].clone();

    let there = cluster
        .administration
        .create_tenant("strangers")
        .await
        .unwrap();
    let strangers = [
        cluster.client(Some(
            &cluster
                .key(&there, RoleName::Enforcer, Some("build-bot"))
                .await,
        )),
        cluster.client(Some(
            &cluster.key(&there, RoleName::Approver, Some("alice")).await,
        )),
        cluster.client(Some(&cluster.key(&there, RoleName::Admin, None).await)),
    ];
    let real = Named {
        request: &request,
        message: message.as_str().unwrap(),
        signing_key: "k1",
        credential: credential.as_str().unwrap(),
    };
    let unknown = request_id();
    let unreal = Named {
        request: &unknown,
        message: "01890000-0000-7000-8000-000000000000",
        signing_key: "k2",
        credential: "01890000000070008000000000000000",
    };
    let before = cluster.database.everything().await;
    let found = strangers_calls(&strangers, &real).await;
    let unfound = strangers_calls(&strangers, &unreal).await;
    for (found, unfound) in found.iter().zip(&unfound) {
        let found = shape(found, &real);
        assert_eq!(found.0, 404, "{found:?}");
        assert_eq!(found, shape(unfound, &unreal));
    }
    // Nor do listings show it.
    let [bot, stranger, manager] = &strangers;
    let inbox = stranger.get("/v1/approvers/alice/inbox").await.expect(200);
    assert_eq!(inbox.body("/items"), json!([]));
    for listing in ["exchanges", "approvers/alice/keys"] {
        let listed = manager
            .get(&format!("/platform/v1/{listing}"))
            .await
            .expect(200);
        assert_eq!(listed.json()["items"], json!([]), "{listing}");
    }
    let listed = manager.get("/platform/v1/credentials").await.expect(200);
    assert_eq!(listed.json()["items"].as_array().unwrap().len(), 3);
    assert_eq!(
        cluster.database.everything().await,
        before,
        "nothing has changed"
    );

    // The same id is free there.
    let mut message = envelope(
        "artifact.submit",
        &request,
        json!({ "enforcerId": "build-bot" }),
        sealed(),
    );
    message["recipient"] = json!({ "approverId": "alice" });
    let taken = bot.post("/v1/artifacts", &message).await.expect(202);
    assert_eq!(taken.body("/duplicate"), false);
    assert_eq!(alice.inbox_ids().await, [request.as_str()]);
}
