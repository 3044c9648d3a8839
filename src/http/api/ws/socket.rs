//! Runs an open WebSocket: sends pages, answers frames one by one, and closes with a reason.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Bytes;
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, interval_at, sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::frame_splitter::FrameSplitter;
use super::partial_message::{PartialEvent, PartialMessage};
use crate::gateway::identity::caller::EnforcerOrApprover;
use crate::gateway::{ChannelCloseReason, MessageFeed};
use crate::http::api::channel;
use crate::http::api::frame::answer;
use crate::http::api::reply::AppState;
use crate::http::server::connection_limit::ConnectionPermit;
use crate::http::server::memory::{MemoryAccount, MemoryPermit};
use crate::http::server::metered::ConnectionMeter;
use crate::jitter::jitter;

/// Payload of a frame that is sent. tungstenite keeps a buffer of this size for each socket.
const FRAGMENT: usize = 8 << 10;
/// How long a closing handshake may take, and how much is read meanwhile.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
const CLOSE_BYTES: u64 = 64 << 10;
/// The payload of a ping while nothing will come.
const CUT_OFF: &[u8] = b"the database is unavailable";
/// Pause after the database was unavailable.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

enum SocketEnd {
    /// The peer is gone: there is nobody to tell.
    Gone,
    Close(CloseCode, &'static str),
}

type FramedStream = WebSocketStream<FrameSplitter<TokioIo<Upgraded>>>;

pub struct ClientSocket {
    node: AppState,
    socket: FramedStream,
    feed: MessageFeed,
    caller: EnforcerOrApprover,
    last_received: Instant,
    active: bool,
    partial: PartialMessage,
    account: MemoryAccount,
    _permit: Option<Extension<Arc<ConnectionPermit>>>,
}

impl ClientSocket {
    pub fn new(
        node: AppState,
        socket: FramedStream,
        feed: MessageFeed,
        caller: EnforcerOrApprover,
        meter: Arc<ConnectionMeter>,
        permit: Option<Extension<Arc<ConnectionPermit>>>,
    ) -> Self {
        let account = node.memory.account(caller.origin());
        let memory = MemoryPermit::new(&node.memory, account);
        Self {
            _permit: permit,
            partial: PartialMessage::new(meter, memory),
            account,
            node,
            socket,
            feed,
            caller,
            last_received: Instant::now(),
            active: true,
        }
    }

