//! The listener for `GET /metrics`: a door of its own, so that figures are not shown where callers are served. It asks for
//! no credential, and is meant for loopback or a private network.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

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

use crate::telemetry::prometheus;

use super::reply::Node;

/// Connections at once; whoever comes beyond waits at the door.
const MAX_CONNECTIONS: usize = 16;
/// How long headers may take, and how long a connection may be idle between two scrapes.
const PATIENCE: Duration = Duration::from_secs(75);
/// How long one connection may last: a scraper that does not read must not keep its seat.
const LONGEST: Duration = Duration::from_secs(600);
/// Pause when the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves the node's metrics until `end`: through a drain too, which is when they are looked at most.
pub async fn serve(listener: TcpListener, node: Node, tasks: TaskTracker, end: CancellationToken) {
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
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (node, end) = (node.clone(), end.clone());
        tasks.spawn(async move {
            let _permit = permit;
            let conversation = timeout(LONGEST, converse(stream, node));
            let _ended = end.run_until_cancelled(conversation).await;
        });
    }
}

async fn converse(stream: TcpStream, node: Node) {
    let service = service_fn(|request: Request<Incoming>| {
        let answer = answer(&node, &request);
        async move { Ok::<_, Infallible>(answer) }
    });
    let conversation = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(16 << 10)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = conversation {
        tracing::debug!(%error, "a scrape broke off");
    }
}

fn answer(node: &Node, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let mut response = Response::default();
    if (request.method(), request.uri().path()) != (&Method::GET, "/metrics") {
        *response.status_mut() = StatusCode::NOT_FOUND;
        return response;
    }
    let content_type = HeaderValue::from_static(prometheus::MEDIA_TYPE);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    *response.body_mut() = Full::from(prometheus::print(&node.observed()));
    response
}
