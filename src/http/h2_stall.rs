//! Tracks what HTTP/2 peers have not read. Their windows limit what may be written, not their socket, so a response can wait
//! for ever on a connection that is otherwise alive. The protocol library offers no timeout for that.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::time::Instant;

use super::metered::InFlight;

/// Responses are written in chunks of this size, so that a slow reader can be told from one that reads nothing.
const CHUNK_BYTES: usize = 16 << 10;

#[derive(Default)]
pub struct StallTracker(Mutex<Vec<Weak<PendingBytes>>>);

impl StallTracker {
    /// Tracks a response until its last chunk was written to the peer.
    pub fn watch(&self, body: Body, in_flight: InFlight) -> Body {
        let pending = Arc::new(PendingBytes {
            unread: Mutex::new((0, Instant::now())),
            _in_flight: in_flight,
        });
        let mut bodies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        bodies.retain(|pending| pending.strong_count() > 0);
        bodies.push(Arc::downgrade(&pending));
        Body::new(TrackedBody {
            body,
            rest: Bytes::new(),
            pending,
        })
    }

    /// Whether some response has made no progress for this long.
    pub fn overdue(&self, timeout: Duration) -> bool {
        let bodies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        bodies.iter().filter_map(Weak::upgrade).any(|pending| {
            let (bytes, since) = *pending.unread();
            bytes > 0 && since.elapsed() > timeout
        })
    }
}

struct PendingBytes {
    /// How many bytes wait for the peer, and since when it has read none.
    unread: Mutex<(usize, Instant)>,
    _in_flight: InFlight,
}

impl PendingBytes {
    fn unread(&self) -> MutexGuard<'_, (usize, Instant)> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes handed to the protocol library, which drops them once they are written.
struct Chunk {
    bytes: Bytes,
    pending: Arc<PendingBytes>,
}

impl Chunk {
    fn new(bytes: Bytes, pending: &Arc<PendingBytes>) -> Self {
        let mut unread = pending.unread();
        if unread.0 == 0 {
            unread.1 = Instant::now();
        }
        unread.0 += bytes.len();
        drop(unread);
        Self {
            bytes,
            pending: Arc::clone(pending),
        }
    }
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let mut unread = self.pending.unread();
        *unread = (unread.0.saturating_sub(self.bytes.len()), Instant::now());
    }
}

struct TrackedBody {
    body: Body,
    /// What the body produced and was not handed on yet.
    rest: Bytes,
    pending: Arc<PendingBytes>,
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                ended => return Poll::Ready(ended),
            }
        }
        let length = self.rest.len().min(CHUNK_BYTES);
        let chunk = Chunk::new(self.rest.split_to(length), &self.pending);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(chunk)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (body, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower() + rest);
        if let Some(upper) = body.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}
