//! The bare event, the core Envelope and the wire Envelope: the same session, if they are what they
//! say.

use serde_json::json;

use super::shape::{events, fresh, send};
use super::{FRAMES, Frame, at, end, outcome, report, seen, snapshot, start, status};
use crate::support::{Cluster, in_time, request_id, with};

#[tokio::test(flavor = "multi_thread")]
async fn every_framing_gives_the_same_session() {
    let cluster = Cluster::start(2).await;
    let agent = cluster.enforcer("build-bot").await.client;
    let mut sessions = Vec::new();
    for frame in FRAMES {
        // Outside its framing, the event is the same: ids are unlike, hashes are not compared.
        let id = request_id();
        let mut answers = Vec::new();
        for event in [
            start(&id, 0),
            status(&id, "editing", 5),
            snapshot(&id, "s", 6),
            snapshot(&id, "s", 6),
            end(&id, 9),
            start(&id, 10),
        ] {
            let answer = report(&agent, &frame.wrap(&event, "build-bot")).await;
            answers.push(outcome(&answer));
        }
        let mut session = seen(&agent, &id).await;
        assert_eq!(session["sessionId"], id);
        session["sessionId"] = json!(null);
        session["snapshots"][0]["snapshotHash"] = json!(null);
        sessions.push((answers, session));
    }
    let expected = [
        "202",
        "202",
        "202",
        "202 duplicate",
        "202",
        "409 SESSION_CLOSED",
    ];
    for (answers, session) in &sessions {
        assert_eq!(answers, &expected);
        assert_eq!(session, &sessions[0].1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_must_say_what_it_carries() {
    let cluster = Cluster::start(2).await;
    let agent = cluster.enforcer("build-bot").await;
    let kinds = [
        "session.start",
        "session.snapshot",
        "session.status",
        "session.end",
    ];
    for event in events() {
        for frame in [Frame::Core, Frame::Wire] {
            for kind in kinds {
                let answer = send(&agent, frame, kind, &fresh(&event)).await;
                if event["eventType"] == kind {
                    answer.expect(202);
                } else {
                    answer.refused_at(400, "VALIDATION", "/body/eventType");
                }
            }
            for kind in ["session.pause", "artifact.submit", "SESSION.START", ""] {
                send(&agent, frame, kind, &event)
                    .await
                    .refused_at(400, "VALIDATION", "/msgType");
            }
            let mut early = frame.wrap(&event, "build-bot");
            early["createdAt"] = json!(in_time(90));
            report(&agent.client, &early)
                .await
                .refused_at(400, "TIMESTAMP", "/createdAt");
            let mut more = frame.wrap(&event, "build-bot");
            more["x"] = json!(1);
            report(&agent.client, &more)
                .await
                .refused_at(400, "VALIDATION", "/x");
        }
        for bad in ["session.pause", "session.Start", ""] {
            report(&agent.client, &with(&event, "/eventType", json!(bad)))
                .await
                .refused_at(400, "VALIDATION", "/eventType");
        }
    }
    // A bare object that is no event is told so, no matter what else is missing.
    for nothing in [
        json!({}),
        json!({ "state": "idle" }),
        json!({ "eventType": 1 }),
    ] {
        report(&agent.client, &nothing)
            .await
            .refused_at(400, "VALIDATION", "/eventType");
    }
    let answer = report(&agent.client, &json!({ "eventType": "session.end" })).await;
    answer.refused_at(400, "VALIDATION", "/sessionId");
    for nothing in [json!([]), json!("session.end"), json!(null)] {
        let answer = report(&agent.client, &nothing).await;
        answer.refused_at(400, "VALIDATION", "");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_must_be_json_and_say_so() {
    let cluster = Cluster::start(2).await;
    let agent = cluster.enforcer("build-bot").await.client;
    let path = "/v1/session/event";
    let text = start("s", 0).to_string();
    let send = async |kind: Option<&str>, text: &str| {
        let call = agent.call(reqwest::Method::POST, path);
        let call = match kind {
            Some(kind) => call.header("content-type", kind),
            None => call,
        };
        call.bytes(text.as_bytes().to_vec()).send().await
    };
    for kind in [None, Some("text/plain"), Some("application/other+json")] {
        let answer = send(kind, &text)
            .await
            .refused(415, "UNSUPPORTED_MEDIA_TYPE");
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
    for bad in ["", "{", "{\"sessionId\":\"s\",}", &format!("{text}{text}")] {
        send(Some("application/json"), bad)
            .await
            .refused(400, "MALFORMED_JSON");
    }
    let twice = text.replacen('{', "{\"sessionId\":\"t\",", 1);
    send(Some("application/json"), &twice)
        .await
        .refused(400, "CANONICALIZATION");
    let sessions = "select count(*) from sessions";
    assert_eq!(cluster.database.number(sessions).await, 0);
    let answer = send(Some("application/proto+json"), &text).await;
    assert_eq!(outcome(&answer), "202");
    let spelled = text.replace(&at(0), &at(0).replace('Z', "+00:00"));
    let answer = send(Some("application/json"), &spelled).await;
    assert_eq!(
        outcome(&answer),
        "409 ALREADY_EXISTS",
        "another spelling is another event"
    );
    let spaced = text.replace(',', " ,\n");
    let answer = send(Some("application/json"), &spaced).await;
    assert_eq!(
        outcome(&answer),
        "202 duplicate",
        "other white space is the same event"
    );
}
