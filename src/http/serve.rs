//! The accept loop. Our own, because axum's installs no timer, so that header timeouts would not work, and waits for
//! ever when it drains.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::FutureExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use super::metered::{Meter, Metered, Watchdog};
use super::peer::Peer;
use crate::config;

/// How long a peer may be silent below TCP before it counts as gone.
const PEER_TIMEOUT: Duration = Duration::from_secs(30);
/// HTTP/2 streams of one connection.
const MAX_STREAMS: u32 = 100;
/// Pause when the process is out of file descriptors: connections that end make room.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How often a connection is looked at for headers that do not end.
const WATCH_EVERY: Duration = Duration::from_secs(1);
/// How long a draining node waits for a connection that has not said anything yet.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Connections under way.
#[derive(Clone)]
struct Connections {
    /// Held for a few instructions, never across an await.
    counts: Arc<Mutex<Counts>>,
    most: usize,
    most_per_address: usize,
}

/// How many there are.
#[derive(Default)]
struct Counts {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// One counted connection, given back when dropped.
struct Seat {
    peer: SocketAddr,
    connections: Connections,
}

impl Connections {
    fn take(&self, peer: SocketAddr) -> Option<Seat> {
        let address = peer.ip();
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let here = counts.by_address.get(&address).copied().unwrap_or_default();
        if counts.all >= self.most || here >= self.most_per_address {
            return None;
        }
        counts.all += 1;
        counts.by_address.insert(address, here + 1);
        Some(Seat {
            peer,
            connections: self.clone(),
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut counts = self
            .connections
            .counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        counts.all -= 1;
        if let Some(here) = counts.by_address.get_mut(&self.peer.ip()) {
            *here -= 1;
            if *here == 0 {
                counts.by_address.remove(&self.peer.ip());
            }
        }
    }
}

/// Serves `router` until `drain`, then takes no new connections and lets those under way finish. Every connection runs on
/// `tasks`; `hard` cuts off what is left.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    config: &config::Server,
    tasks: &TaskTracker,
    drain: &CancellationToken,
    hard: &CancellationToken,
) {
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
    let builder = Arc::new(builder);
    let connections = Connections {
        counts: Arc::default(),
        most: config.max_connections,
        most_per_address: config.max_connections_per_address,
    };
    // Between the first word of stopping and the closed door there is time for a load balancer to see that the node is no
    // longer ready: whoever connects meanwhile is served, and asked not to come back.
    let closing = CancellationToken::new();
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
        // Closing at once is the cheapest way to say that there is no room.
        let Some(seat) = connections.take(peer) else {
            continue;
        };
        if let Err(error) = set_options(&stream) {
            tracing::debug!(%error, "a connection could not be set up");
            continue;
        }
        let router = router.clone();
        tasks.spawn(connection(
            stream,
            seat,
            router,
            Arc::clone(&builder),
            Duration::from_secs(config.header_timeout_seconds),
            drain.clone(),
            hard.clone(),
        ));
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
    socket.set_tcp_user_timeout(Some(PEER_TIMEOUT))?;
    Ok(())
}

async fn connection(
    stream: TcpStream,
    seat: Seat,
    router: Router,
    builder: Arc<Builder<TokioExecutor>>,
    patience: Duration,
    drain: CancellationToken,
    hard: CancellationToken,
) {
    let spoke = CancellationToken::new();
    let peer = Peer {
        address: seat.peer.ip(),
        encrypted: false,
        thumbprint: None,
    };
    let meter = Arc::new(Meter::default());
    let service = {
        let (spoke, meter) = (spoke.clone(), Arc::clone(&meter));
        service_fn(move |mut request: hyper::Request<Incoming>| {
            spoke.cancel();
            request.extensions_mut().insert(peer);
            let in_flight = meter.begin(request.version());
            let answer = router.clone().oneshot(request);
            async move {
                let _in_flight = in_flight;
                answer.await
            }
        })
    };
    let stream = TokioIo::new(Metered::new(stream, &meter));
    let mut connection = std::pin::pin!(builder.serve_connection_with_upgrades(stream, service));
    let mut watchdog = Watchdog::new(&meter, patience);
    let mut rounds = tokio::time::interval(WATCH_EVERY);
    // The protocol's own timer starts once it knows which version is spoken; a peer that never says is not waited for.
    let mut silence = std::pin::pin!(tokio::time::sleep(patience));
    let (mut draining, mut last_words) = (false, false);
    let ended = loop {
        tokio::select! {
            ended = connection.as_mut() => break ended,
            _ = rounds.tick() => {
                if watchdog.barks() {
                    return;
                }
            }
            () = silence.as_mut(), if !spoke.is_cancelled() => return,
            () = hard.cancelled(), if draining => return,
            () = drain.cancelled(), if !draining => {
                draining = true;
                if !spoke.is_cancelled() {
                    silence.as_mut().reset(Instant::now() + LAST_WORDS.min(patience));
                }
            }
            // Only a connection that has begun is asked to end: a fresh one would be dropped with its request unread.
            () = spoke.cancelled(), if draining && !last_words => {
                last_words = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(peer = %seat.peer, %error, "a connection broke");
    }
}

/// Closes the connection after an answer that left the body unread: reading it through would be for nothing.
pub async fn close_unread(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    if response.status() == StatusCode::PAYLOAD_TOO_LARGE {
        response
            .headers_mut()
            .insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
