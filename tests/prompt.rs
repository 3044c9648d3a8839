//! Prompts to agents: sent, queued, pushed, acknowledged, expired; in every framing, on every node.

mod life;
mod pending;
mod recipients;
mod schema;

use serde_json::{Value, json};

use crate::support::framing::Framing;
use crate::support::push::{Socket, Stream};
use crate::support::{Answer, Approver, Client, Cluster, Enforcer, hash_of, now, request_id};

/// A prompt with everything that must be there.
fn prompt() -> Value {
    sealed_in(json!({
        "requestId": request_id(),
        "artifactType": "prompt.send",
        "createdAt": now(),
        "target": "agentChat",
        "text": "Please summarise the plan.",
        "promptHashAlg": "SHA-256",
    }))
}

/// A prompt with its hash put right.
fn sealed_in(mut prompt: Value) -> Value {
    prompt["promptHash"] = json!(hash_of(&prompt.to_string(), "promptHash"));
    prompt
}

/// An enforcer's acknowledgement of a prompt.
fn ack(prompt: &Value, status: &str) -> Value {
    json!({
        "requestId": prompt["requestId"], "promptHash": prompt["promptHash"], "status": status, "ackAt": now(),
    })
}

/// A cluster and its two parties.
async fn scene(nodes: usize) -> (Cluster, Enforcer, Approver) {
    let cluster = Cluster::with(nodes, |config| config.push.reoffer_seconds = 1).await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    (cluster, enforcer, approver)
}

/// Sends a prompt to the enforcer, as a wire Envelope.
async fn send(approver: &Approver, prompt: &Value) -> Answer {
    send_to(approver, "build-bot", prompt).await
}

async fn send_to(approver: &Approver, enforcer: &str, prompt: &Value) -> Answer {
    let sender = ("MA", approver.id.as_str());
    let message = Framing::Wire.wrap("prompt.send", sender, Some(("HE", enforcer)), prompt);
    approver.client.post("/v1/prompt", &message).await
}

/// Acknowledges over REST, bare.
async fn acknowledge(enforcer: &Enforcer, prompt: &Value, status: &str) -> Answer {
    enforcer
        .client
        .post("/v1/prompt", &ack(prompt, status))
        .await
}

fn path(prompt: &Value) -> String {
    format!("/v1/prompt/{}", prompt["requestId"].as_str().unwrap())
}

async fn status(client: &Client, prompt: &Value) -> String {
    let answer = client.get(&path(prompt)).await.expect(200);
    answer.json()["status"].as_str().unwrap().to_owned()
}

