//! Calls over a WebSocket: the same use cases and answers as REST, each naming the frame it
//! answers.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use super::{approver_socket, enforcer_socket, scene};
use crate::support::push::{PATIENCE, Socket};
use crate::support::scrape::scrape;
use crate::support::{
    Cluster, Enforcer, compact, envelope, in_time, now, request_id, sealed, until, with,
};

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
async fn a_submission_with_an_old_created_at_is_accepted_with_a_warning() {
    let (cluster, enforcer, _) = scene(1).await;
    let mut agent = enforcer_socket(&cluster, 0, &enforcer).await;
    let old = |request: &str, age: i64| {
        let call = enforcer.submission(request, "alice", sealed());
        with(&call, "/createdAt", json!(in_time(-age)))
    };
    for (age, warned) in [
        (60, false),
        (86_000, false),
        (87_000, true),
        (200_000_000, true),
    ] {
        let accepted = ask(&mut agent, old(&request_id(), age)).await;
        assert_eq!(accepted["msgType"], "artifact.accepted", "{age}");
        let warning = &accepted["trace"]["warning"];
        assert_eq!(warning.is_string(), warned, "{age}: {warning}");
        let call = old(&request_id(), age);
        let answer = enforcer
            .client
            .post("/v1/artifacts", &call)
            .await
            .expect(202);
        let warning = answer.header("countersign-warning");
        assert_eq!(
            warning.is_some_and(|text| text.contains("createdAt")),
            warned,
            "{age}"
        );
        let call = old(&request_id(), age);
        let answer = enforcer
            .client
            .post("/v1/artifact", &call)
            .await
            .expect(202);
        assert_eq!(answer.header("countersign-warning"), warning, "{age}");
    }
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
    assert!(ended_for(&cluster, "too_big", 1.0).await);
    // Nor is it taken in parts.
    let mut human = approver_socket(&cluster, 0, &approver).await;
    human.send_raw(part(200 << 10, Data::Text)).await;
    human.send_raw(part(100 << 10, Data::Continue)).await;
    assert_eq!(human.closed().await, 1009);
    let mut agent = enforcer_socket(&cluster, 0, &enforcer).await;
    agent.send_raw(Message::text(" ".repeat(300 << 10))).await;
    assert_eq!(
        agent.expect().await["msgType"],
        "error",
        "an enforcer's frames may be as large as a submission"
    );
}

/// A stream that writes a few bytes at a time, so that frames arrive in every way they can be torn.
struct Torn {
    stream: TcpStream,
    most: usize,
}

