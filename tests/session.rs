//! Sessions: what agents report of themselves, on any node, in any framing and order; and who may
//! read it.

mod forgotten;
mod framing;
mod model;
mod order;
mod people;
mod races;
mod shape;
mod size;

use serde_json::{Value, json};

use crate::support::{Answer, Client, Cluster, hash_of, now, request_id};

/// A time, some seconds into an hour long past.
fn at(seconds: usize) -> String {
    format!("2020-02-21T12:{:02}:{:02}Z", seconds / 60, seconds % 60)
}

fn start(session: &str, seconds: usize) -> Value {
    json!({
        "sessionId": session,
        "eventType": "session.start",
        "createdAt": at(seconds),
        "agentHost": "laptop-7",
    })
}

fn status(session: &str, state: &str, seconds: usize) -> Value {
    json!({
        "sessionId": session,
        "eventType": "session.status",
        "state": state,
        "updatedAt": at(seconds),
    })
}

fn snapshot(session: &str, id: &str, seconds: usize) -> Value {
    hashed(json!({
        "sessionId": session,
        "eventType": "session.snapshot",
        "snapshotId": id,
        "snapshotType": "plan",
        "createdAt": at(seconds),
        "payload": { "steps": ["one", "two"] },
        "snapshotHashAlg": "SHA-256",
    }))
}

fn end(session: &str, seconds: usize) -> Value {
    json!({
        "sessionId": session,
        "eventType": "session.end",
        "endedAt": at(seconds),
        "reason": "user_end",
    })
}

/// A snapshot with its hash put right.
fn hashed(mut snapshot: Value) -> Value {
    let members = snapshot.as_object_mut().unwrap();
    members.remove("snapshotHash");
    snapshot["snapshotHash"] = json!(hash_of(&snapshot.to_string(), "snapshotHash"));
    snapshot
}

/// How a client wraps an event.
#[derive(Debug, Clone, Copy)]
enum Frame {
    Bare,
    Core,
    Wire,
}

const FRAMES: [Frame; 3] = [Frame::Bare, Frame::Core, Frame::Wire];

impl Frame {
    /// An event by `enforcer`, wrapped. The type is the event's own, where it has one.
    fn wrap(self, event: &Value, enforcer: &str) -> Value {
        let kind = match &event["eventType"] {
            Value::String(kind) => kind.as_str(),
            _ => "session.start",
        };
        self.wrap_as(kind, event, enforcer)
    }

    fn wrap_as(self, kind: &str, event: &Value, enforcer: &str) -> Value {
        match self {
            Self::Bare => event.clone(),
            Self::Core => json!({
                "envelopeId": request_id(),
                "msgType": kind,
                "sender": { "actor": "HE", "deviceId": enforcer },
                "recipient": { "actor": "GW", "deviceId": "countersign" },
                "createdAt": now(),
                "body": event,
            }),
            // Its requestId is free: there is no exchange.
            Self::Wire => json!({
                "msgType": kind,
                "requestId": request_id(),
                "createdAt": now(),
                "sender": { "enforcerId": enforcer },
                "body": event,
            }),
        }
    }

    /// Where a member of the event stands.
    fn at(self, pointer: &str) -> String {
        match self {
            Self::Bare => pointer.to_owned(),
            Self::Core | Self::Wire => format!("/body{pointer}"),
        }
    }
}

async fn report(client: &Client, event: &Value) -> Answer {
    client.post("/v1/session/event", event).await
}

async fn read(client: &Client, session: &str) -> Answer {
    client.get(&format!("/v1/session/{session}")).await
}

/// A session as its reader sees it.
async fn seen(client: &Client, session: &str) -> Value {
    read(client, session).await.expect(200).json()
}

