//! The listener for `GET /metrics`, apart from the one that serves callers: it asks for no
//! credential, and is meant for loopback or a private network. By hand, since `axum::serve` has no
//! limit on connections, no timeouts, and cannot close a connection; a listener and a stream that
//! add these to it are twice as long.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::uri::Authority;
use axum::http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::telemetry::Metrics;

const MEDIA_TYPE: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
/// Connections at once; further ones wait in the accept backlog.
const MAX_CONNECTIONS: usize = 16;
/// How long headers may take, and how long a connection may be idle between two scrapes.
const HEADER_TIMEOUT: Duration = Duration::from_secs(75);
/// How long one connection may last, so that a scraper that does not read cannot keep its permit.
const MAX_LIFETIME: Duration = Duration::from_secs(600);
/// Pause when the process is out of file descriptors.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Serves the node's metrics until `end`, which is after the drain.
pub async fn serve(
    listener: TcpListener,
    metrics: Arc<Metrics>,
    tasks: TaskTracker,
    end: CancellationToken,
) {
    let limiter = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let next = async {
            let permit = Arc::clone(&limiter).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let Some((permit, accepted)) = end.run_until_cancelled(next).await else {
            return;
        };
        let Ok((stream, _)) = accepted else {
            sleep(ACCEPT_RETRY_INTERVAL).await;
            continue;
        };
        let (metrics, end) = (Arc::clone(&metrics), end.clone());
        tasks.spawn(async move {
            let _permit = permit;
            let served = timeout(MAX_LIFETIME, serve_connection(stream, &metrics));
            let _ended = end.run_until_cancelled(served).await;
        });
    }
}

async fn serve_connection(stream: TcpStream, metrics: &Metrics) {
    let is_loopback =
        (stream.local_addr()).is_ok_and(|address| address.ip().to_canonical().is_loopback());
    let service = service_fn(async |request: Request<Incoming>| {
        Ok::<_, Infallible>(answer(metrics, is_loopback, &request))
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(16 << 10)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a scrape broke off");
    }
}

/// A page in a browser can lead its own name to loopback, but not change the `Host` it sends.
fn names_loopback(request: &Request<Incoming>) -> bool {
    let host = request.headers().get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
    host.is_some_and(|host| {
        let name = host.host().trim_start_matches('[').trim_end_matches(']');
        let address = name.parse::<IpAddr>();
        name.eq_ignore_ascii_case("localhost")
            || address.is_ok_and(|it| it.to_canonical().is_loopback())
    })
}

fn answer(
    metrics: &Metrics,
    is_loopback: bool,
    request: &Request<Incoming>,
) -> Response<Full<Bytes>> {
    let mut response = Response::default();
    if is_loopback && !names_loopback(request) {
        *response.status_mut() = StatusCode::MISDIRECTED_REQUEST;
        return response;
    }
    if (request.method(), request.uri().path()) != (&Method::GET, "/metrics") {
        *response.status_mut() = StatusCode::NOT_FOUND;
        return response;
    }
    match metrics.print() {
        Ok(text) => {
            response
                .headers_mut()
                .insert(header::CONTENT_TYPE, MEDIA_TYPE);
            *response.body_mut() = Full::from(text);
        }
        Err(error) => {
            tracing::error!(%error, "the metrics cannot be printed");
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        }
    }
    response
}
