//! Channels as server-sent events: pages pulled from the database as the client reads, never a queue per client.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use futures_util::stream;
use time::macros::format_description;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use uuid::Uuid;

use super::auth::As;
use super::body::{self, Path};
use super::error::Refusal;
use super::origin;
use super::relay::EventStream;
use super::reply::Node;
use crate::gateway::caller::{Approver, Enforcer};
use crate::gateway::limit::Kind;
use crate::gateway::{Closing, Feed, Push};
use crate::jitter::jitter;
use crate::protocol::presence::Transport;
use crate::protocol::timestamp::Timestamp;
use crate::wake::Key;

/// How soon a client should come back; also the first bytes of a stream, so that proxies let it through at once.
pub const RETRY: &str = "retry: 2000\n\n";
/// How long a stream waits before it asks a database that was away again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

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
        .admit(Kind::Connect, &caller.origin, Some(approver.as_str()))?;
    let key = Key::Approver(caller.origin.tenant.clone(), approver);
    let last = headers
        .get("last-event-id")
        .and_then(|value| value.to_str().ok());
    let resume_after = last.and_then(|id| Uuid::try_parse(id).ok());
    let gateway = node.gateway.clone();
    let feed = node
        .finish(async move {
            let channel = gateway
                .open_channel(&caller.origin, key, Transport::Sse)
                .await?;
            Feed::approver(&gateway, channel, false, resume_after).await
        })
        .await?;
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
        .admit(Kind::Connect, &caller.origin, Some(enforcer.as_str()))?;
    let key = Key::Enforcer(caller.origin.tenant.clone(), enforcer);
    let gateway = node.gateway.clone();
    let feed = node
        .finish(async move {
            let channel = gateway
                .open_channel(&caller.origin, key, Transport::Sse)
                .await?;
            Feed::enforcer(&gateway, channel)
        })
        .await?;
    Ok(streamed(&node, feed))
}

/// A stream under way. It runs beside the connection, so that a client that does not read cannot keep its channel.
struct Pump {
    feed: Feed,
    /// Boxed: the queue keeps room for a block of them.
    sender: mpsc::Sender<Box<Bytes>>,
    ping_every: Duration,
    time_limit: Duration,
}

fn streamed(node: &Node, feed: Feed) -> Response {
    let push = &node.gateway.config.push;
    // One page at most waits for the client; the rest stays in the database.
    let (sender, receiver) = mpsc::channel(1);
    let pump = Pump {
        feed,
        sender,
        ping_every: Duration::from_secs(push.sse_ping_seconds),
        time_limit: Duration::from_secs(push.send_timeout_seconds),
    };
    node.tasks.spawn(pump.run());
    let body = stream::unfold(receiver, async |mut receiver| {
        let bytes = receiver.recv().await?;
        Some((Ok::<_, Infallible>(*bytes), receiver))
    });
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Where the stream is taken over from the protocol library, nobody else adds it.
    if let Some(date) = date(node.gateway.clock.now()) {
        headers.insert(header::DATE, date);
    }
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response.extensions_mut().insert(EventStream);
    response
}

fn date(now: Timestamp) -> Option<HeaderValue> {
    let format = format_description!(
        "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
    );
    let text = now.inner().format(format).ok()?;
    HeaderValue::from_str(&text).ok()
}

impl Pump {
    /// Feeds the stream until either side ends it.
    async fn run(mut self) {
        let mut next_ping = Instant::now() + jitter(self.ping_every);
        if !self.send(Bytes::from_static(RETRY.as_bytes())).await {
            return;
        }
        loop {
            let ready = {
                let (closing, ready) = self.feed.closed_or_ready();
                tokio::select! {
                    closing = closing => return self.feed.channel().note_closing(closing),
                    () = self.sender.closed() => return,
                    () = ready => true,
                    () = sleep_until(next_ping) => false,
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
                        tracing::debug!(%error, "a stream could not be fed and will be tried again");
                        sleep(jitter(ASK_AGAIN)).await;
                        continue;
                    }
                }
            } else {
                next_ping = Instant::now() + jitter(self.ping_every);
                Bytes::from_static(b"event: ping\ndata:\n\n")
            };
            if !self.send(bytes).await {
                return;
            }
            for push in &page {
                self.feed.note_written(push);
            }
        }
    }

    /// Hands bytes to the connection. False if it is gone, or does not take them in time: it catches up when it is back.
    async fn send(&self, bytes: Bytes) -> bool {
        let Ok(sent) = timeout(self.time_limit, self.sender.send(Box::new(bytes))).await else {
            self.feed.channel().note_closing(Closing::Slow);
            return false;
        };
        sent.is_ok()
    }
}

/// One message as an event, its text taken: a page is large enough once. A raw carriage return cannot travel in one: between tokens it arrives as a line feed.
fn event(push: &mut Push) -> String {
    let envelope = std::mem::take(&mut push.text);
    let mut text = format!("id: {}\nevent: {}\n", push.message_id, push.msg_type);
    for line in envelope.replace("\r\n", "\n").split(['\n', '\r']) {
        text.extend(["data: ", line, "\n"]);
    }
    text.push('\n');
    text
}