    /// Serves the socket until either side ends it.
    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn would keep the socket twice"
    )]
    pub fn run(mut self) -> impl Future<Output = ()> + Send {
        async move {
            let ended = self.serve().await;
            Box::pin(self.close(ended)).await;
        }
    }

    async fn close(self, ended: SocketEnd) {
        let send_timeout = self.send_timeout();
        // The channel is given up first, so that others get what is left.
        let Self {
            mut socket,
            feed,
            partial,
            ..
        } = self;
        drop(feed);
        if let SocketEnd::Close(code, reason) = ended {
            let frame = Message::Close(Some(CloseFrame {
                code,
                reason: reason.into(),
            }));
            let _gone = timeout(send_timeout, socket.send(frame)).await;
        }
        // Input left unread would reset the connection before the peer has read the close frame.
        let reading = async {
            let all = async { while let Some(Ok(_)) = socket.next().await {} };
            tokio::select! {
                biased;
                () = all => {}
                () = partial.grown_by(CLOSE_BYTES) => {}
            }
        };
        let _timed_out = timeout(CLOSE_TIMEOUT, reading).await;
    }

    async fn serve(&mut self) -> SocketEnd {
        let config = &self.node.context.config;
        let time_limit = Duration::from_secs(config.server.body_timeout_seconds);
        let mut pings = {
            let every = self.ping_every();
            interval_at(Instant::now() + jitter(every), every)
        };
        loop {
            enum SocketEvent {
                Closing(ChannelCloseReason),
                Ready,
                Ping,
                Partial(PartialEvent),
                Frame(Option<Result<Message, Error>>),
            }
            let event = {
                let (closing, ready) = self.feed.closed_or_ready();
                // Frames first: an ack that has arrived must count before a push is repeated.
                tokio::select! {
                    biased;
                    closing = closing => SocketEvent::Closing(closing),
                    frame = self.socket.next() => SocketEvent::Frame(frame),
                    event = poll_fn(|cx| self.partial.poll_event(cx, time_limit)) => SocketEvent::Partial(event),
                    _ = pings.tick() => SocketEvent::Ping,
                    () = ready => SocketEvent::Ready,
                }
            };
            let outcome = match event {
                SocketEvent::Closing(closing) => Err(self.closing(closing)),
                SocketEvent::Ready => Box::pin(self.push_page()).await,
                SocketEvent::Ping => self.ping().await,
                SocketEvent::Partial(PartialEvent::NeedsMemory) => {
                    Box::pin(self.acquire_memory()).await
                }
                SocketEvent::Partial(PartialEvent::TimedOut) => {
                    Err(self.closing(ChannelCloseReason::Unfinished))
                }
                SocketEvent::Frame(frame) => self.receive(frame).await,
            };
            if let Err(end) = outcome {
                return end;
            }
        }
    }

    /// Sends the next few messages. The feed stays ready; frames are read between pages.
    async fn push_page(&mut self) -> Result<(), SocketEnd> {
        match channel::next_page(&mut self.feed, &self.node.memory, self.account).await {
            Ok((page, _memory)) => {
                for mut push in page {
                    let text = std::mem::take(&mut push.text);
                    self.send_text(text).await?;
                    self.feed.note_written(&push);
                    // The rest of the page must not hold up the end of the channel.
                    if let Some(closing) = self.feed.closed().now_or_never() {
                        return Err(self.closing(closing));
                    }
                }
            }
            Err(error) => {
                tracing::debug!(%error, "the next page of a socket could not be read; retrying");
                sleep(jitter(RETRY_INTERVAL)).await;
            }
        }
        Ok(())
    }

    /// Sends a text, in fragments if it is large. A slow peer is closed, and catches up later.
    async fn send_text(&mut self, text: String) -> Result<(), SocketEnd> {
        let mut rest = Bytes::from(text);
        let send_timeout = self.send_timeout();
        let socket = &mut self.socket;
        let sending = async {
            let mut data = Data::Text;
            while rest.len() > FRAGMENT {
                let fragment = Frame::message(rest.split_to(FRAGMENT), OpCode::Data(data), false);
                socket.feed(Message::Frame(fragment)).await?;
                data = Data::Continue;
            }
            let last = Frame::message(rest, OpCode::Data(data), true);
            socket.send(Message::Frame(last)).await
        };
        let sent = timeout(send_timeout, sending).await;
        self.check_sent(&sent)
    }

    /// Sends a control frame, within the same time.
    async fn send(&mut self, message: Message) -> Result<(), SocketEnd> {
        let sent = timeout(self.send_timeout(), self.socket.send(message)).await;
        self.check_sent(&sent)
    }

    /// Writes what is buffered, within the same time.
    async fn flush(&mut self) -> Result<(), SocketEnd> {
        let sent = timeout(self.send_timeout(), self.socket.flush()).await;
        self.check_sent(&sent)
    }

    fn check_sent(&self, sent: &Result<Result<(), Error>, Elapsed>) -> Result<(), SocketEnd> {
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(SocketEnd::Gone),
            Err(_) => Err(self.closing(ChannelCloseReason::Slow)),
        }
    }

    fn ping_every(&self) -> Duration {
        Duration::from_secs(self.node.context.config.push.ping_seconds.max(1))
    }

    fn send_timeout(&self) -> Duration {
        Duration::from_secs(self.node.context.config.push.send_timeout_seconds)
    }

    fn closing(&self, why: ChannelCloseReason) -> SocketEnd {
        self.feed.channel().note_closing(why);
        close_frame(why)
    }

    /// Pings the peer, or closes the socket if it has been silent for too long.
    async fn ping(&mut self) -> Result<(), SocketEnd> {
        let silent = self.last_received.elapsed();
        if silent > Duration::from_secs(self.node.context.config.push.idle_seconds) {
            return Err(self.closing(ChannelCloseReason::Silent));
        }
        // After two unanswered pings it is sent no decisions, until it answers again.
        if self.active && silent > self.ping_every() * 2 {
            self.active = !Box::pin(self.feed.channel().set_active(false)).await;
        }
        let cut_off = self.feed.channel().is_cut_off();
        let payload = Bytes::from_static(if cut_off { CUT_OFF } else { b"" });
        self.send(Message::Ping(payload)).await
    }

    async fn acquire_memory(&mut self) -> Result<(), SocketEnd> {
        if self.partial.acquire_memory().await {
            Ok(())
        } else {
            Err(self.closing(ChannelCloseReason::Full))
        }
    }

    async fn receive(&mut self, frame: Option<Result<Message, Error>>) -> Result<(), SocketEnd> {
        let message = match frame {
            None => return Err(SocketEnd::Gone),
            Some(Err(error)) => {
                return Err(match error {
                    Error::Capacity(_) => self.closing(ChannelCloseReason::TooBig),
                    _ => SocketEnd::Gone,
                });
            }
            Some(Ok(message)) => message,
        };
        self.last_received = Instant::now();
        if !self.active {
            self.active = Box::pin(self.feed.channel().set_active(true)).await;
        }
        let bytes = match message {
            Message::Text(text) => Bytes::from(text),
            Message::Binary(bytes) => bytes,
            Message::Ping(payload) => {
                self.partial.note_control(payload.len());
                // Read on after its answer: a peer that reads no answers would fill memory.
                return self.flush().await;
            }
            Message::Pong(payload) => {
                self.partial.note_control(payload.len());
                return Ok(());
            }
            Message::Close(_) => return Err(SocketEnd::Gone),
            // Never read, only written.
            Message::Frame(_) => return Ok(()),
        };
        let finishing = Box::pin(self.partial.finish(bytes.len()));
        let Some(memory) = finishing.await else {
            return Err(self.closing(ChannelCloseReason::Full));
        };
        let key = &self.feed.channel().key;
        // Boxed, like everything that an idle socket seldom does, to keep the socket small.
        let answered = Box::pin(answer(&self.node, &self.caller, key, &bytes)).await;
        drop((bytes, memory));
        match answered {
            Some(text) => Box::pin(self.send_text(text)).await,
            None => Ok(()),
        }
    }
}

fn close_frame(closing: ChannelCloseReason) -> SocketEnd {
    use ChannelCloseReason as Reason;
    let (code, reason) = match closing {
        Reason::Drain => (CloseCode::Away, "the node is stopping; reconnect"),
        Reason::LeaseLost => (
            CloseCode::Away,
            "the node does not reach the database; reconnect",
        ),
        Reason::Slow => (CloseCode::Again, "too slow; reconnect and catch up"),
        Reason::Silent => (CloseCode::Away, "silent for too long"),
        Reason::Unfinished => (CloseCode::Policy, "the message took too long"),
        Reason::Full => (CloseCode::Again, "no memory for the message; try again"),
        Reason::TooBig => (CloseCode::Size, "the message is too big"),
        Reason::Credential => (CloseCode::Policy, "the credential has ended"),
        Reason::Replaced => (
            CloseCode::Policy,
            "too many channels of this identity; this was the oldest",
        ),
    };
    SocketEnd::Close(code, reason)
}
