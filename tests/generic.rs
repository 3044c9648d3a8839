//! The generic endpoints: any framing in, plain JSON out, and the same exchange behind it.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::framing::Framing;
use crate::support::{
    Approver, Client, Cluster, Enforcer, compact, full, hashed, open, registration, request_id,
    sealed, signed, signing_key, with, without,
};
use countersign::store::identity::credential::RoleName;

async fn scene(nodes: usize) -> (Cluster, Enforcer, Approver) {
    let cluster = Cluster::start(nodes).await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    (cluster, enforcer, approver)
}

async fn unbound(cluster: &Cluster, role: RoleName) -> Client {
    let key = cluster.key(&cluster.tenant, role, None).await;
    cluster.client(Some(&key))
}

/// A sealed artifact that says itself what it is about, and whom it asks.
fn sealed_alone() -> Value {
    let mut artifact = sealed();
    artifact["requestId"] = json!(request_id());
    artifact["metadata"] = json!({ "approverId": "alice", "note": "kept" });
    artifact
}

fn id(message: &Value) -> &str {
    message["requestId"].as_str().unwrap()
}

/// Pairs the two, so that an artifact that names nobody finds somebody.
async fn pair(cluster: &Cluster) {
    let sql = format!(
        "insert into pairings (tenant_id, enforcer_id, approver_id, nonce, token_hash, paired_at)
         values ('{}', 'build-bot', 'alice', 'n', '\\x00', now())",
        cluster.tenant
    );
    cluster.database.run(&sql).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sealed_artifact_is_taken_in_every_framing() {
    let (_cluster, enforcer, approver) = scene(3).await;
    for framing in Framing::ALL {
        let artifact = sealed_alone();
        let message = framing.wrap("artifact.submit", ("HE", "build-bot"), None, &artifact);
        for duplicate in [false, true] {
            let answer = enforcer.client.post("/v1/artifact", &message).await;
            assert_eq!(answer.header("content-type"), Some("application/json"));
            assert_eq!(
                answer.expect(202).json(),
                json!({ "requestId": artifact["requestId"], "state": "pendingApproval", "duplicate": duplicate }),
                "{framing:?}"
            );
        }
        let items = approver.inbox("").await.expect(200).body("/items");
        let item = items
            .as_array()
            .unwrap()
            .iter()
            .find(|item| item["requestId"] == artifact["requestId"])
            .expect("it is in the inbox");
        assert_eq!(item["body"]["ciphertext"], artifact["ciphertext"]);
        assert_eq!(item["body"]["metadata"], json!({ "note": "kept" }));
        assert_eq!(item["body"].get("requestId"), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_artifact_is_taken_in_every_framing() {
    let (cluster, enforcer, approver) = scene(2).await;
    let lonely = open(&request_id());
    let answer = enforcer.client.post("/v1/artifact", &lonely).await;
    answer.refused_at(422, "NO_APPROVER", "");
    pair(&cluster).await;
    for framing in Framing::ALL {
        let artifact = open(&request_id());
        let message = framing.wrap("artifact.submit", ("HE", "build-bot"), None, &artifact);
        enforcer
            .client
            .post("/v1/artifact", &message)
            .await
            .expect(202);
        let path = format!("/v1/exchanges/{}", id(&artifact));
        let status = approver.client.get(&path).await.expect(200);
        let hash = status.body("/artifactHash");
        assert_eq!(hash, artifact["artifactHash"], "{framing:?}");
    }
    // A core Envelope names its approver as any other does.
    let artifact = open(&request_id());
    let to_bob = Framing::Core.wrap(
        "artifact.submit",
        ("HE", "build-bot"),
        Some(("MA", "bob")),
        &artifact,
    );
    enforcer
        .client
        .post("/v1/artifact", &to_bob)
        .await
        .expect(202);
    let bob = cluster.approver("bob").await;
    assert_eq!(bob.inbox_ids().await, [id(&artifact)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_names_the_member_where_the_caller_wrote_it() {
    let (_cluster, enforcer, _approver) = scene(1).await;
    let sealed = sealed_alone();
    let open = open(&request_id());
    let bad = [
        (
            without(&sealed, "/artifactHash"),
            400,
            "VALIDATION",
            "/artifactHash",
        ),
        (
            with(&sealed, "/ciphertext/alg", json!(1)),
            400,
            "VALIDATION",
            "/ciphertext/alg",
        ),
        (
            with(&sealed, "/unknown", json!(1)),
            400,
            "VALIDATION",
            "/unknown",
        ),
        (
            with(&sealed, "/expiresAt", json!("soon")),
            400,
            "TIMESTAMP",
            "/expiresAt",
        ),
        (
            with(&sealed, "/expiresAt", json!("2026-01-01T00:00:00Z")),
            422,
            "EXPIRED",
            "/expiresAt",
        ),
        (
            without(&open, "/repoRef"),
            422,
            "INVALID_ARTIFACT",
            "/repoRef",
        ),
        (
            with(&open, "/payload", json!([])),
            422,
            "INVALID_ARTIFACT",
            "/payload",
        ),
        (
            with(&open, "/repoRef", json!("other")),
            422,
            "HASH_MISMATCH",
            "/artifactHash",
        ),
    ];
    for (artifact, status, code, member) in bad {
        for framing in Framing::ALL {
            let message = framing.wrap(
                "artifact.submit",
                ("HE", "build-bot"),
                Some(("MA", "alice")),
                &artifact,
            );
            let answer = enforcer.client.post("/v1/artifact", &message).await;
            let pointer = framing.pointer(member);
            assert_eq!(
                (answer.status, answer.code(), answer.detail("pointer")),
                (status, code.to_owned(), json!(pointer)),
                "{framing:?} {answer:?}"
            );
            let text = answer.json()["message"].as_str().unwrap().to_owned();
            assert!(
                framing != Framing::Bare || !text.contains("/body"),
                "{text}"
            );
        }
    }
    // An artifact without its id: its own fault if it is open, the message's if it is sealed.
    for framing in [Framing::Bare, Framing::Core] {
        for (artifact, status, code) in [
            (&open, 422, "INVALID_ARTIFACT"),
            (&sealed, 400, "VALIDATION"),
        ] {
            let nameless = without(artifact, "/requestId");
            let message = framing.wrap("artifact.submit", ("HE", "build-bot"), None, &nameless);
            let answer = enforcer.client.post("/v1/artifact", &message).await;
            answer.refused_at(status, code, &framing.pointer("/requestId"));
        }
    }
    // Where an envelope says it, the body of a sealed artifact does not.
    let mut twice = Framing::Wire.wrap("artifact.submit", ("HE", "build-bot"), None, &sealed);
    twice["body"]["requestId"] = sealed["requestId"].clone();
    let answer = enforcer.client.post("/v1/artifact", &twice).await;
    answer.refused_at(400, "VALIDATION", "/body/requestId");
    for nothing in [json!([]), json!(1), json!("x"), json!(null)] {
        let answer = enforcer.client.post("/v1/artifact", &nothing).await;
        answer.refused(400, "VALIDATION");
    }
    let wrong = Framing::Wire.wrap("decision.submit", ("HE", "build-bot"), None, &sealed);
    let answer = enforcer.client.post("/v1/artifact", &wrong).await;
    answer.refused_at(400, "VALIDATION", "/msgType");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_is_taken_in_every_framing_full_or_compact() {
    let (cluster, enforcer, approver) = scene(3).await;
    let key = signing_key(1);
    let path = "/platform/v1/approvers/alice/keys/key-1";
    let registered = registration(&cluster.tenant, "alice", "key-1", &key);
    approver.client.put(path, &registered).await.expect(200);
    for framing in Framing::ALL {
        for form in ["full", "compact"] {
            let artifact = open(&request_id());
            let request = id(&artifact);
            enforcer
                .submit(request, "alice", artifact.clone())
                .await
                .expect(202);
            let hash = artifact["artifactHash"].as_str().unwrap();
            let mut decision = if form == "full" {
                full(request, hash)
            } else {
                with(&compact("reject"), "/artifactHash", json!(hash))
            };
            // Where nothing else says what it is about, it says so itself, and signs that too.
            let sign = |decision: Value| {
                if framing == Framing::Wire && form == "compact" {
                    let signed = signed(without(&decision, "/requestId"), &key);
                    with(&signed, "/requestId", json!(request))
                } else {
                    signed(decision, &key)
                }
            };
            decision["requestId"] = json!(request);
            let decision = sign(decision);
            let message = framing.wrap("decision.submit", ("MA", "alice"), None, &decision);
            let tampered = with(&decision, "/nonce", json!("another"));
            let tampered = framing.wrap("decision.submit", ("MA", "alice"), None, &tampered);
            let answer = approver.client.post("/v1/decision", &tampered).await;
            answer.refused_at(403, "SIGNATURE_INVALID", &framing.pointer("/signature"));
            for duplicate in [false, true] {
                let answer = approver.client.post("/v1/decision", &message).await;
                assert_eq!(
                    answer.expect(200).json(),
                    json!({ "requestId": request, "state": "decided", "duplicate": duplicate }),
                    "{framing:?} {form}"
                );
            }
            let delivered = enforcer.wait(request, 5).await.expect(200).json();
            let sent = message.get("body").unwrap_or(&message);
            assert_eq!(delivered["body"], *sent, "{framing:?} {form}");
            let other = with(&decision, "/decision", json!("approve"));
            let other = sign(with(&other, "/nonce", json!("n")));
            let other = framing.wrap("decision.submit", ("MA", "alice"), None, &other);
            let answer = approver.client.post("/v1/decision", &other).await;
            answer.refused(409, "ALREADY_DECIDED");
        }
    }
    drop(cluster);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_object_comes_from_whom_the_credential_is_or_whom_it_must_mean() {
    let (cluster, enforcer, approver) = scene(1).await;
    let any_enforcer = unbound(&cluster, RoleName::Enforcer).await;
    let any_approver = unbound(&cluster, RoleName::Approver).await;
    let artifact = sealed_alone();
    let answer = any_enforcer.post("/v1/artifact", &artifact).await;
    answer.refused_at(400, "VALIDATION", "");
    let named = with(&artifact, "/metadata/enforcerId", json!("build-bot"));
    any_enforcer.post("/v1/artifact", &named).await.expect(202);
    assert_eq!(enforcer.state(id(&artifact)).await, "pendingApproval");
    let odd = with(&sealed_alone(), "/metadata/enforcerId", json!(""));
    let answer = any_enforcer.post("/v1/artifact", &odd).await;
    answer.refused_at(400, "VALIDATION", "/metadata/enforcerId");
    // For a credential that is somebody, metadata is content.
    let content = with(&sealed_alone(), "/metadata/enforcerId", json!("somebody"));
    let answer = enforcer.client.post("/v1/artifact", &content).await;
    answer.expect(202);
    assert_eq!(enforcer.state(id(&content)).await, "pendingApproval");

    let decision = with(
        &compact("approve"),
        "/requestId",
        artifact["requestId"].clone(),
    );
    let unknown = with(&decision, "/requestId", json!("unknown"));
    let answer = any_approver.post("/v1/decision", &unknown).await;
    answer.refused(404, "NOT_FOUND");
    let answer = any_approver.post("/v1/decision", &decision).await;
    answer.expect(200);
    let row = "select decided_by from exchanges where decided_by is not null";
    assert_eq!(cluster.database.text(row).await, "alice");

    // Several were asked: it must say who it is.
    pair(&cluster).await;
    let sql = format!(
        "insert into pairings (tenant_id, enforcer_id, approver_id, nonce, token_hash, paired_at)
         values ('{}', 'build-bot', 'bob', 'm', '\\x01', now())",
        cluster.tenant
    );
    cluster.database.run(&sql).await;
    let to_both = without(&sealed_alone(), "/metadata");
    enforcer
        .client
        .post("/v1/artifact", &to_both)
        .await
        .expect(202);
    let decision = with(
        &compact("approve"),
        "/requestId",
        to_both["requestId"].clone(),
    );
    let answer = any_approver.post("/v1/decision", &decision).await;
    answer.refused_at(400, "VALIDATION", "");
    let as_bob = Framing::Core.wrap("decision.submit", ("MA", "bob"), None, &decision);
    any_approver.post("/v1/decision", &as_bob).await.expect(200);
    let as_bob = Framing::Core.wrap("decision.submit", ("MA", "bob"), None, &decision);
    let answer = approver.client.post("/v1/decision", &as_bob).await;
    answer.refused_at(403, "FORBIDDEN", "/sender/deviceId");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_answer_and_limits_hold_as_on_the_other_road() {
    let (cluster, enforcer, _approver) = scene(2).await;
    let artifact = sealed_alone();
    let keyed = async |path: &str, artifact: &Value| {
        enforcer
            .client
            .call(Method::POST, path)
            .header("idempotency-key", "k")
            .json(artifact)
            .send()
            .await
    };
    let first = keyed("/v1/artifact", &artifact).await.expect(202);
    assert_eq!(first.header("idempotency-replayed"), None);
    let again = keyed("/v1/artifact", &artifact).await.expect(202);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.json()["duplicate"], true);
    let other = keyed("/v1/artifact", &sealed_alone()).await;
    other.refused(409, "IDEMPOTENCY_KEY_REUSED");
    let hash = json!(crate::support::OTHER_HASH);
    for (framing, pointer) in [
        (Framing::Bare, "/requestId"),
        (Framing::Core, "/body/requestId"),
        (Framing::Wire, "/requestId"),
    ] {
        let other = with(&artifact, "/artifactHash", hash.clone());
        let other = framing.wrap("artifact.submit", ("HE", "build-bot"), None, &other);
        let answer = enforcer.client.post("/v1/artifact", &other).await;
        answer.refused_at(409, "ALREADY_EXISTS", pointer);
    }
    // The same exchange, whichever road it took.
    let body = without(&artifact, "/requestId");
    let answer = enforcer.submit(id(&artifact), "alice", body).await;
    assert_eq!(answer.outcome(), "202 duplicate");

    let big = with(
        &sealed_alone(),
        "/ciphertext/data",
        json!("x".repeat((2 << 20) + 1)),
    );
    let answer = enforcer.client.post("/v1/artifact", &big).await;
    answer.refused_at(413, "TOO_LARGE", "/ciphertext/data");
    let answer = enforcer
        .client
        .call(Method::POST, "/v1/artifact")
        .header("content-type", "text/plain")
        .bytes(b"{}".to_vec())
        .send()
        .await;
    answer.refused(415, "UNSUPPORTED_MEDIA_TYPE");
    let answer = enforcer.client.get("/v1/artifact").await;
    assert_eq!(answer.header("allow"), Some("POST"));
    answer.refused(405, "METHOD_NOT_ALLOWED");
    let closed = Cluster::with(1, |config| config.artifacts.open = false).await;
    let bot = closed.enforcer("build-bot").await;
    let answer = bot
        .client
        .post("/v1/artifact", &hashed(open(&request_id())))
        .await;
    answer.refused_at(403, "POLICY_DENY", "/ciphertext");
    drop(cluster);
}

#[tokio::test(flavor = "multi_thread")]
async fn anyone_may_ask_what_the_gateway_is() {
    let cluster = Cluster::with(1, |config| config.limits.prompt_bytes = 1_000).await;
    let answer = cluster.client(None).get("/v1/status").await.expect(200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let status = answer.json();
    assert_eq!(status["name"], "countersign");
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(status["protocolVersion"], "0.2");
    assert_eq!(
        status["algorithms"],
        json!({ "hash": ["SHA-256"], "signature": ["Ed25519"] })
    );
    assert_eq!(status["transports"], json!(["websocket", "sse", "poll"]));
    assert!(
        status["authentication"]
            .as_array()
            .unwrap()
            .contains(&json!("apiKey"))
    );
    assert_eq!(status["limits"]["artifactBytes"], 2 << 20);
    assert_eq!(
        status["limits"]["promptBytes"], 1_000,
        "the limits in force"
    );
    assert_eq!(status["limits"]["snapshotBytes"], 5 << 20);
    assert!(status["nodeId"].is_string() && status["time"].is_string());
}
