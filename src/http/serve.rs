//! The accept loop. Our own, because axum's installs no timer, so that header timeouts would not work, and waits for
//! ever when it drains.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Version;
use axum::http::header::{CONNECTION, HeaderValue};
use futures_util::FutureExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use super::door::Door;
use super::metered::{Meter, Metered, Patience, Verdict, Watchdog};
use super::peer::Peer;
use super::seats::{Seat, Seats};
use crate::config;
use crate::telemetry::Metrics;

/// How long a peer may be silent below TCP before it counts as gone.
const PEER_TIMEOUT: Duration = Duration::from_secs(30);
/// What the system keeps of an answer beyond what is on its way. With more, megabytes would have to be read before it
/// can be told that a slow reader reads.
#[cfg(target_os = "linux")]
const UNSENT_BYTES: u32 = 64 << 10;
/// HTTP/2 streams of one connection.
const MAX_STREAMS: u32 = 100;
/// Pause when the process is out of file descriptors: connections that end make room.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How often a connection is looked at.
const WATCH_EVERY: Duration = Duration::from_secs(1);
/// How long a draining node waits for a connection that has not said anything yet.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The two stages of stopping.
pub struct Stops {
    /// No new connections, and those under way finish.
    pub drain: CancellationToken,
    /// What is left is cut off.
    pub hard: CancellationToken,
}

/// What every connection is served with.
struct Service {
    router: Router,
    builder: Builder<TokioExecutor>,
    door: Door,
    metrics: Arc<Metrics>,
    patience: Patience,
    drain: CancellationToken,
    /// The end of the lame duck's time.
    closing: CancellationToken,
    hard: CancellationToken,
}

/// Serves `router` through `door` until it is to drain. Every connection runs on `tasks`.
pub async fn serve(
    listener: TcpListener,
    door: Door,
    router: Router,
    config: &config::Server,
    metrics: &Arc<Metrics>,
    tasks: &TaskTracker,
    stops: &Stops,
) {
    let Stops { drain, hard } = stops;
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // Between requests; headers that begin and do not end are the watchdog's.
        .header_read_timeout(Duration::from_secs(config.idle_timeout_seconds))
        // Half the memory of an idle connection; larger bodies are read in several goes.
        .max_buf_size(16 << 10);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .keep_alive_interval(PEER_TIMEOUT / 2)
        .keep_alive_timeout(PEER_TIMEOUT);
    let seats = Seats::new(config, metrics);
    // Between the first word of stopping and the closed door there is time for a load balancer to see that the node is no
    // longer ready: whoever connects meanwhile is served, and asked not to come back. Connections that it keeps idle stay
    // open for as long, since it may be sending on one of them right now.
    let closing = CancellationToken::new();
    let service = Arc::new(Service {
        router,
        builder,
        door,
        metrics: Arc::clone(metrics),
        patience: Patience {
            headers: Duration::from_secs(config.header_timeout_seconds),
            writing: Duration::from_secs(config.write_timeout_seconds),
            idle: Duration::from_secs(config.idle_timeout_seconds),
        },
        drain: drain.clone(),
        closing: closing.clone(),
        hard: hard.clone(),
    });
    let lame_duck = Duration::from_millis(config.lame_duck_ms);
    let close_later = {
        let (drain, closing) = (drain.clone(), closing.clone());
        async move {
            drain.cancelled().await;
            tokio::time::sleep(lame_duck).await;
            closing.cancel();
        }
    };
    tasks.spawn(close_later);
    loop {
        let accepted = match closing.run_until_cancelled(listener.accept()).await {
            Some(accepted) => accepted,
            // Whoever stands at the door already comes in: closing it would reset them.
            None => match listener.accept().now_or_never() {
                Some(accepted) => accepted,
                None => return,
            },
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                if !is_peers_fault(&error) {
                    tracing::warn!(%error, "cannot accept connections");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
                continue;
            }
        };
        // Closing at once is the cheapest way to say that this is no way in, or that there is no room.
        if !service.door.admits(&stream, peer) {
            metrics.turned_away.of(["proxy"]).increment();
            tracing::debug!(%peer, "a connection that comes from no listed proxy was closed");
            continue;
        }
        let Some(seat) = seats.take(peer) else {
            continue;
        };
        if let Err(error) = set_options(&stream) {
            tracing::debug!(%error, "a connection could not be set up");
            continue;
        }
        tasks.spawn(Arc::clone(&service).connection(stream, seat));
    }
}

/// Whether accepting failed because that one peer went away.
fn is_peers_fault(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}

fn set_options(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    socket.set_tcp_keepalive(
        &TcpKeepalive::new()
            .with_time(PEER_TIMEOUT)
            .with_interval(PEER_TIMEOUT / 3),
    )?;
    #[cfg(target_os = "linux")]
    {
        socket.set_tcp_user_timeout(Some(PEER_TIMEOUT))?;
        socket.set_tcp_notsent_lowat(UNSENT_BYTES)?;
    }
    Ok(())
}

/// A connection's stream. Behind a box, because TLS keeps several hundred bytes that a plain one should not pay for.
type Stream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

