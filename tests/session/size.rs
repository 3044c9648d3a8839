//! How much a session event may hold.

use serde_json::{Value, json};

use super::{FRAMES, Frame, hashed, read, report, snapshot, start};
use crate::support::{Cluster, raw, request_id};

const MIB: usize = 1 << 20;

/// A snapshot whose payload's text has this many bytes.
fn snapshot_of(bytes: usize) -> Value {
    let mut event = snapshot(&request_id(), "s", 0);
    event["payload"] = json!({ "t": "x".repeat(bytes - r#"{"t":""}"#.len()) });
    hashed(event)
}

#[tokio::test(flavor = "multi_thread")]
async fn five_mebibytes_of_snapshot_pass_and_a_byte_more_does_not() {
    let cluster = Cluster::start(2).await;
    let agent = cluster.enforcer("build-bot").await.client;
    for frame in FRAMES {
        let full = frame.wrap(&snapshot_of(5 * MIB), "build-bot");
        report(&agent, &full).await.expect(202);
        let over = frame.wrap(&snapshot_of(5 * MIB + 1), "build-bot");
        let answer = report(&agent, &over).await;
        let answer = answer.refused_at(413, "TOO_LARGE", &frame.at("/payload"));
        assert_eq!(answer.detail("limit"), 5 * MIB);
    }
    let stored = "select count(*) from session_snapshots where octet_length(body -> 'payload' ->> 't') > 5000000";
    assert_eq!(cluster.database.number(stored).await, 3);

    let head = |length: &str| {
        format!(
            "POST /v1/session/event HTTP/1.1\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n{length}",
            agent.key()
        )
    };
    let limit = 5 * MIB + (64 << 10);
    for length in [limit + 1, 1 << 40] {
        let head = head(&format!("content-length: {length}"));
        let refused = raw::send(agent.url(0), &head, b"").await;
        assert_eq!(refused.refused(413, "TOO_LARGE").detail("limit"), limit);
    }
    let mut chunk = format!("{:x}\r\n", limit + 1).into_bytes();
    chunk.resize(chunk.len() + limit + 1, b' ');
    let refused = raw::send(agent.url(0), &head("transfer-encoding: chunked"), &chunk).await;
    assert_eq!(refused.refused(413, "TOO_LARGE").detail("limit"), limit);
    let mut chunk = format!("{limit:x}\r\n").into_bytes();
    chunk.resize(chunk.len() + limit, b' ');
    chunk.extend(b"\r\n0\r\n\r\n");
    let refused = raw::send(agent.url(0), &head("transfer-encoding: chunked"), &chunk).await;
    refused.refused(400, "MALFORMED_JSON");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_surrounds_a_payload_and_other_events_have_limits_of_their_own() {
    let cluster = Cluster::with(2, |config| {
        config.limits.snapshot_bytes = 2_000;
        config.limits.envelope_bytes = 1_000;
        config.limits.body_bytes = 1_500;
    })
    .await;
    let agent = cluster.enforcer("build-bot").await.client;
    let padded = |mut message: Value, member: &str, whole: usize| {
        message[member] = json!({ "pad": "" });
        let room = whole - message.to_string().len();
        message[member]["pad"] = json!("x".repeat(room));
        message
    };
    for (whole, status) in [(3_000, 202), (3_001, 413)] {
        let message = Frame::Wire.wrap(&snapshot_of(1_900), "build-bot");
        let message = padded(message, "trace", whole);
        let answer = report(&agent, &message).await.expect(status);
        if status == 413 {
            assert_eq!(answer.refused(413, "TOO_LARGE").detail("limit"), 3_000);
        }
    }
    for frame in FRAMES {
        for (whole, status) in [(1_500, 202), (1_501, 413)] {
            let session = request_id();
            let around = frame.wrap(&start(&session, 0), "build-bot").to_string();
            let within = start(&session, 0).to_string();
            let event = padded(
                start(&session, 0),
                "metadata",
                whole + within.len() - around.len(),
            );
            let message = around.replace(&within, &event.to_string());
            let message: Value = serde_json::from_str(&message).unwrap();
            assert_eq!(message.to_string().len(), whole);
            let answer = report(&agent, &message).await.expect(status);
            if status == 413 {
                assert_eq!(answer.refused(413, "TOO_LARGE").detail("limit"), 1_500);
                read(&agent, &session).await.refused(404, "NOT_FOUND");
            }
        }
    }
}
