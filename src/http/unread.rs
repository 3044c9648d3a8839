//! Bodies that nobody read, because the call was refused before. What the client is still sending is taken from it for a
//! moment: closing on it would reset the connection, and the refusal would be lost on the way.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
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

/// Most that is taken.
const MOST: usize = 512 << 10;
/// How long the client may pause meanwhile.
const PAUSE: Duration = Duration::from_millis(50);
/// How long it is taken from, however fast it sends.
const LONGEST: Duration = Duration::from_secs(1);

/// A body that is lent to a handler, and can be read on once it has been given back.
struct Lent(Arc<Mutex<Body>>);

impl hyper::body::Body for Lent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut body = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Pin::new(&mut *body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        let body = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let body = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        body.size_hint()
    }
}

/// Takes what is left of the body of a call that was refused, and closes the connection if that was not all.
pub async fn take_unread(request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    // Whoever asks first whether to send at all has its answer.
    let asked_first = request.headers().contains_key(header::EXPECT);
    let (parts, body) = request.into_parts();
    let lent = Arc::new(Mutex::new(body));
    let body = Body::new(Lent(Arc::clone(&lent)));
    let mut response = next.run(Request::from_parts(parts, body)).await;
    let refused = response.status().is_client_error() || response.status().is_server_error();
    let all = async || matches!(timeout(LONGEST, took_all(Lent(lent))).await, Ok(true));
    if refused && !(asked_first || all().await)
        || response.status() == StatusCode::PAYLOAD_TOO_LARGE
    {
        response
            .headers_mut()
            .insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Whether a body ended while it was taken.
async fn took_all(mut body: Lent) -> bool {
    let mut taken = 0;
    while taken < MOST {
        match timeout(PAUSE, body.frame()).await {
            Ok(Some(Ok(frame))) => taken += frame.data_ref().map_or(0, Bytes::len),
            Ok(None) => return true,
            Ok(Some(Err(_))) | Err(_) => return false,
        }
    }
    false
}
