//! No secret leaves by a side door: canaries are planted wherever a caller can put something, and
//! everything the node logs, at its most talkative, and every error it answers is searched for
//! them.

use std::fs::File;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign::store::identity::credential::RoleName;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::collector::Collector;
use crate::support::process::{Process, countersign};
use crate::support::push::Socket;
use crate::support::{
    Client, Cluster, envelope, get, hash_of, hashed, now, open, request_id, sealed, until, with,
};

/// Values that must never be seen, each with the place where it was planted.
#[derive(Default)]
struct Canaries(Vec<(String, &'static str)>);

impl Canaries {
    /// A fresh one.
    fn plant(&mut self, place: &'static str) -> String {
        let canary = format!("canary{}", request_id().replace('-', ""));
        self.0.push((canary.clone(), place));
        canary
    }

    /// One that others made.
    fn mark(&mut self, secret: &str, place: &'static str) {
        assert!(secret.len() >= 8, "{place} is too short to search for");
        self.0.push((secret.to_owned(), place));
    }

    #[track_caller]
    fn absent(&self, text: &str, from: &str) {
        for (canary, place) in &self.0 {
            assert!(!text.contains(canary), "{place} is in {from}: {text}");
        }
    }
}

/// A node as a process, with its log in a file.
struct Talkative {
    url: String,
    metrics: String,
    log: tempfile::NamedTempFile,
    _process: Process,
    _directory: tempfile::TempDir,
}

fn talkative(database_url: &str, collector: &Collector, canaries: &mut Canaries) -> Talkative {
    let directory = tempfile::tempdir().unwrap();
    let ready = directory.path().join("ready");
    let log = tempfile::NamedTempFile::new().unwrap();
    let (operator, secret) = (
        canaries.plant("the operator's key"),
        canaries.plant("the cluster's secret"),
    );
    let password = canaries.plant("the database's password");
    let header = canaries.plant("the collector's key");
    let url = database_url.replacen('@', &format!(":{password}@"), 1);
    let mut process = Process::start(
        countersign()
            .args(["serve", "--listen", "127.0.0.1:0", "--ready-file"])
            .arg(&ready)
            .env("COUNTERSIGN_DATABASE__URL", &url)
            .env("COUNTERSIGN_PLATFORM__OPERATOR_KEY", &operator)
            .env("COUNTERSIGN_SECURITY__CLUSTER_SECRET", &secret)
            .env("COUNTERSIGN_RATES__ENABLED", "false")
            .env("COUNTERSIGN_LOG__FILTER", "trace")
            .env("COUNTERSIGN_TELEMETRY__METRICS_LISTEN", "127.0.0.1:0")
            .env("COUNTERSIGN_TELEMETRY__OTLP_ENDPOINT", &collector.endpoint)
            .env(
                "COUNTERSIGN_TELEMETRY__OTLP_HEADERS",
                format!("x-key={header}"),
            )
            .env("COUNTERSIGN_TELEMETRY__EXPORT_SECONDS", "1")
            .stderr(File::create(log.path()).unwrap()),
    );
    let ready = process.await_file(&ready);
    let (url, metrics) = ready.split_once('\n').expect("two addresses");
    Talkative {
        url: url.to_owned(),
        metrics: format!("{metrics}/metrics"),
        log,
        _process: process,
        _directory: directory,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_secret_is_logged_or_told_in_an_error() {
    let cluster = Cluster::start(1).await;
    let mut canaries = Canaries::default();
    let collector = Collector::start().await;
    let node = talkative(&cluster.database.url, &collector, &mut canaries);
    let mut client = async |role: RoleName, id: Option<&str>, place| {
        let key = cluster.key(&cluster.tenant, role, id).await;
        let secret = key.splitn(3, '_').nth(2).unwrap().to_owned();
        canaries.mark(&secret, place);
        Client::new(vec![node.url.clone()], Some(&key))
    };
    let enforcer = client(RoleName::Enforcer, Some("build-bot"), "an enforcer's key").await;
    let approver = client(RoleName::Approver, Some("alice"), "an approver's key").await;
    let admin = client(RoleName::Admin, None, "an administrator's key").await;
    let mut errors: Vec<String> = Vec::new();

    // Invalid credentials, in every place where one may stand.
    let nobody = Client::new(vec![node.url.clone()], None);
    let token = canaries.plant("a bad token");
    for (name, value) in [
        ("authorization", format!("Bearer {token}")),
        ("authorization", format!("Bearer csk_{token}_{token}")),
        ("authorization", format!("Bearer {token}.{token}.{token}")),
        ("authorization", format!("Basic {token}")),
        ("x-api-key", token.clone()),
        ("x-pat", token.clone()),
        ("x-client-secret", token.clone()),
        (
            "sec-websocket-protocol",
            format!("countersign, bearer.{token}"),
        ),
        ("cookie", token.clone()),
    ] {
        let path = format!("/v1/approvers/alice/inbox?cursor={token}&token={token}");
        let call = nobody.call(Method::GET, &path).header(name, &value);
        errors.push(call.send().await.expect(401).text);
    }

    // A whole exchange, with something secret in everything that is not an id.
    let request = request_id();
    let data = canaries.plant("a ciphertext");
    let mut submission = envelope(
        "artifact.submit",
        &request,
        json!({ "enforcerId": "build-bot" }),
        with(&sealed(), "/ciphertext/data", json!(data)),
    );
    submission["recipient"] = json!({ "approverId": "alice" });
    submission["trace"] = json!({ "note": canaries.plant("a trace") });
    submission["body"]["metadata"] = json!({ "note": canaries.plant("sealed metadata") });
    let key = canaries.plant("an idempotency key");
    for _ in 0..2 {
        let call = enforcer
            .call(Method::POST, "/v1/artifacts")
            .header("idempotency-key", &key);
        call.json(&submission).send().await.expect(202);
    }
    let mut decision = json!({
        "artifactHash": submission["body"]["artifactHash"], "decision": "approve", "signerKeyId": "key-1",
        "nonce": canaries.plant("a decision's nonce"), "reason": canaries.plant("a decision's reason"),
    });
    let signature = URL_SAFE_NO_PAD.encode([9; 64]);
    canaries.mark(&signature, "a signature");
    decision["signature"] = json!(signature);
    let decide = envelope(
        "decision.submit",
        &request,
        json!({ "approverId": "alice" }),
        decision,
    );
    approver.post("/v1/decisions", &decide).await.expect(200);
    let other = with(&decide, "/body/nonce", json!("another"));
    errors.push(
        approver
            .post("/v1/decisions", &other)
            .await
            .expect(409)
            .text,
    );

    // A refusal does not repeat the content.
    let artifact = open(&request_id());
    let text = canaries.plant("a plaintext");
    let artifact = hashed(with(&artifact, "/payload/secret", json!(text)));
    for (bad, status) in [
        (with(&artifact, "/payload/more", json!(text)), 422),
        (with(&artifact, "/repoRef", json!([text])), 422),
        (with(&artifact, "/artifactType", json!(text)), 422),
        (with(&artifact, "/createdAt", json!(text)), 422),
    ] {
        let id = artifact["requestId"].as_str().unwrap();
        let bad = envelope(
            "artifact.submit",
            id,
            json!({ "enforcerId": "build-bot" }),
            bad,
        );
        errors.push(
            enforcer
                .post("/v1/artifacts", &bad)
                .await
                .expect(status)
                .text,
        );
    }
    for broken in [
        format!("{{\"a\":\"{text}\""),
        format!("{{\"a\":\"{text}\",\"a\":\"{text}\"}}"),
        format!("[\"{text}\"]"),
        format!("\"{text}\""),
    ] {
        let call = enforcer.call(Method::POST, "/v1/artifacts").text(&broken);
        errors.push(call.send().await.expect(400).text);
    }

    // Pairing: codes, nonces, tokens.
    let begun = json!({ "enforcerId": "build-bot", "publicKey": canaries.plant("a public key") });
    let begun = enforcer
        .post("/v1/pairing/initiate", &begun)
        .await
        .expect(200)
        .json();
    let (code, nonce) = (
        begun["code"].as_str().unwrap(),
        begun["nonce"].as_str().unwrap(),
    );
    canaries.mark(code, "a pairing code");
    canaries.mark(&code.replace('-', ""), "a pairing code without its dash");
    canaries.mark(nonce, "a pairing nonce");
    let resolve = format!("/v1/pairing/resolve/{code}");
    approver.get(&resolve).await.expect(200);
    let complete = json!({ "nonce": nonce, "approverId": "alice" });
    let paired = approver
        .post("/v1/pairing/complete", &complete)
        .await
        .expect(200);
    let routing = paired.json()["routingToken"].as_str().unwrap().to_owned();
    canaries.mark(&routing, "a routing token");
    errors.push(
        approver
            .post("/v1/pairing/complete", &complete)
            .await
            .expect(409)
            .text,
    );
    errors.push(approver.get(&resolve).await.expect(404).text);
    errors.push(
        enforcer
            .get(&format!("/v1/pairing/status/{nonce}x"))
            .await
            .expect(404)
            .text,
    );
    let revoke = json!({ "routingToken": routing });
    enforcer
        .post("/v1/pairing/revoke", &revoke)
        .await
        .expect(200);
    let mut routed = with(
        &submission,
        "/body/metadata",
        json!({ "routingToken": routing }),
    );
    routed["requestId"] = json!(request_id());
    routed.as_object_mut().unwrap().remove("recipient");
    errors.push(
        enforcer
            .post("/v1/artifacts", &routed)
            .await
            .expect(403)
            .text,
    );

    // Prompts and sessions.
    let mut prompt = json!({
        "requestId": request_id(), "artifactType": "prompt.send", "createdAt": now(), "target": "tool",
        "text": canaries.plant("a prompt"), "metadata": { "enforcerId": "build-bot" }, "promptHashAlg": "SHA-256",
    });
    prompt["promptHash"] = json!(hash_of(&prompt.to_string(), "promptHash"));
    approver.post("/v1/prompt", &prompt).await.expect(202);
    let tampered = with(&prompt, "/target", json!("other"));
    errors.push(
        approver
            .post("/v1/prompt", &tampered)
            .await
            .expect(422)
            .text,
    );
    let mut snapshot = json!({
        "sessionId": "s", "eventType": "session.snapshot", "snapshotId": "1", "snapshotType": "summary",
        "createdAt": now(), "payload": { "summary": canaries.plant("a snapshot") }, "snapshotHashAlg": "SHA-256",
    });
    snapshot["snapshotHash"] = json!(hash_of(&snapshot.to_string(), "snapshotHash"));
    enforcer
        .post("/v1/session/event", &snapshot)
        .await
        .expect(202);
    let tampered = with(&snapshot, "/snapshotType", json!("plan"));
    errors.push(
        enforcer
            .post("/v1/session/event", &tampered)
            .await
            .expect(422)
            .text,
    );

    // Over a socket, in both directions.
    let mut socket = Socket::connect(&node.url, "enforcer", "build-bot", enforcer.key())
        .await
        .unwrap();
    socket.expect_type("decision.deliver").await;
    socket
        .send(&json!({ "msgType": "hello", "workspaceName": [canaries.plant("a hello")] }))
        .await;
    errors.push(socket.expect_type("error").await.to_string());
    socket
        .send(&with(
            &submission,
            "/body/ciphertext",
            json!(canaries.plant("a frame")),
        ))
        .await;
    errors.push(socket.expect_type("error").await.to_string());

    // Administration: a key that is shown once, and only there.
    let made = admin
        .post(
            "/platform/v1/credentials",
            &json!({ "role": "enforcer", "boundId": "bot" }),
        )
        .await
        .expect(201);
    let made = made.json()["apiKey"].as_str().unwrap().to_owned();
    canaries.mark(made.splitn(3, '_').nth(2).unwrap(), "a fresh key");
    let listed: Value = admin
        .get("/platform/v1/credentials")
        .await
        .expect(200)
        .json();
    errors.push(listed.to_string());

    for error in &errors {
        canaries.absent(error, "an answer");
    }
    let log = std::fs::read_to_string(node.log.path()).unwrap();
    assert!(log.contains("served"), "it does log: {log}");
    canaries.absent(&log, "the log");

    // Telemetry that operators receive: spans of everything above, and metrics by both ways.
    let whole = async || {
        let spans = collector.spans();
        let names = [
            "GET /v1/pairing/resolve/{code}",
            "send decision.deliver",
            "hello",
        ];
        let seen = |name: &&str| spans.iter().any(|told| told.span.name == *name);
        let metrics = collector
            .sent()
            .iter()
            .any(|sent| sent.path == "/v1/metrics");
        names.iter().all(seen) && metrics
    };
    until("everything is exported", Duration::from_secs(20), whole).await;
    for sent in collector.sent() {
        canaries.absent(&String::from_utf8_lossy(&sent.body), "what is exported");
    }
    let metrics = get(&node.metrics).await.unwrap();
    let metrics = metrics.text().await.unwrap();
    assert!(metrics.contains("countersign_messages_sent_total"));
    canaries.absent(&metrics, "the metrics");
}
