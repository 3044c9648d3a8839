//! Serves one connection, from its handshake to its end: with the peer's timeouts, and the order in
//! which a stopping node ends connections. It knows no route.

use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONNECTION, HeaderValue};
use axum::http::{Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::connection_limit::ConnectionPermit;
use super::h2_stall::{StallTracker, StreamExecutor};
use super::http_version::{HttpVersion, detect};
use super::listener_mode::{ConnectionStream, ListenerMode};
use super::metered::{ConnectionMeter, MeteredStream};
use super::peer::PeerInfo;
use super::proxied::HealthOnly;
use super::relay::{EventStream, StreamHandover, relay};
use super::watchdog::{CloseReason, ConnectionWatchdog, PeerTimeouts, WatchdogVerdict};
use crate::telemetry::Metrics;

const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// A stopping node that accepts no more waits this long for a connection's first request.
const FIRST_REQUEST_GRACE: Duration = Duration::from_secs(1);

pub(super) struct ConnectionService {
    pub(super) router: Router,
    pub(super) http1: http1::Builder,
    pub(super) http2: http2::Builder<StreamExecutor>,
    pub(super) mode: ListenerMode,
    pub(super) metrics: Arc<Metrics>,
    pub(super) timeouts: PeerTimeouts,
    pub(super) drain: CancellationToken,
    pub(super) closing: CancellationToken,
    pub(super) hard: CancellationToken,
}

type BoxError = Box<dyn Error + Send + Sync>;

/// How HTTP on a connection ended.
enum ConnectionEnd {
    /// By the peer, or by the node with a reason.
    Closed(Option<CloseReason>),
    /// With an event stream, which needs hyper no longer.
    Streaming(Box<(MeteredStream<ConnectionStream>, Response<Body>)>),
}

impl ConnectionService {
    pub(super) async fn connection(self: Arc<Self>, stream: TcpStream, permit: ConnectionPermit) {
        let (peer, permit) = (permit.peer, Arc::new(permit));
        // Both phases are boxed: an event stream must not keep the memory of hyper.
        let serving = Box::pin(self.serve_http(stream, &permit));
        let ended = match permit
            .until_evicted(serving)
            .await
            .unwrap_or(Ok(ConnectionEnd::Closed(Some(CloseReason::Full))))
        {
            Ok(ConnectionEnd::Closed(reason)) => Ok(reason),
            // No timer wakes it, only events and its peer.
            Ok(ConnectionEnd::Streaming(streaming)) => {
                // In a block, so that neither the response nor its box is kept.
                let (events, relayed) = {
                    let streaming = streaming;
                    let (stream, response) = *streaming;
                    let events = response.extensions().get::<EventStream>().cloned();
                    let relayed = Box::pin(relay(stream, response));
                    (events.unwrap_or_default(), relayed)
                };
                tokio::select! {
                    relayed = relayed => relayed.map(|()| None).map_err(BoxError::from),
                    // Its channel was closed: what the peer has not read must not keep memory.
                    () = events.overdue() => Ok(Some(CloseReason::Unread)),
                    () = self.hard.cancelled() => Ok(Some(CloseReason::Stopping)),
                }
            }
            Err(error) => Err(error),
        };
        let reason = ended.unwrap_or_else(|error| {
            tracing::debug!(%peer, %error, "a connection broke");
            close_reason(&*error)
        });
        if let Some(reason) = reason {
            self.metrics.cut.of([reason.as_str()]).increment();
        }
    }

    /// Completes when a stopping node no longer waits for first requests.
    async fn grace_over(&self) {
        self.closing.cancelled().await;
        sleep(FIRST_REQUEST_GRACE).await;
    }

    async fn serve_http(
        &self,
        stream: TcpStream,
        permit: &Arc<ConnectionPermit>,
    ) -> Result<ConnectionEnd, BoxError> {
        let handshake = tokio::select! {
            handshake = self.mode.handshake(stream) => handshake,
            () = self.grace_over() => return Ok(ConnectionEnd::Closed(None)),
        };
        let (stream, certificate) = match handshake {
            Ok(accepted) => accepted,
            Err(error) => {
                self.metrics.turned_away.of(["handshake"]).increment();
                tracing::debug!(peer = %permit.peer, %error, "a handshake failed");
                return Ok(ConnectionEnd::Closed(None));
            }
        };
        let version = tokio::select! {
            biased;
            version = detect(&stream, self.timeouts.headers) => version?,
            () = sleep(self.timeouts.idle) => return Ok(ConnectionEnd::Closed(Some(CloseReason::Idle))),
            () = self.grace_over() => return Ok(ConnectionEnd::Closed(Some(CloseReason::Stopping))),
        };
        let Some(version) = version else {
            return Ok(ConnectionEnd::Closed(Some(CloseReason::Headers)));
        };
        let peer = PeerInfo {
            address: permit.peer.ip().to_canonical(),
            encrypted: matches!(stream, Either::Right(_)),
            certificate,
        };
        let (meter, handover) = (
            Arc::new(ConnectionMeter::default()),
            StreamHandover::default(),
        );
        let stalls = (version == HttpVersion::Http2).then(Arc::<StallTracker>::default);
        let service = {
            let (meter, handover, stalls) = (Arc::clone(&meter), handover.clone(), stalls.clone());
            let (router, mode) = (self.router.clone(), self.mode.clone());
            let (drain, permit) = (self.drain.clone(), Arc::clone(permit));
            service_fn(move |mut request: hyper::Request<Incoming>| {
                insert_peer(&mode, peer, &mut request);
                if permit.health_only {
                    request.extensions_mut().insert(HealthOnly::Full);
                }
                // A WebSocket outlives its HTTP connection, and keeps its permit.
                request.extensions_mut().insert(Arc::clone(&permit));
                request.extensions_mut().insert(Arc::clone(&meter));
                let handover = StreamHandover::suits(&request).then(|| handover.clone());
                let in_flight = meter.begin();
                let (router, stalls, drain) = (router.clone(), stalls.clone(), drain.clone());
                let meter = Arc::clone(&meter);
                async move {
                    let mut response = router.oneshot(request).await?;
                    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                        meter.upgrade();
                    }
                    let events = response.extensions().get::<EventStream>().cloned();
                    if let Some(stalls) = stalls {
                        let watch = |body| stalls.watch(body, in_flight, events);
                        return Ok(response.map(watch));
                    }
                    // An event stream is the last response of its connection.
                    if drain.is_cancelled() || events.is_some() {
                        let close = HeaderValue::from_static("close");
                        response.headers_mut().entry(CONNECTION).or_insert(close);
                    }
                    if let Some(events) = events {
                        if let Some(handover) = handover {
                            handover.put(response);
                            return std::future::pending().await;
                        }
                        meter.carries(events);
                    }
                    Ok::<_, Infallible>(response)
                }
            })
        };
        let stream = TokioIo::new(MeteredStream::new(
            stream,
            version,
            &meter,
            self.timeouts.pace,
        ));
        let watchdog = ConnectionWatchdog::new(&meter, stalls.as_ref(), self.timeouts);
        match version {
            HttpVersion::Http1 => {
                let mut connection = self.http1.serve_connection(stream, service).with_upgrades();
                let closed = self
                    .supervise(
                        Pin::new(&mut connection),
                        http1::UpgradeableConnection::graceful_shutdown,
                        watchdog,
                        &meter,
                        &handover,
                    )
                    .await?;
                let response = handover.take().filter(|_| closed.is_none());
                let streaming = response.and_then(|response| {
                    let parts = connection.into_parts()?;
                    let streaming = (parts.io.into_inner(), response);
                    Some(ConnectionEnd::Streaming(Box::new(streaming)))
                });
                Ok(streaming.unwrap_or(ConnectionEnd::Closed(closed)))
            }
            HttpVersion::Http2 => {
                // Boxed, so that HTTP/1 does not pay for its size.
                let mut connection = Box::pin(self.http2.serve_connection(stream, service));
                let supervised = self.supervise(
                    connection.as_mut(),
                    http2::Connection::graceful_shutdown,
                    watchdog,
                    &meter,
                    &handover,
                );
                Ok(ConnectionEnd::Closed(supervised.await?))
            }
        }
    }

    /// Runs a connection until it ends, hands over an event stream, or is to be closed.
    async fn supervise<C: Future<Output = hyper::Result<()>>>(
        &self,
        mut connection: Pin<&mut C>,
        shut_down: fn(Pin<&mut C>),
        mut watchdog: ConnectionWatchdog,
        meter: &ConnectionMeter,
        handover: &StreamHandover,
    ) -> hyper::Result<Option<CloseReason>> {
        let mut checks = interval(CHECK_INTERVAL);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut closing, mut shutting_down, mut retired) = (false, false, None);
        loop {
            // Both are set while the connection is polled, which comes first: they need no waker of
            // their own. Answers before an event stream must have been written; hyper takes care of
            // that today, without a promise.
            let handed_over = until(|| handover.is_filled() && meter.flushed());
            let requested = until(|| meter.requests() > 0);
            tokio::select! {
                biased;
                ended = connection.as_mut() => return ended.map(|()| retired),
                () = handed_over => return Ok(None),
                // Only now: an earlier shutdown would drop the first request unread.
                () = requested, if closing && !shutting_down => {
                    shutting_down = true;
                    shut_down(connection.as_mut());
                }
                _ = checks.tick() => match watchdog.check() {
                    _ if closing && meter.requests() == 0 => return Ok(Some(CloseReason::Stopping)),
                    WatchdogVerdict::Keep => {}
                    // Announced first, so that no request is lost; it has until the next check.
                    WatchdogVerdict::Retire if retired.is_none() => {
                        retired = Some(CloseReason::Idle);
                        shut_down(connection.as_mut());
                    }
                    WatchdogVerdict::Retire => return Ok(retired),
                    WatchdogVerdict::Close(reason) => return Ok(Some(reason)),
                },
                () = self.hard.cancelled(), if closing => return Ok(Some(CloseReason::Stopping)),
                () = self.closing.cancelled(), if !closing => {
                    closing = true;
                    checks.reset_after(FIRST_REQUEST_GRACE);
                }
            }
        }
    }
}

/// Completes when `condition` holds, if the task is polled for another reason.
async fn until(condition: impl Fn() -> bool) {
    poll_fn(|_| {
        if condition() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

/// The reason behind an error: hyper's timer and the metered stream close connections so.
fn close_reason(error: &(dyn Error + 'static)) -> Option<CloseReason> {
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

/// Tells a request who sent it, before anything reads it.
fn insert_peer<B>(mode: &ListenerMode, peer: PeerInfo, request: &mut hyper::Request<B>) {
    let (peer, health_only) = match mode {
        ListenerMode::Plain | ListenerMode::Tls(_) => (peer, None),
        ListenerMode::Upstream(proxies) => proxies.client(peer, request.headers()),
    };
    request.extensions_mut().insert(peer);
    if let Some(health_only) = health_only {
        request.extensions_mut().insert(health_only);
    }
}