impl Service {
    /// Serves one connection. The handshake is its own affair: nobody else waits for it.
    async fn connection(self: Arc<Self>, stream: TcpStream, seat: Seat) {
        let Some((stream, thumbprint)) = self.greet(stream, &seat).await else {
            return;
        };
        let peer = Peer {
            address: seat.peer.ip().to_canonical(),
            encrypted: matches!(stream, Either::Right(_)),
            thumbprint,
        };
        let (from, seat) = (seat.peer, Arc::new(seat));
        if let Err(error) = self.converse(stream, peer, seat).await {
            tracing::debug!(peer = %from, %error, "a connection broke");
        }
    }

    /// The stream to talk over, and the thumbprint of the certificate that was shown on it.
    async fn greet(&self, stream: TcpStream, seat: &Seat) -> Option<(Stream, Option<[u8; 32]>)> {
        let tls = match &self.door {
            Door::Plain | Door::Upstream(_) => return Some((Either::Left(stream), None)),
            Door::Tls(tls) => tls,
        };
        let draining = async {
            self.drain.cancelled().await;
            tokio::time::sleep(LAST_WORDS).await;
        };
        tokio::select! {
            greeted = tls.greet(stream) => match greeted {
                Ok((stream, thumbprint)) => Some((Either::Right(Box::new(stream)), thumbprint)),
                Err(error) => {
                    self.metrics.turned_away.of(["handshake"]).increment();
                    tracing::debug!(peer = %seat.peer, %error, "a handshake failed");
                    None
                }
            },
            () = draining => None,
        }
    }

    async fn converse(
        &self,
        stream: Stream,
        peer: Peer,
        seat: Arc<Seat>,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let spoke = CancellationToken::new();
        let meter = Arc::new(Meter::default());
        let service = {
            let (spoke, meter) = (spoke.clone(), Arc::clone(&meter));
            let (router, door) = (self.router.clone(), self.door.clone());
            let drain = self.drain.clone();
            service_fn(move |mut request: hyper::Request<Incoming>| {
                spoke.cancel();
                introduce(&door, peer, &mut request);
                // A socket outlives the connection it was upgraded from, and keeps its seat.
                request.extensions_mut().insert(Arc::clone(&seat));
                request.extensions_mut().insert(Arc::clone(&meter));
                let version = request.version();
                let in_flight = meter.begin(version);
                let (router, meter) = (router.clone(), Arc::clone(&meter));
                let drain = drain.clone();
                async move {
                    let mut answer = router.oneshot(request).await?;
                    // Over HTTP/1 what is not taken keeps the socket from being written, which the stream itself notices.
                    if version == Version::HTTP_2 {
                        return Ok(answer.map(|body| meter.ledger.watch(body, in_flight)));
                    }
                    if drain.is_cancelled() {
                        let last = HeaderValue::from_static("close");
                        answer.headers_mut().entry(CONNECTION).or_insert(last);
                    }
                    Ok::<_, Infallible>(answer)
                }
            })
        };
        // What was decrypted is metered: records of TLS itself, such as new keys, are no headers that do not end.
        let stream = TokioIo::new(Metered::new(stream, &meter, self.patience.writing));
        let connection = self.builder.serve_connection_with_upgrades(stream, service);
        let mut connection = std::pin::pin!(connection);
        let mut watchdog = Watchdog::new(&meter, self.patience);
        let mut rounds = tokio::time::interval(WATCH_EVERY);
        // The protocol's own timer starts once it knows which version is spoken; a peer that never says is not waited for.
        let mut silence = std::pin::pin!(tokio::time::sleep(self.patience.headers));
        let (mut draining, mut closing) = (false, false);
        let (mut last_words, mut retiring) = (false, false);
        loop {
            tokio::select! {
                ended = connection.as_mut() => return ended,
                _ = rounds.tick() => match watchdog.looks() {
                    Verdict::Stays => {}
                    // Told before it is closed, so that no request meets a closing door; but not for long.
                    Verdict::Retires if !retiring => {
                        retiring = true;
                        connection.as_mut().graceful_shutdown();
                    }
                    Verdict::Retires | Verdict::Closes => return Ok(()),
                },
                () = silence.as_mut(), if !spoke.is_cancelled() => return Ok(()),
                () = self.hard.cancelled(), if draining => return Ok(()),
                () = self.drain.cancelled(), if !draining => {
                    draining = true;
                    if !spoke.is_cancelled() {
                        silence.as_mut().reset(Instant::now() + LAST_WORDS.min(self.patience.headers));
                    }
                }
                () = self.closing.cancelled(), if draining && !closing => closing = true,
                // Only a connection that has begun is asked to end: a fresh one would be dropped with its request unread.
                () = spoke.cancelled(), if closing && !last_words => {
                    last_words = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }
}

/// Tells a request who is at the other end, before anything reads it.
fn introduce<B>(door: &Door, peer: Peer, request: &mut hyper::Request<B>) {
    let (peer, health_only) = match door {
        Door::Plain | Door::Tls(_) => (peer, None),
        Door::Upstream(proxies) => proxies.client(peer, request.headers()),
    };
    request.extensions_mut().insert(peer);
    if let Some(health_only) = health_only {
        request.extensions_mut().insert(health_only);
    }
}
