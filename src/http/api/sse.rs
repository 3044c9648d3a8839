//! Channels as server-sent events. Pages are read as the client reads; it has no queue.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::StreamExt as _;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_stream::wrappers::ReceiverStream;
use uuid::Uuid;

use super::auth::As;
use super::error::HttpResult;
use super::path::PathId;
use super::reply::AppState;
use super::{channel, origin};
use crate::gateway::identity::caller::{Approver, Enforcer, EnforcerOrApprover};
use crate::gateway::{ChannelCloseReason, MessageFeed, PushService};
use crate::http::server::charged_body::HeldBytes;
use crate::http::server::memory::{MemoryAccount, MemoryBudget};
use crate::http::server::relay::EventStream;
use crate::jitter::jitter;
use crate::protocol::presence::Transport;

/// When a client should reconnect. Sent first, so that proxies forward the response at once.
pub const RETRY: &str = "retry: 2000\n\n";
/// Keepalives. A comment says that nothing will come for now.
const PING: &str = "event: ping\ndata:\n\n";
const PING_CUT_OFF: &str = ": the database is unavailable\nevent: ping\ndata:\n\n";
/// Pause after the database was unavailable.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// `GET /v1/sse/approvers/{approverId}`.
pub async fn approver(
    As(node, caller): As<Approver>,
    PathId(id): PathId<String>,
    request: Request,
) -> HttpResult {
    let caller = EnforcerOrApprover::Approver(caller);
    stream(&node, caller, "approverId", &id, request).await
}

/// `GET /v1/sse/enforcers/{enforcerId}`.
pub async fn enforcer(
    As(node, caller): As<Enforcer>,
    PathId(id): PathId<String>,
    request: Request,
) -> HttpResult {
    let caller = EnforcerOrApprover::Enforcer(caller);
    stream(&node, caller, "enforcerId", &id, request).await
}

async fn stream(
    node: &AppState,
    caller: EnforcerOrApprover,
    name: &'static str,
    id: &str,
    request: Request,
) -> HttpResult {
    origin::check(node, &request)?;
    let key = channel::admit(node, &caller, name, id)?;
    let last = request.headers().get("last-event-id");
    let last = last.and_then(|value| value.to_str().ok());
    let resume_after = last.and_then(|id| Uuid::try_parse(id).ok());
    let origin = caller.origin().clone();
    let account = node.memory.account(&origin);
    let feed = channel::open(node, origin, key, Transport::Sse, resume_after).await?;
    Ok(streamed(node, account, feed))
}

/// Feeds a stream beside the connection: a client that does not read cannot keep its channel.
struct StreamWriter {
    feed: MessageFeed,
    memory: Arc<MemoryBudget>,
    account: MemoryAccount,
    /// Boxed, because the queue allocates a block of 32.
    sender: mpsc::Sender<Box<Bytes>>,
    /// Held by the page that the connection writes. The rest stays in the database.
    turn: Arc<Semaphore>,
    /// The connection's side.
    events: EventStream,
    ping_every: Duration,
    send_timeout: Duration,
}

fn streamed(node: &AppState, account: MemoryAccount, feed: MessageFeed) -> Response {
    let push = &node.context.config.push;
    let (sender, receiver) = mpsc::channel(1);
    let events = EventStream::default();
    let writer = StreamWriter {
        feed,
        memory: Arc::clone(&node.memory),
        account,
        sender,
        turn: Arc::new(Semaphore::new(1)),
        events: events.clone(),
        ping_every: Duration::from_secs(push.sse_ping_seconds),
        send_timeout: Duration::from_secs(push.send_timeout_seconds),
    };
    node.tasks.spawn(writer.run());
    let body = ReceiverStream::new(receiver).map(|bytes: Box<Bytes>| Ok::<_, Infallible>(*bytes));
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    let media_type = HeaderValue::from_static("text/event-stream");
    headers.insert(header::CONTENT_TYPE, media_type);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // hyper adds none to a stream that `relay` takes over.
    let date = httpdate::fmt_http_date(node.context.clock.now().inner().into());
    if let Ok(date) = HeaderValue::try_from(date) {
        headers.insert(header::DATE, date);
    }
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response.extensions_mut().insert(events);
    response
}

