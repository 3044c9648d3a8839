//! Channels as server-sent events. Pages are read from the database as the client reads; there is no queue per client.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use futures_util::StreamExt as _;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_stream::wrappers::ReceiverStream;
use uuid::Uuid;

use super::auth::As;
use super::body::{self, Path};
use super::channel;
use super::error::Refusal;
use super::origin;
use super::relay::EventStream;
use super::reply::Node;
use crate::gateway::caller::{Approver, Enforcer};
use crate::gateway::limit::Kind;
use crate::gateway::{Closing, Feed, Push};
use crate::jitter::jitter;
use crate::protocol::presence::Transport;
use crate::wake::Key;

/// When a client should reconnect. Sent first, so that proxies forward the response at once.
pub const RETRY: &str = "retry: 2000\n\n";
/// Keepalives. A comment says that nothing will come for now.
const PING: &str = "event: ping\ndata:\n\n";
const PING_CUT_OFF: &str = ": the database is unavailable\nevent: ping\ndata:\n\n";
/// Pause after the database was unavailable.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// `GET /v1/sse/approvers/{approverId}`.
pub async fn approver(
    State(node): State<Node>,
    As(caller): As<Approver>,
    Path(approver): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    origin::check(&node, &headers)?;
    let approver = caller.acting(Some(body::path_id("approverId", &approver)?), "approverId")?;
    node.gateway
        .limiter
        .admit(Kind::Connect, &caller.origin, Some(approver.as_str()))?;
    let key = Key::Approver(caller.origin.tenant.clone(), approver);
    let last = headers
        .get("last-event-id")
        .and_then(|value| value.to_str().ok());
    let resume_after = last.and_then(|id| Uuid::try_parse(id).ok());
    let feed = channel::open(&node, caller.origin, key, Transport::Sse, resume_after).await?;
    Ok(streamed(&node, feed))
}

/// `GET /v1/sse/enforcers/{enforcerId}`.
pub async fn enforcer(
    State(node): State<Node>,
    As(caller): As<Enforcer>,
    Path(enforcer): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    origin::check(&node, &headers)?;
    let enforcer = caller.acting(Some(body::path_id("enforcerId", &enforcer)?), "enforcerId")?;
    node.gateway
        .limiter
        .admit(Kind::Connect, &caller.origin, Some(enforcer.as_str()))?;
    let key = Key::Enforcer(caller.origin.tenant.clone(), enforcer);
    let feed = channel::open(&node, caller.origin, key, Transport::Sse, None).await?;
    Ok(streamed(&node, feed))
}

/// Feeds a stream. It runs beside the connection, so that a client that does not read cannot keep its channel.
struct StreamWriter {
    feed: Feed,
    /// Boxed, because the queue allocates a block of 32.
    sender: mpsc::Sender<Box<Bytes>>,
    ping_every: Duration,
    send_timeout: Duration,
}

fn streamed(node: &Node, feed: Feed) -> Response {
    let push = &node.context.config.push;
    // At most one page waits for the client; the rest stays in the database.
    let (sender, receiver) = mpsc::channel(1);
    let writer = StreamWriter {
        feed,
        sender,
        ping_every: Duration::from_secs(push.sse_ping_seconds),
        send_timeout: Duration::from_secs(push.send_timeout_seconds),
    };
    node.tasks.spawn(writer.run());
    let body = ReceiverStream::new(receiver).map(|bytes: Box<Bytes>| Ok::<_, Infallible>(*bytes));
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // hyper adds none to a stream that `relay` takes over.
    let date = httpdate::fmt_http_date(node.context.clock.now().inner().into());
    if let Ok(date) = HeaderValue::try_from(date) {
        headers.insert(header::DATE, date);
    }
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response.extensions_mut().insert(EventStream);
    response
}

impl StreamWriter {
    async fn run(mut self) {
        let mut next_ping = Instant::now() + jitter(self.ping_every);
        if !self.send(Bytes::from_static(RETRY.as_bytes())).await {
            return;
        }
        loop {
            let ready = {
                let (closing, ready) = self.feed.closed_or_ready();
                // In this order: a channel that is to be closed sends nothing more, and pings are sent even if every page
                // fails.
                tokio::select! {
                    biased;
                    closing = closing => return self.feed.channel().note_closing(closing),
                    () = self.sender.closed() => return,
                    () = sleep_until(next_ping) => false,
                    () = ready => true,
                }
            };
            let mut page = Vec::new();
            let bytes = if ready {
                match self.feed.next_page().await {
                    Ok(found) if found.is_empty() => continue,
                    Ok(found) => {
                        page = found;
                        page.iter_mut().map(event).collect::<String>().into()
                    }
                    Err(error) => {
                        tracing::debug!(%error, "the next page of a stream could not be read; retrying");
                        sleep(jitter(RETRY_AFTER)).await;
                        continue;
                    }
                }
            } else {
                next_ping = Instant::now() + jitter(self.ping_every);
                let cut_off = self.feed.channel().is_cut_off();
                Bytes::from_static(if cut_off { PING_CUT_OFF } else { PING }.as_bytes())
            };
            if !self.send(bytes).await {
                return;
            }
            for push in &page {
                self.feed.note_written(push);
            }
        }
    }

    /// Passes bytes to the connection. False if it is gone or too slow; the client catches up when it reconnects.
    async fn send(&self, bytes: Bytes) -> bool {
        let Ok(sent) = timeout(self.send_timeout, self.sender.send(Box::new(bytes))).await else {
            self.feed.channel().note_closing(Closing::Slow);
            return false;
        };
        sent.is_ok()
    }
}

/// One message as an event. Its text is moved out, so that a page is not held twice. An event cannot carry a carriage
/// return: one between JSON tokens becomes a line feed.
fn event(push: &mut Push) -> String {
    let envelope = std::mem::take(&mut push.text);
    let mut text = format!("id: {}\nevent: {}\n", push.message_id, push.msg_type);
    for line in envelope.replace("\r\n", "\n").split(['\n', '\r']) {
        text.extend(["data: ", line, "\n"]);
    }
    text.push('\n');
    text
}
