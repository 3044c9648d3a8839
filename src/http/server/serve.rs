//! The accept loop. axum's sets no timer for headers and waits without limit when it drains.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures_util::FutureExt as _;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::TokioTimer;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::ConnectionService;
use super::connection_limit::ConnectionLimiter;
use super::h2_stall::StreamExecutor;
use super::listener_mode::ListenerMode;
use super::metered::ReadPace;
use super::watchdog::PeerTimeouts;
use crate::config;
use crate::telemetry::Metrics;

/// How long a peer may leave TCP segments unacknowledged before it counts as gone.
const PEER_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of a response that the kernel keeps beyond those in flight. With more, a slow reader would
/// have to read megabytes before the node notices that it reads.
#[cfg(target_os = "linux")]
const UNSENT_BYTES: u32 = 64 << 10;
/// HTTP/2 streams of one connection.
const MAX_STREAMS: u32 = 100;
/// Bytes that an HTTP/2 peer may send before they are read: on one stream, and in all. hyper's
/// default is 1 MiB each, which a connection could hold without a permit, and one stream could keep
/// the others from sending.
const STREAM_WINDOW: u32 = 128 << 10;
const CONNECTION_WINDOW: u32 = 256 << 10;
/// Pause when the process is out of file descriptors, until connections have ended.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Clone, Default)]
pub struct StopSignals {
    /// Stops accepting connections; requests under way finish.
    pub drain: CancellationToken,
    /// Closes what has not finished.
    pub hard: CancellationToken,
}

/// Accepts connections until the node drains. Each runs on `tasks`.
pub async fn serve(
    listener: TcpListener,
    mode: ListenerMode,
    router: Router,
    config: &config::Server,
    metrics: &Arc<Metrics>,
    tasks: &TaskTracker,
    stops: &StopSignals,
) {
    let StopSignals { drain, hard } = stops;
    let mut http1 = http1::Builder::new();
    http1
        .timer(TokioTimer::new())
        // Between requests. Headers that begin and do not end are the watchdog's.
        .header_read_timeout(Duration::from_secs(config.idle_timeout_seconds))
        // Halves the memory of an idle connection; larger bodies take several reads.
        .max_buf_size(16 << 10);
    // An idle HTTP/2 connection with an event stream takes about 32 KiB: h2 allocates a write
    // buffer of 16 KiB, a read buffer of 8 KiB and 4 KiB for HPACK. None of them can be set here;
    // the windows and `max_send_buf_size` only bound what is in transit.
    let mut http2 = http2::Builder::new(StreamExecutor);
    http2
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .keep_alive_interval(PEER_TIMEOUT / 2)
        .keep_alive_timeout(PEER_TIMEOUT);
    let limiter = ConnectionLimiter::new(config, mode.is_direct(), metrics);
    // A stopping node goes on accepting for a while, until load balancers have noticed that it is
    // not ready. Responses then carry `Connection: close`. Idle connections stay open as long: a
    // balancer may be sending on one of them.
    let closing = CancellationToken::new();
    let service = Arc::new(ConnectionService {
        router,
        http1,
        http2,
        mode,
        metrics: Arc::clone(metrics),
        timeouts: PeerTimeouts {
            headers: Duration::from_secs(config.header_timeout_seconds),
            pace: ReadPace {
                pause: Duration::from_secs(config.write_timeout_seconds),
                rate: config.min_bytes_per_second,
            },
            answer: Duration::from_secs(config.answer_timeout_seconds),
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
            // Drain the accept backlog; closing the listener would reset those connections.
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
                    tokio::time::sleep(ACCEPT_RETRY_INTERVAL).await;
                }
                continue;
            }
        };
        // Closing at once is the cheapest refusal.
        if !service.mode.admits(&stream, peer) {
            metrics.turned_away.of(["proxy"]).increment();
            tracing::debug!(%peer, "a connection from an address that is no listed proxy was closed");
            continue;
        }
        let Some(permit) = limiter.acquire(peer) else {
            continue;
        };
        if let Err(error) = set_options(&stream) {
            tracing::debug!(%error, "a connection could not be set up");
            continue;
        }
        tasks.spawn(Arc::clone(&service).connection(stream, permit));
    }
}

/// Whether accepting failed for this one peer only.
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
