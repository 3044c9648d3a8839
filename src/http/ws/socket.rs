//! A socket under way: fed as its peer reads, heard frame by frame, and parted from with a reason.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, interval_at, sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::pieces::Pieces;
use super::unfinished::{Unfinished, Want};
use crate::gateway::caller::EnforcerOrApprover;
use crate::gateway::{Closing, Feed};
use crate::http::connection_limit::ConnectionPermit;
use crate::http::frame::answer;
use crate::http::metered::Meter;
use crate::http::reply::Node;
use crate::jitter::jitter;

/// What is sent in one frame. The socket's library keeps as much for as long as the socket lives.
const PIECE: usize = 8 << 10;
/// How long a closing handshake may take.
const FAREWELL: Duration = Duration::from_secs(1);
const LAST_BYTES: u64 = 64 << 10;
/// How long a socket waits before it asks a database that was away again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

enum End {
    Gone,
    Close(CloseCode, &'static str),
}

type Frames = WebSocketStream<Pieces<TokioIo<Upgraded>>>;

pub struct Socket {
    node: Node,
    socket: Frames,
    feed: Feed,
    caller: EnforcerOrApprover,
    /// When the peer last showed a sign of life.
    heard: Instant,
    active: bool,
    unfinished: Unfinished,
    _permit: Option<Extension<Arc<ConnectionPermit>>>,
}

impl Socket {
    pub fn new(
        node: Node,
        socket: Frames,
        feed: Feed,
        caller: EnforcerOrApprover,
        meter: Arc<Meter>,
        permit: Option<Extension<Arc<ConnectionPermit>>>,
    ) -> Self {
        Self {
            _permit: permit,
            unfinished: Unfinished::new(meter),
            node,
            socket,
            feed,
            caller,
            heard: Instant::now(),
            active: true,
        }
    }

    /// Serves the socket until either side ends it.
    pub async fn run(mut self) {
        let ended = self.serve().await;
        Box::pin(self.part(ended)).await;
    }

    async fn part(self, ended: End) {
        // First off the books, so that others get what is left; then the farewell.
        let Self {
            node,
            mut socket,
            feed,
            unfinished,
            ..
        } = self;
        drop(feed);
        if let End::Close(code, reason) = ended {
            let frame = Message::Close(Some(CloseFrame {
                code,
                reason: reason.into(),
            }));
            let time_limit = Duration::from_secs(node.gateway.config.push.send_timeout_seconds);
            let _gone = timeout(time_limit, socket.send(frame)).await;
        }
        // Read on for a moment: input left unread would reset the connection before the peer has seen its end.
        let reading = async {
            let all = async { while let Some(Ok(_)) = socket.next().await {} };
            tokio::select! {
                biased;
                () = all => {}
                () = unfinished.grown_by(LAST_BYTES) => {}
            }
        };
        let _impatient = timeout(FAREWELL, reading).await;
    }

    async fn serve(&mut self) -> End {
        let config = &self.node.gateway.config;
        let ping_every = Duration::from_secs(config.push.ping_seconds.max(1));
        let idle = Duration::from_secs(config.push.idle_seconds);
        let time_limit = Duration::from_secs(config.server.body_timeout_seconds);
        let mut pings = interval_at(Instant::now() + jitter(ping_every), ping_every);
        loop {
            enum Event {
                Closing(Closing),
                Ready,
                Ping,
                Unfinished(Want),
                Frame(Option<Result<Message, Error>>),
            }
            let event = {
                let (closing, ready) = self.feed.closed_or_ready();
                // Frames before pushes: an ack that is already here must count before anything is offered again.
                tokio::select! {
                    biased;
                    closing = closing => Event::Closing(closing),
                    frame = self.socket.next() => Event::Frame(frame),
                    want = poll_fn(|cx| self.unfinished.poll_want(cx, time_limit)) => Event::Unfinished(want),
                    _ = pings.tick() => Event::Ping,
                    () = ready => Event::Ready,
                }
            };
            let going_on = match event {
                Event::Closing(closing) => Err(self.close(closing)),
                Event::Ready => self.push_page().await,
                Event::Ping => self.ping(ping_every, idle).await,
                Event::Unfinished(Want::Memory) => Box::pin(self.acquire_memory()).await,
                Event::Unfinished(Want::Late) => Err(self.close(Closing::Unfinished)),
                Event::Frame(frame) => self.take(frame).await,
            };
            if let Err(end) = going_on {
                return end;
            }
        }
    }

    /// Sends the next few messages. The feed stays ready while there are more; between pages the peer is listened to.
    async fn push_page(&mut self) -> Result<(), End> {
        match self.feed.next_page().await {
            Ok(page) => {
                for mut push in page {
                    let text = std::mem::take(&mut push.text);
                    self.send_text(text).await?;
                    self.feed.note_written(&push);
                }
            }
            Err(error) => {
                tracing::debug!(%error, "a socket could not be fed and will be tried again");
                sleep(jitter(ASK_AGAIN)).await;
            }
        }
        Ok(())
    }

