//! Submissions: what is taken, whom it reaches, and how each rule refuses what breaks it.

mod open;
mod routing;
mod size;

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    Cluster, HASH, in_time, open as open_artifact, printed, request_id, sealed, sealed_for, with,
    without,
};

const EXCHANGES: &str = "select count(*) from exchanges";

#[tokio::test(flavor = "multi_thread")]
async fn a_sealed_artifact_reaches_its_approver_as_it_was_sent() {
    let cluster = Cluster::start(2).await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    let request = "any id of 1 to 128 characters will do: ü/€";
    let mut body = sealed();
    body["artifactType"] = json!("a type of their own");
    body["metadata"] = json!({ "title": "Deploy", "nested": { "approverId": "kept" } });
    body["ciphertext"]["tag"] = json!("dGFn");
    body["ciphertext"]["aad"] = json!("YWFk");
    body["ciphertext"]["further"] = json!([1, null, { "deep": true }]);
    let mut submission = enforcer.submission(request, "alice", body.clone());
    submission["msgId"] = json!("theirs");
    submission["expiresAt"] = body["expiresAt"].clone();
    submission["trace"] = json!({ "traceparent": "00-4bf9", "hops": [1, 2.5] });

    let accepted = enforcer.client.post("/v1/artifacts", &submission).await;
    let accepted = accepted.expect(202).json();
    assert_eq!(
        accepted["body"],
        json!({
            "requestId": request,
            "state": "pendingApproval",
            "expiresAt": printed(&body["expiresAt"]),
            "duplicate": false,
        })
    );
    assert_eq!(accepted["msgType"], "artifact.accepted");
    assert_eq!(accepted["requestId"], request);
    assert_eq!(accepted["expiresAt"], printed(&body["expiresAt"]));
    assert_eq!(accepted["sender"], json!({ "gatewayId": "countersign" }));
    let id = uuid::Uuid::parse_str(accepted["msgId"].as_str().unwrap()).unwrap();
    assert_eq!(id.get_version_num(), 7);

    let item = approver.inbox("").await.expect(200).body("/items/0");
    body["enforcerId"] = json!("build-bot");
    assert_eq!(item["body"], body);
    assert_eq!(item["trace"], submission["trace"]);
    assert_eq!(item["requestId"], request);
    assert_eq!(item["expiresAt"], printed(&body["expiresAt"]));
    assert_eq!(item["recipient"], json!({ "approverId": "alice" }));
    assert_eq!(
        item["sender"],
        json!({ "enforcerId": "build-bot", "gatewayId": "countersign" })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_rule_of_the_envelope_and_the_sealed_body_names_the_member_that_breaks_it() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let mut body = sealed();
    body["metadata"] = json!({ "title": "Deploy" });
    let good = enforcer.submission(&request_id(), "alice", body);
    let post = async |message: Value| enforcer.client.post("/v1/artifacts", &message).await;

    let missing = [
        "/msgType",
        "/requestId",
        "/createdAt",
        "/sender",
        "/sender/enforcerId",
        "/body",
        "/body/artifactType",
        "/body/artifactHash",
        "/body/expiresAt",
        "/body/ciphertext/alg",
        "/body/ciphertext/data",
    ];
    for pointer in missing {
        let answer = post(without(&good, pointer)).await;
        answer.refused_at(400, "VALIDATION", pointer);
    }
    let strings = [
        "/msgId",
        "/msgType",
        "/requestId",
        "/createdAt",
        "/expiresAt",
        "/sender/enforcerId",
        "/sender/approverId",
        "/sender/gatewayId",
        "/recipient/approverId",
        "/recipient/enforcerId",
        "/body/artifactType",
        "/body/artifactHash",
        "/body/expiresAt",
        "/body/ciphertext/alg",
        "/body/ciphertext/data",
        "/body/ciphertext/nonce",
        "/body/ciphertext/tag",
        "/body/ciphertext/aad",
        "/body/metadata/routingToken",
        "/body/metadata/approverId",
    ];
    let objects = [
        "/sender",
        "/recipient",
        "/trace",
        "/body",
        "/body/ciphertext",
        "/body/metadata",
    ];
    let mut wrong: Vec<(&str, Value, &str)> = Vec::new();
    for pointer in strings {
        wrong.push((pointer, json!(7), "VALIDATION"));
        wrong.push((pointer, json!(null), "VALIDATION"));
    }
    for pointer in objects {
        wrong.push((pointer, json!("text"), "VALIDATION"));
        wrong.push((pointer, json!([]), "VALIDATION"));
    }
    for pointer in ["", "/sender", "/recipient", "/body"] {
        let pointer = format!("{pointer}/surprise");
        let answer = post(with(&good, &pointer, json!(1))).await;
        answer.refused_at(400, "VALIDATION", &pointer);
    }
    wrong.extend([
        ("/msgId", json!(""), "VALIDATION"),
        ("/msgType", json!("decision.submit"), "VALIDATION"),
        ("/requestId", json!(""), "VALIDATION"),
        ("/requestId", json!("x".repeat(129)), "VALIDATION"),
        ("/requestId", json!("line\nfeed"), "VALIDATION"),
        ("/sender/enforcerId", json!(""), "VALIDATION"),
        (
            "/recipient/approverId",
            json!("x".repeat(129)),
            "VALIDATION",
        ),
        ("/body/metadata/approverId", json!(""), "VALIDATION"),
        ("/body/artifactType", json!(""), "VALIDATION"),
        (
            "/body/artifactHash",
            json!(HASH.to_uppercase()),
            "VALIDATION",
        ),
        ("/body/artifactHash", json!(&HASH[1..]), "VALIDATION"),
        ("/createdAt", json!("yesterday"), "TIMESTAMP"),
        ("/createdAt", json!("2026-02-30T12:00:00Z"), "TIMESTAMP"),
        ("/createdAt", json!("2026-02-21T12:00:00"), "TIMESTAMP"),
        ("/createdAt", json!(in_time(65)), "TIMESTAMP"),
        ("/expiresAt", json!("soon"), "TIMESTAMP"),
        ("/expiresAt", json!(in_time(7_200)), "VALIDATION"),
        ("/body/expiresAt", json!("soon"), "TIMESTAMP"),
        (
            "/body/expiresAt",
            json!(in_time(30 * 86_400 + 60)),
            "TIMESTAMP",
        ),
    ]);
    for (pointer, value, code) in wrong {
        let answer = post(with(&good, pointer, value)).await;
        answer.refused_at(400, code, pointer);
    }
    for array in [json!([]), json!("text"), json!(null)] {
        post(array).await.refused_at(400, "VALIDATION", "");
    }
    assert_eq!(cluster.database.number(EXCHANGES).await, 0);

    for (pointer, value) in [
        ("/requestId", json!("x".repeat(128))),
        ("/createdAt", json!(in_time(50))),
        ("/body/expiresAt", json!(in_time(30 * 86_400 - 60))),
        ("/createdAt", json!("2020-02-21t13:00:00.123456789+01:00")),
    ] {
        let good = with(&good, "/requestId", json!(request_id()));
        post(with(&good, pointer, value)).await.expect(202);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_time_to_come_can_be_waited_for() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    for past in [-1, -86_400] {
        let mut body = sealed();
        body["expiresAt"] = json!(in_time(past));
        let answer = enforcer.submit(&request_id(), "alice", body).await;
        answer.refused_at(422, "EXPIRED", "/body/expiresAt");
    }
    cluster.pass(Duration::from_secs(3_600));
    let late = sealed_for(Duration::from_secs(3_599));
    let answer = enforcer.submit(&request_id(), "alice", late).await;
    answer.refused_at(422, "EXPIRED", "/body/expiresAt");
    assert_eq!(cluster.database.number(EXCHANGES).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_must_see_no_plaintext_refuses_open_artifacts() {
    let cluster = Cluster::with(1, |config| config.artifacts.open = false).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let request = request_id();
    let answer = enforcer
        .submit(&request, "alice", open_artifact(&request))
        .await;
    let answer = answer.refused_at(403, "POLICY_DENY", "/body/ciphertext");
    assert_eq!(answer.body("/requestId"), request.as_str());
    let answer = enforcer.submit(&request, "alice", json!({})).await;
    answer.refused(403, "POLICY_DENY");
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    assert_eq!(cluster.database.number(EXCHANGES).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_inbox_takes_no_more_until_something_leaves_it() {
    let cluster = Cluster::with(2, |config| config.limits.pending_per_approver = 2).await;
    let alice = cluster.approver("alice").await;
    // Each from an enforcer of its own, since one has but a share of an inbox.
    let submit = async |request: &String, approver: &str| {
        let enforcer = cluster.enforcer(&format!("bot-{request}")).await;
        enforcer.submit(request, approver, sealed()).await
    };
    let (first, second, third) = (request_id(), request_id(), request_id());
    for request in [&first, &second] {
        submit(request, "alice").await.expect(202);
    }
    let refused = submit(&third, "alice").await.refused(429, "RATE_LIMITED");
    assert_eq!(refused.body("/retryable"), true);
    assert_eq!(refused.body("/message"), "the approver's inbox is full");
    assert!(refused.header("retry-after").is_some());
    let admin = cluster.admin().await;
    let status = admin.get(&format!("/v1/exchanges/{third}")).await;
    status.refused(404, "NOT_FOUND");
    let again = submit(&first, "alice").await.expect(202);
    assert_eq!(again.body("/duplicate"), true, "a repeat needs no room");
    submit(&request_id(), "bob").await.expect(202);

    alice
        .decide(&first, crate::support::compact("reject"))
        .await
        .expect(200);
    submit(&third, "alice").await.expect(202);
    let fourth = submit(&request_id(), "alice").await;
    fourth.refused(429, "RATE_LIMITED");
    alice.remove(&second).await.expect(200);
    let fifth = request_id();
    submit(&fifth, "alice").await.expect(202);
    assert_eq!(alice.inbox_ids().await, [third, fifth]);
}
