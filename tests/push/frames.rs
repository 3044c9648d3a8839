//! Calls over a WebSocket: the same use cases and answers as REST, each naming the frame it answers.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use super::{approver_socket, enforcer_socket, scene};
use crate::support::push::Socket;
use crate::support::{Cluster, compact, envelope, now, request_id, sealed};

/// Sends an envelope with a `msgId` and returns the answer, which must name it.
async fn ask(socket: &mut Socket, mut call: Value) -> Value {
    let id = request_id();
    call["msgId"] = json!(id);
    socket.send(&call).await;
    loop {
        let answer = socket.expect().await;
        if answer["trace"]["inReplyTo"] == id.as_str() {
            return answer;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_exchange_runs_over_two_sockets_on_two_nodes() {
    let (cluster, enforcer, approver) = scene(2).await;
    let mut agent = enforcer_socket(&cluster, 0, &enforcer).await;
    let mut human = approver_socket(&cluster, 1, &approver).await;
    let capabilities = json!({ "push": true, "poll": false, "sse": false });
    agent
        .send(&json!({ "msgType": "hello", "capabilities": capabilities, "workspaceName": "w" }))
        .await;
    let request = request_id();
    let accepted = ask(&mut agent, enforcer.submission(&request, "alice", sealed())).await;
    assert_eq!(
        (&accepted["msgType"], &accepted["body"]["duplicate"]),
        (&json!("artifact.accepted"), &json!(false))
    );
    let pushed = human.expect_type("approval.request").await;
    let ack = json!({ "msgId": pushed["msgId"], "status": "received", "ackAt": now() });
    let acked = ask(&mut human, envelope("ack.submit", &request, json!({}), ack)).await;
    assert_eq!(acked["msgType"], "ack.accepted");
    let decided = ask(&mut human, approver.decision(&request, compact("approve"))).await;
    assert_eq!(decided["msgType"], "decision.accepted");
    let delivered = agent.expect_type("decision.deliver").await;
    let ack = json!({ "msgId": delivered["msgId"], "status": "processed", "ackAt": now() });
    ask(&mut agent, envelope("ack.submit", &request, json!({}), ack)).await;
    assert_eq!(enforcer.state(&request).await, "delivered");
    let again = ask(&mut human, approver.decision(&request, compact("reject"))).await;
    assert_eq!(again["msgType"], "error");
    assert_eq!(again["body"]["code"], "PROTO_ERR_ALREADY_DECIDED");
    assert_eq!(again["requestId"], request.as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_frame_is_answered_with_an_error_and_the_channel_stays() {
    let (cluster, enforcer, approver) = scene(1).await;
    let mut agent = enforcer_socket(&cluster, 0, &enforcer).await;
    for (frame, code) in [
        (Message::text("{"), "MALFORMED_JSON"),
        (Message::text("[]"), "VALIDATION"),
        (Message::binary(b"\xff\xfe".to_vec()), "MALFORMED_JSON"),
        (
            Message::text("{\"msgType\":\"a\",\"msgType\":\"b\"}"),
            "CANONICALIZATION",
        ),
        (Message::text("{\"msgType\":\"no.such\"}"), "VALIDATION"),
        (
            Message::text("{\"msgType\":\"hello\",\"capabilities\":{\"push\":\"yes\"}}"),
            "VALIDATION",
        ),
        (
            Message::text(approver.decision("x", compact("approve")).to_string()),
            "FORBIDDEN",
        ),
    ] {
        agent.send_raw(frame.clone()).await;
        let answer = agent.expect().await;
        assert_eq!(answer["msgType"], "error", "{frame:?}");
        assert_eq!(
            answer["body"]["code"],
            format!("PROTO_ERR_{code}"),
            "{frame:?}"
        );
    }
    let request = request_id();
    let binary = enforcer
        .submission(&request, "alice", sealed())
        .to_string()
        .into_bytes();
    agent.send_raw(Message::binary(binary)).await;
    assert_eq!(
        agent.expect().await["msgType"],
        "artifact.accepted",
        "a binary frame is read like a text frame"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_over_the_limit_ends_the_channel() {
    let (cluster, enforcer, approver) = scene(1).await;
    let mut human = approver_socket(&cluster, 0, &approver).await;
    human.send_raw(Message::text("x".repeat(300 << 10))).await;
    assert_eq!(human.closed().await, 1009);
    let mut agent = enforcer_socket(&cluster, 0, &enforcer).await;
    agent.send_raw(Message::text(" ".repeat(300 << 10))).await;
    assert_eq!(
        agent.expect().await["msgType"],
        "error",
        "an enforcer's frames may be as large as a submission"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_does_not_end_is_not_waited_for() {
    let cluster = Cluster::with(1, |config| {
        config.push.ping_seconds = 1;
        config.server.body_timeout_seconds = 2;
    })
    .await;
    let enforcer = cluster.enforcer("build-bot").await;
    let mut agent = enforcer_socket(&cluster, 0, &enforcer).await;
    // A large beginning, and then control frames alone: the peer is alive, and its message never whole.
    let beginning = Frame::message(vec![b' '; 200 << 10], OpCode::Data(Data::Text), false);
    agent.send_raw(Message::Frame(beginning)).await;
    assert_eq!(agent.closed().await, 1008);
    // One that is small, or comes in time, may take as many frames as it likes.
    let mut agent = enforcer_socket(&cluster, 0, &enforcer).await;
    let text = enforcer
        .submission(&request_id(), "alice", sealed())
        .to_string();
    let (head, tail) = text.split_at(text.len() / 2);
    let head = Frame::message(head.to_owned(), OpCode::Data(Data::Text), false);
    agent.send_raw(Message::Frame(head)).await;
    let waited = agent.is_silent(std::time::Duration::from_secs(4)).await;
    assert!(waited, "it is waited for");
    let tail = Frame::message(tail.to_owned(), OpCode::Data(Data::Continue), true);
    agent.send_raw(Message::Frame(tail)).await;
    assert_eq!(agent.expect().await["msgType"], "artifact.accepted");
}