    /// Sends a text, in pieces if it is large. A peer that does not take it in time is closed, and catches up when it comes
    /// back.
    async fn send_text(&mut self, text: String) -> Result<(), End> {
        let time_limit = Duration::from_secs(self.node.gateway.config.push.send_timeout_seconds);
        let mut rest = Bytes::from(text);
        let socket = &mut self.socket;
        let sending = async {
            let mut data = Data::Text;
            while rest.len() > PIECE {
                let piece = Frame::message(rest.split_to(PIECE), OpCode::Data(data), false);
                socket.feed(Message::Frame(piece)).await?;
                data = Data::Continue;
            }
            let last = Frame::message(rest, OpCode::Data(data), true);
            socket.send(Message::Frame(last)).await
        };
        let sent = timeout(time_limit, sending).await;
        self.sent(&sent)
    }

    /// Sends a control frame, which must be taken in time, too.
    async fn send(&mut self, message: Message) -> Result<(), End> {
        let time_limit = Duration::from_secs(self.node.gateway.config.push.send_timeout_seconds);
        let sent = timeout(time_limit, self.socket.send(message)).await;
        self.sent(&sent)
    }

    fn sent(&self, sent: &Result<Result<(), Error>, Elapsed>) -> Result<(), End> {
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(End::Gone),
            Err(_) => Err(self.close(Closing::Slow)),
        }
    }

    fn close(&self, why: Closing) -> End {
        self.feed.channel().note_closing(why);
        farewell(why)
    }

    /// Pings the peer, and lets go of one that has been silent for too long.
    async fn ping(&mut self, ping_every: Duration, idle: Duration) -> Result<(), End> {
        let silent = self.heard.elapsed();
        if silent > idle {
            return Err(self.close(Closing::Silent));
        }
        // Without a sign for two pings it is not sent decisions; its next sign brings it back.
        if self.active && silent > ping_every * 2 {
            self.active = !Box::pin(self.feed.channel().set_active(false)).await;
        }
        self.send(Message::Ping(Bytes::new())).await
    }

    async fn acquire_memory(&mut self) -> Result<(), End> {
        if self.unfinished.take_memory(&self.node.memory).await {
            Ok(())
        } else {
            Err(self.close(Closing::Full))
        }
    }

    async fn take(&mut self, frame: Option<Result<Message, Error>>) -> Result<(), End> {
        let message = match frame {
            None => return Err(End::Gone),
            Some(Err(error)) => {
                return Err(match error {
                    Error::Capacity(_) => self.close(Closing::TooBig),
                    _ => End::Gone,
                });
            }
            Some(Ok(message)) => message,
        };
        self.heard = Instant::now();
        if !self.active {
            self.active = Box::pin(self.feed.channel().set_active(true)).await;
        }
        let bytes = match message {
            Message::Text(text) => Bytes::from(text),
            Message::Binary(bytes) => bytes,
            Message::Ping(payload) | Message::Pong(payload) => {
                self.unfinished.note_control(payload.len());
                return Ok(());
            }
            Message::Close(_) => return Err(End::Gone),
            // Only ever written.
            Message::Frame(_) => return Ok(()),
        };
        let finishing = Box::pin(self.unfinished.finish(bytes.len(), &self.node.memory));
        let Some(memory) = finishing.await else {
            return Err(self.close(Closing::Full));
        };
        let key = &self.feed.channel().key;
        // Boxed, as all that an idle socket seldom does: it would carry the room for it all its life.
        let answered = Box::pin(answer(&self.node, &self.caller, key, &bytes)).await;
        drop((bytes, memory));
        match answered {
            Some(text) => self.send_text(text).await,
            None => Ok(()),
        }
    }
}

fn farewell(closing: Closing) -> End {
    match closing {
        Closing::Drain => End::Close(CloseCode::Away, "the node is stopping; reconnect"),
        Closing::LeaseLost => End::Close(CloseCode::Away, "the node lost its lease; reconnect"),
        Closing::Slow => End::Close(CloseCode::Again, "too slow; reconnect and catch up"),
        Closing::Silent => End::Close(CloseCode::Away, "silent for too long"),
        Closing::Unfinished => End::Close(CloseCode::Policy, "the message took too long"),
        Closing::Full => End::Close(CloseCode::Again, "no memory for the message; try again"),
        Closing::TooBig => End::Close(CloseCode::Size, "the message is too big"),
        Closing::Credential => End::Close(CloseCode::Policy, "the credential has ended"),
        Closing::Replaced => End::Close(
            CloseCode::Policy,
            "too many channels of this identity; this was the oldest",
        ),
    }
}
