//! One connection, from its handshake to its end: whose it is, how long it is waited for, and how it ends when the node stops.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Version;
use axum::http::header::{CONNECTION, HeaderValue};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::connection_limit::ConnectionPermit;
use super::http_version::{Conversation, HttpVersion, detect};
use super::listener_mode::ListenerMode;
use super::metered::{CloseReason, Meter, Metered, Timeouts, Verdict, Watchdog};
use super::peer::Peer;
use super::relay::{EventStream, Handover, Http1};
use crate::telemetry::Metrics;

const WATCH_EVERY: Duration = Duration::from_secs(1);
/// How long a node that has closed its door waits for a connection that has not asked anything yet.
const LAST_WORDS: Duration = Duration::from_secs(1);

pub(super) struct Service {
    pub(super) router: Router,
    pub(super) http1: http1::Builder,
    pub(super) http2: http2::Builder<TokioExecutor>,
    pub(super) mode: ListenerMode,
    pub(super) metrics: Arc<Metrics>,
    pub(super) timeouts: Timeouts,
    pub(super) drain: CancellationToken,
    pub(super) closing: CancellationToken,
    pub(super) hard: CancellationToken,
}

/// A connection's stream. Behind a box, because TLS keeps several hundred bytes that a plain one should not pay for.
pub(super) type Stream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

impl Service {
    /// Serves one connection. The handshake is its own affair: nobody else waits for it.
    pub(super) async fn connection(self: Arc<Self>, stream: TcpStream, permit: ConnectionPermit) {
        let Some((stream, thumbprint)) = self.greet(stream, &permit).await else {
            return;
        };
        let peer = Peer {
            address: permit.peer.ip().to_canonical(),
            encrypted: matches!(stream, Either::Right(_)),
            thumbprint,
        };
        let (from, permit) = (permit.peer, Arc::new(permit));
        let cut = self
            .converse(stream, peer, &permit)
            .await
            .unwrap_or_else(|error| {
                tracing::debug!(peer = %from, %error, "a connection broke");
                cut_by(&*error)
            });
        if let Some(cut) = cut {
            self.metrics.cut.of([cut.as_str()]).increment();
        }
    }

    /// The stream to talk over, and the thumbprint of the certificate that was shown on it.
    async fn greet(
        &self,
        stream: TcpStream,
        permit: &ConnectionPermit,
    ) -> Option<(Stream, Option<[u8; 32]>)> {
        let tls = match &self.mode {
            ListenerMode::Plain | ListenerMode::Upstream(_) => {
                return Some((Either::Left(stream), None));
            }
            ListenerMode::Tls(tls) => tls,
        };
        tokio::select! {
            greeted = tls.greet(stream) => match greeted {
                Ok((stream, thumbprint)) => Some((Either::Right(Box::new(stream)), thumbprint)),
                Err(error) => {
                    self.metrics.turned_away.of(["handshake"]).increment();
                    tracing::debug!(peer = %permit.peer, %error, "a handshake failed");
                    None
                }
            },
            () = self.last_words() => None,
        }
    }

    /// The end of the time for those who have not asked anything yet.
    async fn last_words(&self) {
        self.closing.cancelled().await;
        tokio::time::sleep(LAST_WORDS).await;
    }

    /// Serves what is asked on a connection until it ends, and tells why if it is the node that ends it.
    async fn converse(
        &self,
        stream: Stream,
        peer: Peer,
        permit: &Arc<ConnectionPermit>,
    ) -> Result<Option<CloseReason>, Box<dyn Error + Send + Sync>> {
        let version = tokio::select! {
            biased;
            version = detect(&stream, self.timeouts.headers) => version?,
            () = tokio::time::sleep(self.timeouts.idle) => return Ok(Some(CloseReason::Idle)),
            () = self.last_words() => return Ok(Some(CloseReason::Stopping)),
        };
        let Some(version) = version else {
            return Ok(Some(CloseReason::Headers));
        };
        let spoke = CancellationToken::new();
        let meter = Arc::new(Meter::default());
        let handover = Handover::default();
        let service = {
            let handover = handover.clone();
            let (spoke, meter) = (spoke.clone(), Arc::clone(&meter));
            let (router, mode) = (self.router.clone(), self.mode.clone());
            let (drain, permit) = (self.drain.clone(), Arc::clone(permit));
            service_fn(move |mut request: hyper::Request<Incoming>| {
                spoke.cancel();
                introduce(&mode, peer, &mut request);
                // A socket outlives the connection it was upgraded from, and keeps its seat.
                request.extensions_mut().insert(Arc::clone(&permit));
                request.extensions_mut().insert(Arc::clone(&meter));
                let version = request.version();
                let handover = Handover::suits(&request).then(|| handover.clone());
                let in_flight = meter.begin();
                let (router, meter) = (router.clone(), Arc::clone(&meter));
                let drain = drain.clone();
                async move {
                    let mut answer = router.oneshot(request).await?;
                    // Over HTTP/1 what is not taken keeps the socket from being written, which the stream itself notices.
                    if version == Version::HTTP_2 {
                        return Ok(answer.map(|body| meter.stalls.watch(body, in_flight)));
                    }
                    if drain.is_cancelled() {
                        let last = HeaderValue::from_static("close");
                        answer.headers_mut().entry(CONNECTION).or_insert(last);
                    }
                    if let Some(handover) = handover
                        && answer.extensions().get::<EventStream>().is_some()
                    {
                        handover.leave(answer, in_flight);
                        return std::future::pending().await;
                    }
                    Ok::<_, Infallible>(answer)
                }
            })
        };
        // What was decrypted is metered: records of TLS itself, such as new keys, are no headers that do not end.
        let stream = TokioIo::new(Metered::new(stream, &meter, self.timeouts.writing));
        Ok(match version {
            HttpVersion::Http1 => {
                let connection = self.http1.serve_connection(stream, service).with_upgrades();
                let connection = Http1::new(connection, handover, &meter);
                self.attend(connection, &meter, &spoke).await?
            }
            // Apart, so that HTTP/1 does not pay for its size.
            HttpVersion::Http2 => {
                let connection = self.http2.serve_connection(stream, service);
                Box::pin(self.attend(connection, &meter, &spoke)).await?
            }
        })
    }