impl AsyncRead for Torn {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Torn {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let most = self.most.min(bytes.len());
        self.most = self.most % 23 + 1;
        Pin::new(&mut self.stream).poll_write(cx, &bytes[..most])
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Asks over a socket with a frame of about this size, and sees it come out at the other end as it
/// was.
async fn passes<S: AsyncRead + AsyncWrite + Unpin>(
    (enforcer, asking): (&Enforcer, &mut Socket<S>),
    asked: &mut Socket,
    bytes: usize,
) {
    let request = request_id();
    // Text whose characters end anywhere between the pieces that it may be sent in.
    let label: String = "aé€😀"
        .chars()
        .cycle()
        .take(bytes.min(20_000) / 3)
        .collect();
    let body = with(&sealed(), "/ciphertext/data", json!("x".repeat(bytes)));
    let body = with(&body, "/metadata", json!({ "label": label }));
    let call = enforcer.submission(&request, "alice", body.clone());
    asking.send_raw(Message::Ping("before".into())).await;
    asking.send(&call).await;
    asking.send_raw(Message::Ping("after".into())).await;
    assert_eq!(asking.expect().await["msgType"], "artifact.accepted");
    let pushed = asked.expect().await;
    assert_eq!(pushed["requestId"], request.as_str());
    assert_eq!(pushed["body"]["ciphertext"], body["ciphertext"]);
    assert_eq!(pushed["body"]["metadata"], body["metadata"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_of_any_size_arrives_as_it_was_however_it_is_torn() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let approver = cluster.approver("alice").await;
    let mut human = approver_socket(&cluster, 0, &approver).await;
    let mut agent = enforcer_socket(&cluster, 0, &enforcer).await;
    for bytes in [1, 3_000, 4_096, 8_190, 20_000, 40_000, 65_536, 1_200_000] {
        passes((&enforcer, &mut agent), &mut human, bytes).await;
    }
    let address = cluster.nodes[0].url.replace("http://", "");
    let stream = TcpStream::connect(&address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let torn = Torn { stream, most: 1 };
    let key = enforcer.client.key();
    let mut agent = Socket::over_with(torn, "enforcer", "build-bot", key).await;
    let agent = agent.as_mut().unwrap();
    for bytes in [1, 50, 2_700, 2_720, 8_000, 50_000] {
        passes((&enforcer, agent), &mut human, bytes).await;
    }
}

/// A frame that begins a message, or goes on with it, and does not end it.
fn part(bytes: usize, opcode: Data) -> Message {
    let frame = Frame::message(vec![b' '; bytes], OpCode::Data(opcode), false);
    Message::Frame(frame)
}

/// Whether the node has ended so many channels for a reason.
async fn ended_for(cluster: &Cluster, reason: &str, times: f64) -> bool {
    let scrape = scrape(&cluster.nodes[0].metrics).await;
    let name = "countersign_channels_closed_total";
    (scrape.count(name, &[("reason", reason)]) - times).abs() < 0.5
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_does_not_end_is_not_waited_for() {
    let cluster = Cluster::with(1, |config| config.server.body_timeout_seconds = 3).await;
    let enforcer = cluster.enforcer("build-bot").await;
    // A beginning, and then control frames alone: the peer is alive, and its message never whole.
    for (times, bytes) in [(1.0, 200 << 10), (2.0, 20)] {
        let mut agent = enforcer_socket(&cluster, 0, &enforcer).await;
        agent.send_raw(part(bytes, Data::Text)).await;
        agent.send_raw(Message::Ping("so far".into())).await;
        assert_eq!(agent.closed().await, 1008, "{bytes} bytes");
        assert!(ended_for(&cluster, "unfinished", times).await);
    }
    // One that comes in time may take as many frames as it likes, and as many may follow it.
    let mut agent = enforcer_socket(&cluster, 0, &enforcer).await;
    for _ in 0..3 {
        let text = enforcer
            .submission(&request_id(), "alice", sealed())
            .to_string();
        let (head, tail) = text.split_at(text.len() / 2);
        let head = Frame::message(head.to_owned(), OpCode::Data(Data::Text), false);
        agent.send_raw(Message::Frame(head)).await;
        agent.send_raw(Message::Ping("so far".into())).await;
        let waited = agent.is_silent(Duration::from_millis(1_500)).await;
        assert!(waited, "it is waited for");
        let tail = Frame::message(tail.to_owned(), OpCode::Data(Data::Continue), true);
        agent.send_raw(Message::Frame(tail)).await;
        assert_eq!(agent.expect().await["msgType"], "artifact.accepted");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn large_messages_share_one_room_with_all_that_is_large() {
    let cluster = Cluster::with(1, |config| {
        config.limits.artifact_bytes = 900 << 10;
        config.limits.snapshot_bytes = 900 << 10;
        config.limits.page_bytes = 32 << 10;
        config.limits.body_memory_bytes = 1 << 20;
    })
    .await;
    let enforcer = cluster.enforcer("build-bot").await;
    let taken = async || {
        let scrape = scrape(&cluster.nodes[0].metrics).await;
        scrape.count("countersign_body_memory_bytes", &[])
    };
    let mut first = enforcer_socket(&cluster, 0, &enforcer).await;
    first.send_raw(part(600 << 10, Data::Text)).await;
    until("the first has its room", PATIENCE, async || {
        taken().await > 500_000.0
    })
    .await;
    // Neither a message that is not whole nor one that is gets what another has.
    let mut second = enforcer_socket(&cluster, 0, &enforcer).await;
    second.send_raw(part(700 << 10, Data::Text)).await;
    assert_eq!(second.closed().await, 1013);
    let mut third = enforcer_socket(&cluster, 0, &enforcer).await;
    third.send_raw(Message::text(" ".repeat(700 << 10))).await;
    assert_eq!(third.closed().await, 1013);
    assert!(ended_for(&cluster, "full", 2.0).await);
    // The first is answered, and gives it back.
    let end = Frame::message(vec![b' '; 8], OpCode::Data(Data::Continue), true);
    first.send_raw(Message::Frame(end)).await;
    assert_eq!(first.expect().await["msgType"], "error", "it is no JSON");
    until("the room is free again", PATIENCE, async || {
        taken().await == 0.0
    })
    .await;
    let mut fourth = enforcer_socket(&cluster, 0, &enforcer).await;
    fourth.send_raw(Message::text(" ".repeat(700 << 10))).await;
    assert_eq!(fourth.expect().await["msgType"], "error", "it is no JSON");
}
