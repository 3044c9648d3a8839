//! Open artifacts: their whole structure and hash are checked. Every fault inside them is 422.

use serde_json::{Value, json};

use super::EXCHANGES;
use crate::support::{
    Cluster, HASH, hashed, in_time, now, open, printed, request_id, with, without,
};

/// An artifact with every member there is.
fn complete() -> Value {
    let mut artifact = open(&request_id());
    artifact["sessionId"] = json!("01J2V8V3M2YF0KX9Q0Z7E6H9R1");
    artifact["baseRevision"] = json!("9f86d08");
    artifact["metadata"] = json!({ "approverId": "signed, so it stays", "n": null });
    artifact["extensions"] = json!({
        "com.example.note": [1, 2],
        "org.proto.requestedActions": { "version": 1, "actions": [
            { "id": "go", "caption": "Go", "style": "primary", "decision": "approve" },
            { "id": "stop", "caption": "Stop", "decision": "reject" },
        ] },
    });
    hashed(artifact)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_artifact_reaches_its_approver_whole() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let approver = cluster.approver("alice").await;
    let artifact = complete();
    let request = artifact["requestId"].as_str().unwrap();
    let mut message = enforcer.submission(request, "alice", artifact.clone());
    message["expiresAt"] = artifact["expiresAt"].clone();
    let accepted = enforcer.client.post("/v1/artifacts", &message).await;
    assert_eq!(
        accepted.expect(202).body("/expiresAt"),
        printed(&artifact["expiresAt"])
    );
    let item = approver.inbox("").await.expect(200).body("/items/0");
    assert_eq!(
        item["body"],
        json!({ "artifact": artifact, "enforcerId": "build-bot" })
    );
    let status = enforcer.status(request).await.expect(200);
    assert_eq!(status.body("/artifactHash"), artifact["artifactHash"]);

    // Nobody named: metadata of an open artifact is content, not routing.
    let other = complete();
    let request = other["requestId"].as_str().unwrap();
    let message = enforcer.submission(request, "alice", other.clone());
    let message = without(&message, "/recipient");
    let answer = enforcer.client.post("/v1/artifacts", &message).await;
    answer.refused_at(422, "NO_APPROVER", "/recipient/approverId");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_allowed_value_of_an_open_artifact_is_taken() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let action = |style: &str, verdict: &str, id: &str| json!({ "id": id, "caption": "c", "style": style, "decision": verdict });
    let actions = |version: Value, actions: Vec<Value>| json!({ "org.proto.requestedActions": { "version": version, "actions": actions } });
    let five = ["a", "b", "c", "d", "e"].map(|id| action("danger", "reject", id));
    let mut allowed = vec![
        ("requestId", json!("01J2V8V3K6B2Z9X6G1V7Y2QK8H")),
        ("sessionId", json!(request_id())),
        ("repoRef", json!("")),
        ("payload", json!({})),
        ("metadata", json!({})),
        ("extensions", json!({})),
        ("extensions", json!({ "a.b": null })),
        ("createdAt", json!("2020-01-01T00:00:00Z")),
        ("createdAt", json!(in_time(50))),
        ("expiresAt", json!(in_time(30 * 86_400 - 60))),
        ("extensions", actions(json!(1), five.to_vec())),
        (
            "extensions",
            actions(json!(1), vec![action("primary", "approve", "a")]),
        ),
        (
            "extensions",
            actions(json!(1.0), vec![action("secondary", "approve", "a")]),
        ),
    ];
    for kind in ["plan", "task", "patch", "command", "checkpoint"] {
        allowed.push(("artifactType", json!(format!("{kind}.review"))));
    }
    let count = allowed.len();
    for (name, value) in allowed {
        let mut artifact = open(&request_id());
        artifact[name] = value;
        let artifact = hashed(artifact);
        let request = artifact["requestId"].as_str().unwrap().to_owned();
        enforcer
            .submit(&request, "alice", artifact)
            .await
            .expect(202);
    }
    let written = cluster.database.number(EXCHANGES).await;
    assert_eq!(written, i64::try_from(count).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_inside_an_open_artifact_is_named_and_unprocessable() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let good = complete();
    let request = good["requestId"].as_str().unwrap();
    let refused = async |artifact: Value, pointer: &str| {
        let answer = enforcer.submit(request, "alice", artifact).await;
        answer.refused_at(422, "INVALID_ARTIFACT", &format!("/body{pointer}"));
    };

    let required = [
        "/requestId",
        "/artifactType",
        "/repoRef",
        "/createdAt",
        "/expiresAt",
        "/payload",
        "/artifactHashAlg",
    ];
    for pointer in required {
        refused(hashed(without(&good, pointer)), pointer).await;
    }
    refused(without(&good, "/artifactHash"), "/artifactHash").await;
    for hash in [json!(7), json!(HASH.to_uppercase()), json!("")] {
        refused(with(&good, "/artifactHash", hash), "/artifactHash").await;
    }

    let extension = "/extensions/org.proto.requestedActions";
    let actions = format!("{extension}/actions");
    let action = good.pointer(&format!("{actions}/1")).unwrap();
    let mut wrong: Vec<(String, Value)> = [
        ("/surprise", json!(1)),
        ("/requestId", json!("neither UUID nor ULID")),
        ("/requestId", json!(request.replace('-', ""))),
        ("/sessionId", json!("01J2V8V3M2YF0KX9Q0Z7E6H9R")),
        ("/sessionId", json!(null)),
        ("/artifactType", json!("prompt.send")),
        ("/artifactType", json!("Plan.review")),
        ("/repoRef", json!(1)),
        ("/baseRevision", json!(1)),
        ("/createdAt", json!("yesterday")),
        ("/createdAt", json!(in_time(65))),
        ("/expiresAt", json!(1_771_675_200)),
        ("/expiresAt", json!("2026-02-21")),
        ("/expiresAt", json!(in_time(30 * 86_400 + 60))),
        ("/payload", json!("text")),
        ("/payload", json!([])),
        ("/payload", json!(null)),
        ("/artifactHashAlg", json!("SHA-512")),
        ("/artifactHashAlg", json!("sha-256")),
        ("/metadata", json!([])),
        ("/extensions", json!("text")),
        ("/extensions/plain", json!(1)),
    ]
    .map(|(pointer, value)| (pointer.to_owned(), value))
    .to_vec();
    for (pointer, value) in [
        ("", json!([])),
        ("/surprise", json!(1)),
        ("/version", json!(2)),
        ("/version", json!("1")),
        ("/version", json!(null)),
        ("/actions", json!({})),
        ("/actions", json!([])),
        ("/actions", json!(vec![action; 6])),
        ("/actions/1", json!("text")),
        ("/actions/1/surprise", json!(1)),
        ("/actions/1/id", json!("")),
        ("/actions/1/id", json!(1)),
        ("/actions/1/id", json!("GO")),
        ("/actions/1/caption", json!("")),
        ("/actions/1/caption", json!(null)),
        ("/actions/1/style", json!("loud")),
        ("/actions/1/style", json!(null)),
        ("/actions/1/decision", json!("allow")),
        ("/actions/1/decision", json!(true)),
    ] {
        wrong.push((format!("{extension}{pointer}"), value));
    }
    for (pointer, value) in wrong {
        refused(hashed(with(&good, &pointer, value)), &pointer).await;
    }
    for name in ["version", "actions"] {
        let pointer = format!("{extension}/{name}");
        refused(hashed(without(&good, &pointer)), &pointer).await;
    }
    for name in ["id", "caption", "decision"] {
        let pointer = format!("{actions}/0/{name}");
        refused(hashed(without(&good, &pointer)), &pointer).await;
    }
    assert_eq!(cluster.database.number(EXCHANGES).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_artifact_must_be_what_its_hash_and_its_envelope_say() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let good = complete();
    let request = good["requestId"].as_str().unwrap();
    for (pointer, value) in [
        ("/artifactHash", json!(HASH)),
        ("/payload/kind", json!("plot")),
        ("/payload/further", json!(null)),
        ("/metadata/n", json!(0)),
        ("/createdAt", json!(now())),
    ] {
        let changed = with(&good, pointer, value);
        let answer = enforcer.submit(request, "alice", changed).await;
        answer.refused_at(422, "HASH_MISMATCH", "/body/artifactHash");
    }
    let mut past = good.clone();
    past["expiresAt"] = json!(in_time(-5));
    let answer = enforcer.submit(request, "alice", hashed(past)).await;
    answer.refused_at(422, "EXPIRED", "/body/expiresAt");

    let answer = enforcer.submit(&request_id(), "alice", good.clone()).await;
    answer.refused_at(400, "VALIDATION", "/body/requestId");
    let mut message = enforcer.submission(request, "alice", good.clone());
    message["expiresAt"] = json!(in_time(60));
    let answer = enforcer.client.post("/v1/artifacts", &message).await;
    answer.refused_at(400, "VALIDATION", "/expiresAt");
    assert_eq!(cluster.database.number(EXCHANGES).await, 0);
    enforcer
        .submit(request, "alice", good.clone())
        .await
        .expect(202);
}
