//! Bodies that nobody read, because the call was refused before. What the client is still sending is taken from it for a
//! moment: closing on it would reset the connection, and the refusal would be lost on the way.

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

const MOST: usize = 512 << 10;
/// How long the client may pause meanwhile: as long as a packet may be on its way around the world, and once again if lost.
const PAUSE: Duration = Duration::from_millis(300);
/// How long it is taken from, however fast it sends.
const LONGEST: Duration = Duration::from_secs(1);

/// A body that is lent to a handler, and can be read on once it has been given back.
#[derive(Clone)]
struct SharedBody(Arc<Mutex<SharedBodyState>>);

struct SharedBodyState {
    body: Body,
    read: Read,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    /// Nothing was even asked for.
    Nothing,
    Some,
    All,
}

impl SharedBody {
    fn loan(&self) -> MutexGuard<'_, SharedBodyState> {
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
        let mut loan = self.loan();
        let polled = Pin::new(&mut loan.body).poll_frame(context);
        loan.read = match polled {
            Poll::Ready(None) => Read::All,
            _ => Read::Some,
        };
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.loan().body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.loan().body.size_hint()
    }
}

/// Takes what is left of the body of a call that was refused, and closes the connection if that was not all.
pub async fn take_unread(request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let asks_first = request.headers().contains_key(header::EXPECT);
    let (parts, body) = request.into_parts();
    let read = Read::Nothing;
    let lent = SharedBody(Arc::new(Mutex::new(SharedBodyState { body, read })));
    let body = Body::new(lent.clone());
    let mut response = next.run(Request::from_parts(parts, body)).await;
    let refused = response.status().is_client_error() || response.status().is_server_error();
    let read = lent.loan().read;
    let ends = async || match read {
        Read::All => true,
        // Whoever asks first whether to send at all has its answer, and must not be told to go on by being read from.
        Read::Nothing if asks_first => false,
        Read::Nothing | Read::Some => {
            matches!(timeout(LONGEST, took_all(lent)).await, Ok(true))
        }
    };
    if refused && !ends().await || response.status() == StatusCode::PAYLOAD_TOO_LARGE {
        response
            .headers_mut()
            .insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Whether a body ended while it was taken.
async fn took_all(mut body: SharedBody) -> bool {
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