async fn socket(cluster: &Cluster, node: usize, enforcer: &Enforcer) -> Socket {
    let url = &cluster.nodes[node].url;
    Socket::connect(url, "enforcer", &enforcer.id, enforcer.client.key())
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_reaches_the_agent_byte_for_byte_and_its_fate_the_approver() {
    let (cluster, enforcer, approver) = scene(2).await;
    let mut agent = socket(&cluster, 1, &enforcer).await;
    // Spelled so that any rewriting would show: white space, member order, an escape.
    let id = request_id();
    let bare = format!(
        r#"{{"text" : "caf\u00e9",  "target":"composer","requestId":"{id}","promptHashAlg":"SHA-256","createdAt":"{}","artifactType":"prompt.send","metadata":{{"b":1.0,"a":2}}}}"#,
        now()
    );
    let hash = hash_of(&bare, "promptHash");
    let body = bare.replacen('{', &format!("{{\"promptHash\":\"{hash}\",\n"), 1);
    let message = format!(
        r#"{{"msgType":"prompt.send","requestId":"{id}","createdAt":"{}","sender":{{"approverId":"alice"}},"recipient":{{"enforcerId":"build-bot"}},"trace":{{"traceparent":"00-x"}},"body":{body}}}"#,
        now()
    );
    let queued = approver
        .client
        .on(0)
        .call(reqwest::Method::POST, "/v1/prompt")
        .text(&message)
        .send()
        .await
        .expect(202)
        .json();
    assert_eq!(
        queued,
        json!({ "requestId": id, "promptHash": hash, "status": "queued", "ackAt": queued["ackAt"] })
    );
    let pushed = agent.expect().await;
    assert_eq!(pushed["msgType"], "prompt.send");
    assert_eq!(pushed["requestId"], id.as_str());
    assert_eq!(pushed["createdAt"], queued["ackAt"]);
    assert_eq!(pushed["sender"]["approverId"], "alice");
    assert_eq!(pushed["recipient"], json!({ "enforcerId": "build-bot" }));
    assert_eq!(pushed["trace"], json!({ "traceparent": "00-x" }));
    assert_eq!(
        hash_of(&pushed["body"].to_string(), "promptHash"),
        hash,
        "what was signed is what arrived"
    );
    let stored = "select body::text from prompt_payloads";
    assert_eq!(cluster.database.text(stored).await, body);

    let prompt = pushed["body"].clone();
    let mut answer = ack(&prompt, "delivered");
    answer["details"] = json!({ "window": 3 });
    let mut frame = Framing::Wire.wrap("prompt.ack", ("HE", "build-bot"), None, &answer);
    frame["msgId"] = json!("frame-1");
    agent.send(&frame).await;
    let answered = agent.expect_type("prompt.ack").await;
    assert_eq!(answered["trace"]["inReplyTo"], "frame-1");
    assert_eq!(answered["requestId"], id.as_str());
    assert_eq!(answered["body"]["status"], "delivered");
    let shown = approver.client.get(&path(&prompt)).await.expect(200);
    assert_eq!(shown.json(), answered["body"]);
    assert_eq!(shown.json()["details"], json!({ "window": 3 }));
    assert_eq!(shown.header("content-type"), Some("application/json"));
    let mut later = socket(&cluster, 0, &enforcer).await;
    assert!(
        later
            .is_silent(std::time::Duration::from_millis(1_500))
            .await,
        "what is acknowledged is not offered again"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_framing_is_taken_for_prompts_and_their_acknowledgements() {
    let (cluster, enforcer, approver) = scene(3).await;
    let admin = cluster.admin().await;
    for framing in Framing::ALL {
        for sealed in [false, true] {
            let mut prompt = prompt();
            prompt["metadata"] = json!({ "enforcerId": "build-bot" });
            if sealed {
                prompt.as_object_mut().unwrap().remove("text");
                prompt["ciphertext"] =
                    json!({ "alg": "A256GCM", "data": "c2VhbGVk", "further": [1] });
            }
            let prompt = if sealed { prompt } else { sealed_in(prompt) };
            let message = framing.wrap("prompt.send", ("MA", "alice"), None, &prompt);
            let queued = approver.client.post("/v1/prompt", &message).await;
            assert_eq!(queued.expect(202).json()["status"], "queued");
            for (word, code) in [("queued", 200), ("delivered", 200), ("rejected", 409)] {
                let answer = ack(&prompt, word);
                let message = framing.wrap("prompt.ack", ("HE", "build-bot"), None, &answer);
                let answer = enforcer.client.post("/v1/prompt", &message).await;
                assert_eq!(answer.status, code, "{framing:?} {word}: {answer:?}");
            }
            assert_eq!(status(&admin, &prompt).await, "delivered");
        }
    }
    // An administrator has no id to name.
    let sent = sealed_in(
        json!({ "metadata": { "enforcerId": "build-bot" }, "sessionId": "s", "repoRef": "r" })
            .as_object()
            .unwrap()
            .iter()
            .fold(prompt(), |mut prompt, (name, value)| {
                prompt[name] = value.clone();
                prompt
            }),
    );
    admin.post("/v1/prompt", &sent).await.expect(202);
    enforcer.client.get(&path(&sent)).await.expect(200);
    let answer = approver.client.get(&path(&sent)).await;
    answer.refused(404, "NOT_FOUND");
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_travel_over_event_streams_and_plain_acks_end_their_redelivery() {
    let (cluster, enforcer, approver) = scene(2).await;
    let url = &cluster.nodes[0].url;
    let mut stream = Stream::connect(url, "enforcers", "build-bot", enforcer.client.key(), None)
        .await
        .unwrap();
    let prompt = prompt();
    send(&approver, &prompt).await.expect(202);
    let (event, pushed) = stream.expect().await;
    assert_eq!(event.kind, "prompt.send");
    assert_eq!(pushed["body"], prompt);
    let (_, again) = stream.expect().await;
    assert_eq!(
        again["msgId"], pushed["msgId"],
        "unacknowledged, it comes again"
    );
    let id = prompt["requestId"].as_str().unwrap();
    let answer = enforcer
        .ack(id, pushed["msgId"].as_str().unwrap())
        .await
        .expect(200);
    assert_eq!(answer.json()["requestId"], id);
    assert_eq!(
        cluster
            .database
            .number("select count(*) from messages where kind = 'prompt.send' and acked_at is null")
            .await,
        0
    );
    assert_eq!(
        status(&approver.client, &prompt).await,
        "queued",
        "a receipt is not yet a fate"
    );
    acknowledge(&enforcer, &prompt, "delivered")
        .await
        .expect(200);
}
