//! Tracks what HTTP/2 peers have not read. Their windows limit what may be written, not their
//! socket, so a response can wait for ever on a connection that is otherwise alive. The protocol
//! library offers no timeout for that, and no way to reset one stream. A response that waits for
//! too long is aborted; if the library has taken over all of it, so that only the end of the
//! connection frees it, the connection is closed.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use futures_util::future::{AbortHandle, Abortable};
use hyper::body::{Frame, SizeHint};
use hyper::rt::Executor;
use tokio::task_local;
use tokio::time::Instant;

use super::charged_body::HeldBytes;
use super::metered::{InFlight, ReadPace};
use super::relay::EventStream;

/// Responses are written in chunks of this size, to tell a slow reader from one that stopped.
const CHUNK_BYTES: usize = 16 << 10;
/// How long a stream may take to end once it was aborted.
const ABORT_TIMEOUT: Duration = Duration::from_secs(3);

task_local! {
    /// Aborts the stream that the task serves.
    static STREAM: AbortHandle;
}

/// Runs each stream of a connection on a task that can be aborted, which resets the stream.
#[derive(Clone, Copy)]
pub struct StreamExecutor;

impl<F> Executor<F> for StreamExecutor
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let (abort, registration) = AbortHandle::new_pair();
        let stream = Abortable::new(stream, registration);
        tokio::spawn(async move {
            let _aborted = STREAM.scope(abort, stream).await;
        });
    }
}

#[derive(Default)]
pub struct StallTracker(Mutex<Vec<Weak<PendingBytes>>>);

impl StallTracker {
    /// Tracks a response until its last chunk is written. Call it on the task of its stream.
    pub fn watch(&self, body: Body, in_flight: InFlight, events: Option<EventStream>) -> Body {
        let pending = Arc::new(PendingBytes {
            progress: Mutex::new(ReadProgress::default()),
            events,
            abort: STREAM.try_with(Clone::clone).ok(),
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

    /// Aborts the responses that are read too slowly. True if one of them did not end by that.
    pub fn check(&self, pace: ReadPace, answer_timeout: Duration) -> bool {
        let bodies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stuck = false;
        for pending in bodies.iter().filter_map(Weak::upgrade) {
            stuck |= pending.check(pace, answer_timeout);
        }
        stuck
    }
}

struct PendingBytes {
    progress: Mutex<ReadProgress>,
    /// If it is an event stream.
    events: Option<EventStream>,
    abort: Option<AbortHandle>,
    _in_flight: InFlight,
}

/// How far the peer has read an answer, or a page of an event stream.
#[derive(Default)]
struct ReadProgress {
    unread: usize,
    read: u64,
    since: Option<Instant>,
    /// When it last read something.
    moved: Option<Instant>,
    aborted: Option<Instant>,
}

impl PendingBytes {
    fn progress(&self) -> MutexGuard<'_, ReadProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, pace: ReadPace, answer_timeout: Duration) -> bool {
        let mut progress = self.progress();
        if let Some(aborted) = progress.aborted {
            return progress.unread > 0 && aborted.elapsed() > ABORT_TIMEOUT;
        }
        let ended = self.events.as_ref().is_some_and(EventStream::is_aborted);
        let slow = progress.since.is_some_and(|since| {
            let moved = progress.moved.unwrap_or(since);
            let deadline = pace.deadline(since, moved, progress.read);
            let late = deadline.is_some_and(|deadline| Instant::now() > deadline);
            progress.unread > 0 && (late || since.elapsed() > answer_timeout)
        });
        if (ended && progress.unread > 0) || slow {
            progress.aborted = Some(Instant::now());
            drop(progress);
            if let Some(abort) = &self.abort {
                abort.abort();
            }
        }
        false
    }

    fn begin(&self, bytes: usize) {
        let mut progress = self.progress();
        if progress.unread == 0 {
            (progress.since, progress.moved, progress.read) = (Some(Instant::now()), None, 0);
        }
        progress.unread += bytes;
    }
}

/// Counts bytes handed to the protocol library, which drops them once they are written.
struct UnreadBytes {
    bytes: usize,
    pending: Arc<PendingBytes>,
}

impl Drop for UnreadBytes {
    fn drop(&mut self) {
        let mut progress = self.pending.progress();
        progress.unread = progress.unread.saturating_sub(self.bytes);
        progress.read += self.bytes as u64;
        progress.moved = Some(Instant::now());
    }
}

struct TrackedBody {
    body: Body,
    /// Data of the body that was not handed on yet.
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
                    Ok(data) => {
                        self.pending.begin(data.len());
                        self.rest = data;
                    }
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                ended => return Poll::Ready(ended),
            }
        }
        let length = self.rest.len().min(CHUNK_BYTES);
        let unread = UnreadBytes {
            bytes: length,
            pending: Arc::clone(&self.pending),
        };
        let chunk = HeldBytes::new(self.rest.split_to(length), unread);
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
