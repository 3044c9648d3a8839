//! The accept loop. Our own, because axum's installs no timer, so that header timeouts would not work, and waits for
//! ever when it drains.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures_util::FutureExt as _;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::Service;
use super::connection_limit::ConnectionLimiter;
use super::listener_mode::ListenerMode;
use super::metered::Timeouts;
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

pub struct Stops {
    /// No new connections, and those under way finish.
    pub drain: CancellationToken,
    pub hard: CancellationToken,
}

/// Serves `router` through `door` until it is to drain. Every connection runs on `tasks`.
pub async fn serve(
    listener: TcpListener,
    mode: ListenerMode,
    router: Router,
    config: &config::Server,
    metrics: &Arc<Metrics>,
    tasks: &TaskTracker,
    stops: &Stops,
) {
    let Stops { drain, hard } = stops;
    let mut http1 = http1::Builder::new();
    http1
        .timer(TokioTimer::new())
        // Between requests; headers that begin and do not end are the watchdog's.
        .header_read_timeout(Duration::from_secs(config.idle_timeout_seconds))
        // Half the memory of an idle connection; larger bodies are read in several goes.
        .max_buf_size(16 << 10);
    let mut http2 = http2::Builder::new(TokioExecutor::new());
    http2
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .keep_alive_interval(PEER_TIMEOUT / 2)
        .keep_alive_timeout(PEER_TIMEOUT);
    let limiter = ConnectionLimiter::new(config, metrics);
    // Between the first word of stopping and the closed door there is time for a load balancer to see that the node is no
    // longer ready: whoever connects meanwhile is served, and asked not to come back. Connections that it keeps idle stay
    // open for as long, since it may be sending on one of them right now.
    let closing = CancellationToken::new();
    let service = Arc::new(Service {
        router,
        http1,
        http2,
        mode,
        metrics: Arc::clone(metrics),
        timeouts: Timeouts {
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
        if !service.mode.admits(&stream, peer) {
            metrics.turned_away.of(["proxy"]).increment();
            tracing::debug!(%peer, "a connection that comes from no listed proxy was closed");
            continue;
        }
        let Some(permit) = limiter.take(peer) else {
            continue;
        };
        if let Err(error) = set_options(&stream) {
            tracing::debug!(%error, "a connection could not be set up");
            continue;
        }
        tasks.spawn(Arc::clone(&service).connection(stream, permit));
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