    /// Watches over a connection until it ends, and tells why if it is the node that ends it.
    async fn attend<C: Conversation>(
        &self,
        connection: C,
        meter: &Arc<Meter>,
        spoke: &CancellationToken,
    ) -> Result<Option<CloseReason>, C::Error> {
        let mut connection = std::pin::pin!(connection);
        let mut watchdog = Watchdog::new(meter, self.timeouts);
        let mut rounds = tokio::time::interval(WATCH_EVERY);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // For a peer that agreed upon a version and then says nothing.
        let mut silence = std::pin::pin!(tokio::time::sleep(self.timeouts.idle));
        // Once something was read, and until the door closes, the watchdog has the connection.
        let silent = |closing: bool| !spoke.is_cancelled() && (closing || meter.read() == 0);
        let (mut closing, mut last_words, mut retiring) = (false, false, false);
        loop {
            tokio::select! {
                biased;
                // First, so that what has arrived counts before anyone's patience ends.
                ended = connection.as_mut() => return ended.map(|()| retiring.then_some(CloseReason::Idle)),
                _ = rounds.tick() => match watchdog.looks() {
                    Verdict::Stays => {}
                    // Told before it is closed, so that no request meets a closing door; but not for long.
                    Verdict::Retires if !retiring => {
                        retiring = true;
                        connection.as_mut().wind_up();
                    }
                    Verdict::Retires => return Ok(Some(CloseReason::Idle)),
                    Verdict::Closes(cut) => return Ok(Some(cut)),
                },
                () = silence.as_mut(), if silent(closing) => {
                    // Whether to wait for this was asked before what has arrived since was read.
                    if silent(closing) {
                        return Ok(Some(if closing { CloseReason::Stopping } else { CloseReason::Idle }));
                    }
                }
                () = self.hard.cancelled(), if closing => return Ok(Some(CloseReason::Stopping)),
                () = self.closing.cancelled(), if !closing => {
                    closing = true;
                    silence.as_mut().reset(Instant::now() + LAST_WORDS);
                }
                // Only a connection that has begun is asked to end: a fresh one would be dropped with its request unread.
                () = spoke.cancelled(), if closing && !last_words => {
                    last_words = true;
                    connection.as_mut().wind_up();
                }
            }
        }
    }
}

/// Why the node has ended a connection that broke, if it has: the protocol library's timer, and the stream's, end it so.
fn cut_by(error: &(dyn Error + 'static)) -> Option<CloseReason> {
    let mut causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.find_map(|cause| {
        let idle = cause.downcast_ref::<hyper::Error>();
        let unread = cause.downcast_ref::<io::Error>();
        if idle.is_some_and(hyper::Error::is_timeout) {
            Some(CloseReason::Idle)
        } else {
            unread
                .filter(|error| error.kind() == io::ErrorKind::TimedOut)
                .map(|_| CloseReason::Unread)
        }
    })
}

/// Tells a request who is at the other end, before anything reads it.
fn introduce<B>(mode: &ListenerMode, peer: Peer, request: &mut hyper::Request<B>) {
    let (peer, health_only) = match mode {
        ListenerMode::Plain | ListenerMode::Tls(_) => (peer, None),
        ListenerMode::Upstream(proxies) => proxies.client(peer, request.headers()),
    };
    request.extensions_mut().insert(peer);
    if let Some(health_only) = health_only {
        request.extensions_mut().insert(health_only);
    }
}
