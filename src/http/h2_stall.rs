//! What peers of HTTP/2 were sent and have not taken. There a peer's windows say how much may be written, not its socket, so
//! that an answer can wait for ever on a connection that is otherwise alive; and only here is it known when a stream ends.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::time::Instant;

use super::metered::InFlight;

/// Answers go out in pieces of this size, so that a slow reader can be told from one that takes nothing.
const PIECE: usize = 16 << 10;

#[derive(Default)]
pub struct StallTracker(Mutex<Vec<Weak<PendingBytes>>>);

impl StallTracker {
    /// An answer that goes out piece by piece, on the books until its last piece was taken.
    pub fn watch(&self, body: Body, in_flight: InFlight) -> Body {
        let pending = Arc::new(PendingBytes {
            owed: Mutex::new((0, Instant::now())),
            _in_flight: in_flight,
        });
        let mut pending_bodies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pending_bodies.retain(|pending| pending.strong_count() > 0);
        pending_bodies.push(Arc::downgrade(&pending));
        Body::new(Owed {
            body,
            rest: Bytes::new(),
            pending,
        })
    }

    /// Whether the peer has not taken anything of some answer for this long.
    pub fn overdue(&self, time_limit: Duration) -> bool {
        let pending_bodies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pending_bodies
            .iter()
            .filter_map(Weak::upgrade)
            .any(|pending| {
                let (bytes, since) = *pending.owed.lock().unwrap_or_else(PoisonError::into_inner);
                bytes > 0 && since.elapsed() > time_limit
            })
    }
}

struct PendingBytes {
    /// How many bytes, and since when none were taken.
    owed: Mutex<(usize, Instant)>,
    _in_flight: InFlight,
}

/// Bytes on their way to the peer; taken when dropped.
struct Piece {
    bytes: Bytes,
    pending: Arc<PendingBytes>,
}

impl Piece {
    fn new(bytes: Bytes, pending: &Arc<PendingBytes>) -> Self {
        let mut owed = pending.owed.lock().unwrap_or_else(PoisonError::into_inner);
        if owed.0 == 0 {
            owed.1 = Instant::now();
        }
        owed.0 += bytes.len();
        Self {
            bytes,
            pending: Arc::clone(pending),
        }
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let mut owed = self
            .pending
            .owed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *owed = (owed.0.saturating_sub(self.bytes.len()), Instant::now());
    }
}

struct Owed {
    body: Body,
    /// What the body gave and is not yet on its way.
    rest: Bytes,
    pending: Arc<PendingBytes>,
}

impl HttpBody for Owed {
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
        let length = self.rest.len().min(PIECE);
        let piece = Piece::new(self.rest.split_to(length), &self.pending);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(piece)))))
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