/// Why a stream ends: its channel is closed, or the connection is gone.
type StreamEnd = Option<ChannelCloseReason>;

impl StreamWriter {
    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn would keep the writer twice"
    )]
    fn run(mut self) -> impl Future<Output = ()> + Send {
        async move {
            if let Err(Some(closing)) = self.write().await {
                self.feed.channel().note_closing(closing);
                // A stopping node waits for its clients. Any other channel is over: what was not read
                // is sent again over the next one, and must not keep memory until then.
                if closing != ChannelCloseReason::Drain {
                    self.events.abort();
                }
            }
        }
    }

    /// Writes until the end. Everything that an idle stream seldom does is boxed, to keep the stream small.
    async fn write(&mut self) -> Result<Infallible, StreamEnd> {
        let mut next_ping = Instant::now() + jitter(self.ping_every);
        Box::pin(self.send(Bytes::from_static(RETRY.as_bytes()))).await?;
        loop {
            let ready = {
                let (closing, ready) = self.feed.closed_or_ready();
                // In this order: a closed channel sends nothing more, and pings are sent in any
                // case.
                tokio::select! {
                    biased;
                    closing = closing => return Err(Some(closing)),
                    () = self.sender.closed() => return Err(None),
                    () = sleep_until(next_ping) => false,
                    () = ready => true,
                }
            };
            if !ready {
                next_ping = Instant::now() + jitter(self.ping_every);
                let cut_off = self.feed.channel().is_cut_off();
                let ping = if cut_off { PING_CUT_OFF } else { PING };
                Box::pin(self.send(Bytes::from_static(ping.as_bytes()))).await?;
                continue;
            }
            Box::pin(self.write_page()).await?;
        }
    }

    async fn write_page(&mut self) -> Result<(), StreamEnd> {
        // A page is read once the last one is written.
        let turn = self.in_time(Arc::clone(&self.turn).acquire_owned());
        let turn = turn.await?.map_err(|_| None)?;
        match channel::next_page(&mut self.feed, &self.memory, self.account).await {
            Ok((page, _)) if page.is_empty() => {}
            Ok((mut page, mut memory)) => {
                let text = events(&mut page);
                memory.set(text.len());
                let bytes = Bytes::from_owner(HeldBytes::new(text, (memory, turn)));
                self.send(bytes).await?;
                for push in &page {
                    self.feed.note_written(push);
                }
            }
            Err(error) => {
                tracing::debug!(%error, "the next page of a stream could not be read; retrying");
                sleep(jitter(RETRY_INTERVAL)).await;
            }
        }
        Ok(())
    }

    /// Passes bytes to the connection.
    async fn send(&self, bytes: Bytes) -> Result<(), StreamEnd> {
        let sent = self.in_time(self.sender.send(Box::new(bytes))).await?;
        sent.map_err(|_| None)
    }

    /// Waits for the client, if it is not too slow. It catches up when it reconnects.
    async fn in_time<T>(&self, waiting: impl Future<Output = T>) -> Result<T, StreamEnd> {
        tokio::select! {
            closing = self.feed.closed() => Err(Some(closing)),
            waited = timeout(self.send_timeout, waiting) => waited.map_err(|_| Some(ChannelCloseReason::Slow)),
        }
    }
}

/// Messages as events. Their texts are moved out, so that a page is not held twice. An event cannot
/// carry a carriage return: one between JSON tokens becomes a line feed.
fn events(page: &mut [PushService]) -> String {
    const FRAMING: usize = 160;
    let size = page.iter().map(|push| push.text.len() + FRAMING).sum();
    let mut text = String::with_capacity(size);
    for push in page {
        let mut envelope = std::mem::take(&mut push.text);
        if envelope.contains('\r') {
            envelope = envelope.replace("\r\n", "\n");
        }
        let (id, kind) = (push.message_id.to_string(), push.msg_type);
        text.extend(["id: ", &id, "\nevent: ", kind, "\n"]);
        for line in envelope.split(['\n', '\r']) {
            text.extend(["data: ", line, "\n"]);
        }
        text.push('\n');
    }
    text
}