/// The answer in a few words: `202`, `202 duplicate` or `409 SESSION_CLOSED`.
fn outcome(answer: &Answer) -> String {
    if answer.status < 400 && answer.json()["duplicate"] == true {
        return format!("{} duplicate", answer.status);
    }
    answer.outcome()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_followed_from_its_start_to_its_end() {
    let cluster = Cluster::start(3).await;
    let agent = cluster.enforcer("build-bot").await.client;
    let id = request_id();
    let accepted = |state: &str| json!({ "sessionId": id, "state": state, "duplicate": false });

    let mut first = start(&id, 0);
    first["repoRef"] = json!("repo:acme/widgets");
    first["metadata"] = json!({ "model": "m-1", "n": 1.50 });
    let answer = report(&agent, &first).await.expect(202);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.json(), accepted("idle"));
    let mut expected = json!({
        "sessionId": id,
        "enforcerId": "build-bot",
        "agentHost": "laptop-7",
        "repoRef": "repo:acme/widgets",
        "state": "idle",
        "startedAt": at(0),
        "updatedAt": at(0),
        "metadata": first["metadata"],
        "snapshots": [],
    });
    let answer = read(&agent, &id).await.expect(200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.json(), expected);

    for (seconds, state) in [
        (10, "planning"),
        (20, "waiting_approval"),
        (30, "executing"),
    ] {
        let mut now = status(&id, state, seconds);
        now["details"] = json!({ "step": seconds });
        let answer = report(&agent, &now).await.expect(202);
        assert_eq!(answer.json(), accepted(state));
        expected["state"] = json!(state);
        expected["updatedAt"] = json!(at(seconds));
        assert_eq!(seen(&agent, &id).await, expected);
    }

    for (seconds, name) in [(12, "plan-1"), (32, "diff-1")] {
        let taken = snapshot(&id, name, seconds);
        let answer = report(&agent, &taken).await.expect(202);
        assert_eq!(answer.json(), accepted("executing"));
        let shown = json!({
            "snapshotId": name,
            "snapshotType": "plan",
            "snapshotHash": taken["snapshotHash"],
            "createdAt": at(seconds),
        });
        expected["snapshots"]
            .as_array_mut()
            .unwrap()
            .insert(0, shown);
    }
    expected["updatedAt"] = json!(at(32));
    assert_eq!(seen(&agent, &id).await, expected);

    let mut last = end(&id, 60);
    last["metadata"] = json!({ "not": "shown, the start had some" });
    let answer = report(&agent, &last).await.expect(202);
    assert_eq!(answer.json(), accepted("executing"));
    expected["updatedAt"] = json!(at(60));
    expected["endedAt"] = json!(at(60));
    expected["reason"] = json!("user_end");
    assert_eq!(seen(&agent, &id).await, expected);
    report(&agent, &status(&id, "idle", 70))
        .await
        .refused_at(409, "SESSION_CLOSED", "/sessionId");
    assert_eq!(seen(&agent, &id).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_and_snapshots_keep_their_text() {
    let cluster = Cluster::start(2).await;
    let agent = cluster.enforcer("build-bot").await.client;
    let metadata = "{ \"b\" : 1.50,\t\"a\":[ 1e2 , \"\\u00e9\" ] }";
    let text = start("s", 0)
        .to_string()
        .replacen('{', &format!("{{\"metadata\":{metadata},"), 1);
    let call = agent.call(reqwest::Method::POST, "/v1/session/event");
    call.text(&text).send().await.expect(202);
    let shown = read(&agent, "s").await.expect(200).text;
    assert!(
        shown.contains(&format!("\"metadata\":{metadata},")),
        "{shown}"
    );

    let taken = snapshot("s", "one", 1).to_string().replacen(':', " :\n", 1);
    let wrapped = Frame::Wire.wrap(&snapshot("s", "one", 1), "build-bot");
    let wrapped = wrapped.to_string();
    let inner = serde_json::from_str::<Value>(&wrapped).unwrap()["body"].to_string();
    let call = agent.call(reqwest::Method::POST, "/v1/session/event");
    call.text(&wrapped.replace(&inner, &taken))
        .send()
        .await
        .expect(202);
    let stored = "select body::text from session_snapshots";
    assert_eq!(cluster.database.text(stored).await, taken);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_published_snapshot_is_taken_and_a_changed_one_is_not() {
    let cluster = Cluster::start(2).await;
    let agent = cluster.enforcer("build-bot").await.client;
    let file: Value = serde_json::from_str(include_str!("vectors/hashes.json")).unwrap();
    let rows = file["hashes"].as_array().unwrap();
    let known = rows.iter().find(|row| row["name"] == "snapshot").unwrap();
    let mut event = known["object"].clone();
    event["snapshotHash"] = known["sha256"].clone();
    for frame in FRAMES {
        let mut changed = frame.wrap(&event, "build-bot");
        let pointer = frame.at("/payload/summary");
        *changed.pointer_mut(&pointer).unwrap() = json!("Low risk.");
        report(&agent, &changed)
            .await
            .refused_at(422, "HASH_MISMATCH", &frame.at("/snapshotHash"));
        let mut added = frame.wrap(&event, "build-bot");
        added.pointer_mut(&frame.at("")).unwrap()["metadata"] = json!({});
        report(&agent, &added).await.refused(422, "HASH_MISMATCH");
    }
    let id = event["sessionId"].as_str().unwrap();
    read(&agent, id).await.refused(404, "NOT_FOUND");
    for (frame, expected) in FRAMES
        .into_iter()
        .zip(["202", "202 duplicate", "202 duplicate"])
    {
        let answer = report(&agent, &frame.wrap(&event, "build-bot")).await;
        assert_eq!(outcome(&answer), expected);
    }
    assert_eq!(
        seen(&agent, id).await["snapshots"][0]["snapshotHash"],
        known["sha256"]
    );
}
