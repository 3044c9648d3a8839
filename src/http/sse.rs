//! Channels as server-sent events: pages pulled from the database as the client reads, never a queue per client.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use futures_util::stream;
use tokio::time::{Instant, sleep, sleep_until};
use uuid::Uuid;

use super::auth::As;
use super::body::{self, Path};
use super::error::Refusal;
use super::reply::Node;
use super::ws::check_origin;
use crate::gateway::caller::{Approver, Enforcer};
use crate::gateway::{Feed, Push};
use crate::jitter::jitter;
use crate::store::channel::Transport;
use crate::wake::Key;

/// How soon a client should come back; also the first bytes of a stream, so that proxies let it through at once.
const RETRY: &str = "retry: 2000\n\n";
/// How long a stream waits before it asks a database that was away again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// `GET /v1/sse/approvers/{approverId}`.
pub async fn approver(
    State(node): State<Node>,
    As(caller): As<Approver>,
    Path(approver): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    check_origin(&node, &headers)?;
    let approver = caller.acting(Some(body::path_id("approverId", &approver)?), "approverId")?;
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
    check_origin(&node, &headers)?;
    let enforcer = caller.acting(Some(body::path_id("enforcerId", &enforcer)?), "enforcerId")?;
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

/// A stream under way.
struct Stream {
    feed: Feed,
    ping_every: Duration,
    next_ping: Instant,
    begun: bool,
}

fn streamed(node: &Node, feed: Feed) -> Response {
    let ping_every = Duration::from_secs(node.gateway.config.push.sse_ping_seconds);
    let stream = Stream {
        feed,
        ping_every,
        next_ping: Instant::now() + jitter(ping_every),
        begun: false,
    };
    let body = stream::unfold(stream, async |mut stream| {
        let bytes = stream.next().await?;
        Some((Ok::<_, Infallible>(bytes), stream))
    });
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

impl Stream {
    /// The next bytes; none once the gateway ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.begun, true) {
            return Some(Bytes::from_static(RETRY.as_bytes()));
        }
        loop {
            // Which of these it was, borrowed from nothing: the feed is needed again right below.
            let ready = {
                let Self {
                    feed, next_ping, ..
                } = self;
                let (channel_closed, ready) = feed.closed_or_ready();
                tokio::select! {
                    _ = channel_closed => return None,
                    () = ready => true,
                    () = sleep_until(*next_ping) => false,
                }
            };
            if !ready {
                self.next_ping = Instant::now() + jitter(self.ping_every);
                return Some(Bytes::from_static(b"event: ping\ndata:\n\n"));
            }
            match self.feed.next_page().await {
                Ok(page) if page.is_empty() => {}
                Ok(page) => return Some(page.iter().map(event).collect::<String>().into()),
                Err(error) => {
                    tracing::debug!(%error, "a stream could not be fed and will be tried again");
                    sleep(jitter(ASK_AGAIN)).await;
                }
            }
        }
    }
}

/// One message as an event. A raw carriage return cannot travel in one: between tokens it arrives as a line feed.
fn event(push: &Push) -> String {
    let mut text = format!("id: {}\nevent: {}\n", push.message_id, push.msg_type);
    for line in push.text.replace("\r\n", "\n").split(['\n', '\r']) {
        text.extend(["data: ", line, "\n"]);
    }
    text.push('\n');
    text
}
