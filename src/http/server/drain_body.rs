//! Drains the request body of a refused call for a moment. Closing the connection while the client
//! still sends would reset it, and the refusal would be lost.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};
use tokio::time::timeout;

const MAX_BYTES: usize = 512 << 10;
/// How long the client may pause: a round trip around the world, and a retransmission.
const READ_TIMEOUT: Duration = Duration::from_millis(300);
/// How long a body is drained, however fast the client sends.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// A body that can be read on after a handler has dropped it.
#[derive(Clone)]
struct SharedBody(Arc<Mutex<BodyState>>);

struct BodyState {
    body: Body,
    progress: DrainProgress,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DrainProgress {
    /// The body was never polled.
    Untouched,
    Begun,
    Ended,
}

impl SharedBody {
    fn state(&self) -> MutexGuard<'_, BodyState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl hyper::body::Body for SharedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut state = self.state();
        let polled = Pin::new(&mut state.body).poll_frame(context);
        state.progress = match polled {
            Poll::Ready(None) => DrainProgress::Ended,
            _ => DrainProgress::Begun,
        };
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.state().body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.state().body.size_hint()
    }
}

/// Drains the body of a refused call, and closes the connection if the body does not end.
pub async fn drain_unread(request: Request, next: Next) -> Response {
    // Nobody reads the body of a GET. Kept, it would take up memory.
    if request.method().is_safe() || request.body().is_end_stream() {
        return next.run(request).await;
    }
    let expects_continue = request.headers().contains_key(header::EXPECT);
    let (parts, body) = request.into_parts();
    let progress = DrainProgress::Untouched;
    let shared = SharedBody(Arc::new(Mutex::new(BodyState { body, progress })));
    let body = Body::new(shared.clone());
    let mut response = next.run(Request::from_parts(parts, body)).await;
    let refused = response.status().is_client_error() || response.status().is_server_error();
    let progress = shared.state().progress;
    let ends = async || match progress {
        DrainProgress::Ended => true,
        // Polling the body would send `100 Continue` to a client that was just refused.
        DrainProgress::Untouched if expects_continue => false,
        DrainProgress::Untouched | DrainProgress::Begun => {
            matches!(timeout(DRAIN_TIMEOUT, drain(shared)).await, Ok(true))
        }
    };
    if refused && !ends().await || response.status() == StatusCode::PAYLOAD_TOO_LARGE {
        response
            .headers_mut()
            .insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Whether a body ended within the limits.
async fn drain(mut body: SharedBody) -> bool {
    let mut bytes = 0;
    while bytes < MAX_BYTES {
        match timeout(READ_TIMEOUT, body.frame()).await {
            Ok(Some(Ok(frame))) => bytes += frame.data_ref().map_or(0, Bytes::len),
            Ok(None) => return true,
            Ok(Some(Err(_))) | Err(_) => return false,
        }
    }
    false
}
