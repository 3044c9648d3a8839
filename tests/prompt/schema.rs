//! Every member of `prompt.send`, `prompt.ack` and the core Envelope: missing, of the wrong type,
//! unknown, each value of an enumeration and one outside it; and sizes.

use reqwest::Method;
use serde_json::{Value, json};

use super::{ack, prompt, scene, sealed_in, send};
use crate::support::framing::Framing;
use crate::support::{Answer, HASH, in_time, with, without};

/// A prompt with every member there is.
fn complete() -> Value {
    let mut prompt = prompt();
    prompt["sessionId"] = json!("session-1");
    prompt["repoRef"] = json!("repo:acme/widgets");
    prompt["metadata"] = json!({ "enforcerId": "build-bot" });
    prompt["extensions"] =
        json!({ "org.proto.prompt": { "expiresAt": in_time(600) }, "com.example.x": 1 });
    sealed_in(prompt)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_member_of_a_prompt_is_checked_in_every_framing() {
    let (cluster, _enforcer, approver) = scene(1).await;
    let good = complete();
    let mut bad: Vec<(Value, &str, &str)> = Vec::new();
    for name in [
        "requestId",
        "artifactType",
        "createdAt",
        "target",
        "text",
        "promptHashAlg",
        "promptHash",
    ] {
        let pointer = format!("/{name}");
        bad.push((without(&good, &pointer), "VALIDATION", name));
    }
    for name in [
        "requestId",
        "sessionId",
        "repoRef",
        "artifactType",
        "createdAt",
        "target",
        "text",
        "promptHashAlg",
        "promptHash",
    ] {
        for wrong in [json!(1), json!(null), json!([]), json!({})] {
            bad.push((with(&good, &format!("/{name}"), wrong), "VALIDATION", name));
        }
    }
    for name in ["metadata", "extensions"] {
        for wrong in [json!("x"), json!(null), json!([])] {
            bad.push((with(&good, &format!("/{name}"), wrong), "VALIDATION", name));
        }
    }
    bad.extend([
        (
            with(&good, "/requestId", json!("no-uuid")),
            "VALIDATION",
            "requestId",
        ),
        (
            with(&good, "/sessionId", json!("")),
            "VALIDATION",
            "sessionId",
        ),
        (
            with(&good, "/artifactType", json!("plan.review")),
            "VALIDATION",
            "artifactType",
        ),
        (
            with(&good, "/createdAt", json!("yesterday")),
            "TIMESTAMP",
            "createdAt",
        ),
        (
            with(&good, "/createdAt", json!(in_time(120))),
            "TIMESTAMP",
            "createdAt",
        ),
        (
            with(&good, "/target", json!("AgentChat")),
            "VALIDATION",
            "target",
        ),
        (with(&good, "/text", json!("")), "VALIDATION", "text"),
        (
            with(&good, "/promptHashAlg", json!("SHA-512")),
            "UNSUPPORTED",
            "promptHashAlg",
        ),
        (
            with(&good, "/promptHash", json!(HASH.to_uppercase())),
            "VALIDATION",
            "promptHash",
        ),
        (with(&good, "/unknown", json!(1)), "VALIDATION", "unknown"),
        (with(&good, "/ackAt", json!(1)), "VALIDATION", "ackAt"),
        (
            with(&good, "/extensions/loose", json!(1)),
            "VALIDATION",
            "extensions/loose",
        ),
        (
            with(&good, "/extensions/org.proto.prompt", json!(1)),
            "VALIDATION",
            "extensions/org.proto.prompt",
        ),
        (
            with(
                &good,
                "/extensions/org.proto.prompt/expiresAt",
                json!("soon"),
            ),
            "TIMESTAMP",
            "extensions/org.proto.prompt/expiresAt",
        ),
    ]);
    for (prompt, code, name) in bad {
        for framing in Framing::ALL {
            let message = framing.wrap("prompt.send", ("MA", "alice"), None, &prompt);
            let answer = approver.client.post("/v1/prompt", &message).await;
            if framing == Framing::Wire && name == "requestId" {
                assert_eq!(answer.status, 400, "{answer:?}");
                continue;
            }
            let pointer = framing.pointer(&format!("/{name}"));
            refused(&answer, code, &pointer, &prompt);
        }
    }
    let rows = "select count(*) from prompts";
    assert_eq!(
        cluster.database.number(rows).await,
        0,
        "nothing was left behind"
    );
    for target in ["agentChat", "composer", "tool", "other"] {
        let mut good = complete();
        good["requestId"] = json!(crate::support::request_id());
        good["target"] = json!(target);
        let good = sealed_in(good);
        approver.client.post("/v1/prompt", &good).await.expect(202);
    }
}

#[track_caller]
fn refused(answer: &Answer, code: &str, pointer: &str, sent: &Value) {
    assert_eq!(
        (answer.status, answer.code(), answer.detail("pointer")),
        (400, code.to_owned(), json!(pointer)),
        "{answer:?} for {sent}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn hashes_are_verified_where_the_text_is_open() {
    let (_cluster, _enforcer, approver) = scene(1).await;
    let mut tampered = complete();
    tampered["text"] = json!("Delete everything.");
    for (framing, pointer) in [
        (Framing::Bare, "/promptHash"),
        (Framing::Core, "/body/promptHash"),
        (Framing::Wire, "/body/promptHash"),
    ] {
        let message = framing.wrap("prompt.send", ("MA", "alice"), None, &tampered);
        let answer = approver.client.post("/v1/prompt", &message).await;
        answer.refused_at(422, "HASH_MISMATCH", pointer);
    }
    // The published known answer, as it stands.
    let vectors: Value = serde_json::from_str(include_str!("../vectors/hashes.json")).unwrap();
    let vector = &vectors["hashes"][1];
    let mut known = vector["object"].clone();
    known["promptHash"] = vector["sha256"].clone();
    send(&approver, &known).await.expect(202);
    for (ciphertext, member) in [
        (json!({}), "/alg"),
        (json!({ "alg": "x" }), "/data"),
        (json!({ "data": "x" }), "/alg"),
        (json!({ "alg": 1, "data": "x" }), "/alg"),
        (json!({ "alg": "x", "data": null }), "/data"),
        (json!({ "alg": "x", "data": "x", "tag": 1 }), "/tag"),
        (json!({ "alg": "x", "data": "x", "nonce": [] }), "/nonce"),
        (json!({ "alg": "x", "data": "x", "aad": {} }), "/aad"),
        (json!("sealed"), ""),
    ] {
        let sealed = with(&without(&complete(), "/text"), "/ciphertext", ciphertext);
        for framing in Framing::ALL {
            let message = framing.wrap("prompt.send", ("MA", "alice"), None, &sealed);
            let answer = approver.client.post("/v1/prompt", &message).await;
            let pointer = framing.pointer(&format!("/ciphertext{member}"));
            refused(&answer, "VALIDATION", &pointer, &sealed);
        }
    }
    let both = with(
        &complete(),
        "/ciphertext",
        json!({ "alg": "x", "data": "x" }),
    );
    let answer = approver.client.post("/v1/prompt", &both).await;
    answer.refused_at(400, "VALIDATION", "/text");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_member_of_an_acknowledgement_is_checked() {
    let (_cluster, enforcer, approver) = scene(1).await;
    let prompt = complete();
    send(&approver, &prompt).await.expect(202);
    let mut good = ack(&prompt, "queued");
    good["details"] = json!({});
    let mut bad: Vec<(Value, &str, &str)> = vec![
        (
            with(&good, "/status", json!("done")),
            "VALIDATION",
            "status",
        ),
        (with(&good, "/ackAt", json!("now")), "TIMESTAMP", "ackAt"),
        (
            with(&good, "/promptHash", json!("x")),
            "VALIDATION",
            "promptHash",
        ),
        (with(&good, "/details", json!("x")), "VALIDATION", "details"),
        (with(&good, "/unknown", json!(1)), "VALIDATION", "unknown"),
    ];
    for name in ["requestId", "promptHash", "status", "ackAt"] {
        bad.push((without(&good, &format!("/{name}")), "VALIDATION", name));
        for wrong in [json!(1), json!(null), json!([]), json!({})] {
            bad.push((with(&good, &format!("/{name}"), wrong), "VALIDATION", name));
        }
    }
    for wrong in [json!(1), json!(null), json!([])] {
        bad.push((with(&good, "/details", wrong), "VALIDATION", "details"));
    }
    for (message, code, name) in bad {
        for framing in Framing::ALL {
            // There the envelope speaks of it first.
            if framing == Framing::Wire && name == "requestId" {
                continue;
            }
            let wrapped = framing.wrap("prompt.ack", ("HE", "build-bot"), None, &message);
            let answer = enforcer.client.post("/v1/prompt", &wrapped).await;
            refused(
                &answer,
                code,
                &framing.pointer(&format!("/{name}")),
                &message,
            );
        }
    }
    enforcer.client.post("/v1/prompt", &good).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_member_of_the_core_envelope_is_checked() {
    let (_cluster, _enforcer, approver) = scene(1).await;
    let good = Framing::Core.wrap(
        "prompt.send",
        ("MA", "alice"),
        Some(("HE", "build-bot")),
        &complete(),
    );
    let mut bad: Vec<(Value, &str, String)> = Vec::new();
    for name in ["msgType", "sender", "recipient", "createdAt", "body"] {
        bad.push((
            without(&good, &format!("/{name}")),
            "VALIDATION",
            format!("/{name}"),
        ));
    }
    for name in [
        "envelopeId",
        "msgType",
        "sender",
        "recipient",
        "createdAt",
        "trace",
        "body",
    ] {
        let wrong = with(&good, &format!("/{name}"), json!(7));
        bad.push((wrong, "VALIDATION", format!("/{name}")));
    }
    for side in ["sender", "recipient"] {
        for name in ["actor", "deviceId"] {
            let pointer = format!("/{side}/{name}");
            bad.push((without(&good, &pointer), "VALIDATION", pointer.clone()));
            bad.push((
                with(&good, &pointer, json!(null)),
                "VALIDATION",
                pointer.clone(),
            ));
            bad.push((with(&good, &pointer, json!("")), "VALIDATION", pointer));
        }
        let pointer = format!("/{side}/enforcerId");
        bad.push((with(&good, &pointer, json!("x")), "VALIDATION", pointer));
    }
    bad.extend([
        (
            with(&good, "/sender/actor", json!("GW")),
            "VALIDATION",
            "/sender/actor".into(),
        ),
        (
            with(&good, "/msgType", json!("artifact.submit")),
            "VALIDATION",
            "/msgType".into(),
        ),
        (
            with(&good, "/sender/actor", json!("he")),
            "VALIDATION",
            "/sender/actor".into(),
        ),
        (
            with(&good, "/createdAt", json!("now")),
            "TIMESTAMP",
            "/createdAt".into(),
        ),
        (
            with(&good, "/createdAt", json!(in_time(120))),
            "TIMESTAMP",
            "/createdAt".into(),
        ),
        (
            with(&good, "/requestId", json!("x")),
            "VALIDATION",
            "/requestId".into(),
        ),
        (
            with(&good, "/expiresAt", json!(in_time(60))),
            "VALIDATION",
            "/expiresAt".into(),
        ),
    ]);
    for (message, code, pointer) in bad {
        let answer = approver.client.post("/v1/prompt", &message).await;
        refused(&answer, code, &pointer, &message);
    }
    // Without its envelopeId it reads as a wire Envelope, and lacks what that has.
    let answer = approver
        .client
        .post("/v1/prompt", &without(&good, "/envelopeId"))
        .await;
    refused(&answer, "VALIDATION", "/requestId", &good);
    let traced = with(&good, "/trace", json!({ "any": ["thing"] }));
    approver
        .client
        .post("/v1/prompt", &traced)
        .await
        .expect(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_has_its_own_limit() {
    let (_cluster, enforcer, approver) = scene(1).await;
    let of = |bytes: usize| {
        let mut prompt = complete();
        prompt["requestId"] = json!(crate::support::request_id());
        prompt["text"] = json!("ä".repeat(bytes / 2) + &"x".repeat(bytes % 2));
        sealed_in(prompt)
    };
    approver
        .client
        .post("/v1/prompt", &of(256 << 10))
        .await
        .expect(202);
    let answer = approver
        .client
        .post("/v1/prompt", &of((256 << 10) + 1))
        .await;
    answer.refused_at(413, "TOO_LARGE", "/text");
    let mut sealed = without(&complete(), "/text");
    sealed["ciphertext"] = json!({ "alg": "x", "data": "x".repeat((256 << 10) + 1) });
    let answer = approver.client.post("/v1/prompt", &sealed).await;
    answer.refused_at(413, "TOO_LARGE", "/ciphertext/data");
    // An acknowledgement carries no text, and is held to what any other body is.
    let mut long = ack(&complete(), "queued");
    long["details"] = json!({ "x": "x".repeat(256 << 10) });
    let answer = enforcer.client.post("/v1/prompt", &long).await;
    answer.refused(413, "TOO_LARGE");
    let vast = vec![b' '; (320 << 10) + 1];
    let answer = approver
        .client
        .call(Method::POST, "/v1/prompt")
        .header("content-type", "application/json")
        .bytes(vast)
        .send()
        .await;
    answer.refused(413, "TOO_LARGE");
}
