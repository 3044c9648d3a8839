//! Decisions: both forms, every member, and the order in which faults are judged.

mod order;
mod signature;

use serde_json::{Value, json};

use crate::support::{
    Approver, Cluster, Enforcer, HASH, OTHER_HASH, compact, full, in_time, request_id, sealed,
    with, without,
};

const DECIDED: &str = "select count(*) from exchanges where state = 'decided'";

/// A cluster with build-bot and alice.
async fn parties(nodes: usize) -> (Cluster, Enforcer, Approver) {
    let cluster = Cluster::start(nodes).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let approver = cluster.approver("alice").await;
    (cluster, enforcer, approver)
}

/// A new pending exchange that asks alice.
async fn pending(enforcer: &Enforcer) -> String {
    let request = request_id();
    enforcer
        .submit(&request, "alice", sealed())
        .await
        .expect(202);
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn both_forms_are_taken_in_every_variety_and_delivered() {
    let (cluster, enforcer, approver) = parties(2).await;
    let mut bodies = vec![compact("approve"), compact("reject")];
    bodies.push(with(&compact("reject"), "/reason", json!("too risky")));
    bodies.push(with(
        &compact("approve"),
        "/decisionHash",
        json!(OTHER_HASH),
    ));
    for (scope, verdict) in [
        ("once", "approve"),
        ("timebox", "reject"),
        ("session", "approve"),
    ] {
        let mut body = full("", HASH);
        body["scope"] = json!(scope);
        body["decision"] = json!(verdict);
        body["policyHints"] = json!({ "free": ["form"] });
        bodies.push(body);
    }
    for mut body in bodies {
        let request = pending(&enforcer).await;
        if body.get("sigAlg").is_some() {
            body["requestId"] = json!(request);
        }
        let accepted = approver.decide(&request, body.clone()).await.expect(200);
        assert_eq!(accepted.json()["msgType"], "decision.accepted");
        assert_eq!(
            accepted.json()["body"],
            json!({
                "requestId": request,
                "state": "decided",
                "decision": body["decision"],
                "verified": false,
                "duplicate": false,
            })
        );
        let delivered = enforcer.wait(&request, 5).await.expect(200);
        assert_eq!(delivered.json()["body"], body);
        assert_eq!(enforcer.status(&request).await.body("/decision"), body);
        let row = format!(
            "select decision || ' ' || decided_by || ' ' || signer_key_id || ' ' || verified || ' ' || artifact_hash
               from exchange_history where request_id = '{request}'"
        );
        assert_eq!(
            cluster.database.text(&row).await,
            format!(
                "{} alice key-1 false {HASH}",
                body["decision"].as_str().unwrap()
            )
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_rule_of_a_decision_names_the_member_that_breaks_it() {
    let (cluster, enforcer, approver) = parties(1).await;
    let request = pending(&enforcer).await;
    let short = approver.decision(&request, compact("approve"));
    let mut long = approver.decision(&request, full(&request, HASH));
    long["body"]["policyHints"] = json!({});
    let post = async |message: Value| approver.client.post("/v1/decisions", &message).await;

    let envelope =
        ["msgType", "requestId", "createdAt", "sender", "body"].map(|name| format!("/{name}"));
    let common = [
        "artifactHash",
        "decision",
        "signerKeyId",
        "nonce",
        "signature",
    ]
    .map(|name| format!("/body/{name}"));
    let only_long = [
        "requestId",
        "artifactHashAlg",
        "repoRef",
        "scope",
        "expiresAt",
    ]
    .map(|name| format!("/body/{name}"));
    for pointer in envelope.iter().chain(&common) {
        for good in [&short, &long] {
            let answer = post(without(good, pointer)).await;
            answer.refused_at(400, "VALIDATION", pointer);
            let answer = post(with(good, pointer, json!(7))).await;
            answer.refused_at(400, "VALIDATION", pointer);
        }
    }
    for pointer in &only_long {
        let answer = post(without(&long, pointer)).await;
        answer.refused_at(400, "VALIDATION", pointer);
        let answer = post(with(&long, pointer, json!(null))).await;
        answer.refused_at(400, "VALIDATION", pointer);
        let answer = post(with(
            &short,
            pointer,
            long.pointer(pointer).unwrap().clone(),
        ))
        .await;
        answer.refused_at(400, "VALIDATION", pointer);
    }
    let cut = json!("BwcHBw");
    let wrong = [
        (&short, "/sender/approverId", json!(1), "VALIDATION"),
        (&short, "/body/surprise", json!(1), "VALIDATION"),
        (&short, "/body/policyHints", json!({}), "VALIDATION"),
        (&short, "/body/reason", json!(1), "VALIDATION"),
        (&short, "/body/decisionHash", json!("short"), "VALIDATION"),
        (&short, "/body/decision", json!("allow"), "VALIDATION"),
        (
            &short,
            "/body/artifactHash",
            json!(HASH.to_uppercase()),
            "VALIDATION",
        ),
        (&short, "/body/signerKeyId", json!(""), "VALIDATION"),
        (&short, "/body/nonce", json!(""), "VALIDATION"),
        (&short, "/body/signature", json!(""), "VALIDATION"),
        (&short, "/body/signature", cut, "VALIDATION"),
        (
            &short,
            "/body/signature",
            json!("+".repeat(86)),
            "VALIDATION",
        ),
        (
            &short,
            "/body/signature",
            json!("B".repeat(88)),
            "VALIDATION",
        ),
        (&short, "/createdAt", json!(in_time(65)), "TIMESTAMP"),
        (&long, "/body/surprise", json!(1), "VALIDATION"),
        (
            &long,
            "/body/reason",
            json!("of the compact form"),
            "VALIDATION",
        ),
        (&long, "/body/policyHints", json!("text"), "VALIDATION"),
        (&long, "/body/scope", json!("forever"), "VALIDATION"),
        (&long, "/body/decision", json!("Approve"), "VALIDATION"),
        (&long, "/body/expiresAt", json!("soon"), "TIMESTAMP"),
        (&long, "/body/sigAlg", json!("RSA"), "UNSUPPORTED"),
        (&long, "/body/artifactHashAlg", json!("MD5"), "UNSUPPORTED"),
        (&long, "/expiresAt", json!(in_time(60)), "VALIDATION"),
    ];
    for (good, pointer, value, code) in wrong {
        let answer = post(with(good, pointer, value)).await;
        answer.refused_at(400, code, pointer);
    }
    let answer = post(without(&short, "/sender/approverId")).await;
    answer.refused_at(400, "VALIDATION", "/sender/approverId");
    let answer = post(with(&long, "/body/requestId", json!(request_id()))).await;
    answer.refused_at(400, "VALIDATION", "/requestId");
    let answer = post(with(&long, "/body/expiresAt", json!(in_time(-1)))).await;
    answer.refused_at(400, "EXPIRED", "/body/expiresAt");
    let answer = post(with(&short, "/sender/approverId", json!("bob"))).await;
    answer.refused_at(403, "FORBIDDEN", "/sender/approverId");
    assert_eq!(cluster.database.number(DECIDED).await, 0);
    post(with(&long, "/expiresAt", long["body"]["expiresAt"].clone()))
        .await
        .expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_decision_again_is_no_conflict_and_any_other_is() {
    let (cluster, enforcer, approver) = parties(2).await;
    let request = pending(&enforcer).await;
    let decision = compact("approve");
    approver
        .decide(&request, decision.clone())
        .await
        .expect(200);
    for state in ["decided", "delivered"] {
        let again = approver
            .decide(&request, decision.clone())
            .await
            .expect(200);
        assert_eq!(
            again.json()["body"],
            json!({
                "requestId": request,
                "state": state,
                "decision": "approve",
                "verified": false,
                "duplicate": true,
            })
        );
        for (pointer, value) in [
            ("/nonce", json!("another")),
            ("/signerKeyId", json!("key-2")),
            ("/signature", json!("CA".repeat(43))),
        ] {
            let other = with(&decision, pointer, value);
            let answer = approver.decide(&request, other).await;
            let answer = answer.refused(409, "ALREADY_DECIDED");
            assert_eq!(answer.detail("conflict"), "AlreadyDecidedConflict");
        }
        let delivered = enforcer.wait(&request, 5).await.expect(200);
        assert_eq!(delivered.json()["body"], decision);
        let message = delivered.json()["msgId"].as_str().unwrap().to_owned();
        enforcer.ack(&request, &message).await.expect(200);
    }
    let messages = "select count(*) from messages where kind = 'decision.deliver'";
    assert_eq!(cluster.database.number(messages).await, 1);
    let events = "select count(*) from exchange_events";
    assert_eq!(cluster.database.number(events).await, 3);
}
