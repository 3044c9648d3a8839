//! A stream that counts what it reads, and fails when its peer reads too slowly what is written to
//! it. By hand, because hyper has one timer for idle connections and for slow headers, and none for
//! peers that do not read.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use super::h1_framing::RequestScanner;
use super::h2_framing::FrameScanner;
use super::http_version::HttpVersion;
use super::relay::EventStream;

/// The counters of one connection.
#[derive(Default)]
pub struct ConnectionMeter {
    bytes: AtomicU64,
    /// One more than the number of the HTTP/2 frame that has begun and not ended; 0 for no frame.
    frame: AtomicU64,
    /// Whether HTTP/1 has given way to another protocol.
    upgraded: AtomicBool,
    requests: AtomicU64,
    in_flight: AtomicUsize,
    /// Whether something was written since the last flush.
    unflushed: AtomicBool,
    /// Bytes in flight that hold no memory permit.
    free: AtomicUsize,
    /// The event stream that hyper writes on this connection of HTTP/1.
    event_stream: OnceLock<EventStream>,
}

impl ConnectionMeter {
    /// The number of the HTTP/2 frame that has begun and not ended.
    pub fn unfinished_frame(&self) -> Option<u64> {
        self.frame.load(Ordering::Relaxed).checked_sub(1)
    }

    pub fn upgrade(&self) {
        self.upgraded.store(true, Ordering::Relaxed);
    }

    /// How many bytes were read. Over TLS, decrypted ones: key updates are no headers.
    pub fn read(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    pub fn flushed(&self) -> bool {
        !self.unflushed.load(Ordering::Relaxed)
    }

    /// Takes up to so many bytes of what is still free on this connection, and returns how many.
    pub fn take_free(&self, wanted: usize, limit: usize) -> usize {
        let mut taken = 0;
        let take = |used: usize| {
            taken = wanted.min(limit.saturating_sub(used));
            (taken > 0).then_some(used + taken)
        };
        let relaxed = Ordering::Relaxed;
        let updated = self.free.fetch_update(relaxed, relaxed, take);
        updated.map_or(0, |_| taken)
    }

    pub fn give_free(&self, bytes: usize) {
        if bytes > 0 {
            self.free.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    pub(super) fn carries(&self, stream: EventStream) {
        self.event_stream.get_or_init(|| stream);
    }

    /// Whether its event stream was ended, and the peer has not read all of it.
    pub fn is_aborted(&self) -> bool {
        let stream = self.event_stream.get();
        stream.is_some_and(EventStream::is_aborted) && !self.flushed()
    }

    /// Counts a request, which is in flight until the guard is dropped.
    pub fn begin(self: &Arc<Self>) -> InFlight {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(self))
    }
}

pub struct InFlight(Arc<ConnectionMeter>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How slowly a peer may read.
#[derive(Clone, Copy)]
pub struct ReadPace {
    /// It may read nothing for this time.
    pub pause: Duration,
    /// Bytes a second that it must read beside such pauses; with 0, each pause counts for itself.
    pub rate: u64,
}

impl ReadPace {
    /// How long so many bytes may take, pauses not counted.
    fn time_for(self, bytes: u64) -> Duration {
        if bytes == 0 {
            return Duration::ZERO;
        }
        // Without a rate, a peer that reads anything has made good for its pauses.
        let time = bytes.saturating_mul(1_000_000).checked_div(self.rate);
        Duration::from_micros(time.unwrap_or(u64::MAX))
    }

    /// When a peer is too slow that has read so many bytes since it began, the last of them at
    /// `moved`. `None` for never.
    pub fn deadline(self, begun: Instant, moved: Instant, bytes: u64) -> Option<Instant> {
        if self.rate == 0 {
            return moved.checked_add(self.pause);
        }
        begun.checked_add(self.pause.saturating_add(self.time_for(bytes)))
    }
}

/// Follows the bytes that the peer sends.
enum ConnectionScanner {
    Http1(RequestScanner),
    Http2(FrameScanner),
}

pub struct MeteredStream<S> {
    stream: S,
    scanner: ConnectionScanner,
    meter: Arc<ConnectionMeter>,
    pace: ReadPace,
    /// The time that writes have been pending, less the time for the bytes written since.
    waited: Duration,
    /// Runs while a write is pending, and only then; and since when it is.
    stalled: Option<(Pin<Box<Sleep>>, Instant)>,
}

impl<S> MeteredStream<S> {
    pub(super) fn new(
        stream: S,
        version: HttpVersion,
        meter: &Arc<ConnectionMeter>,
        pace: ReadPace,
    ) -> Self {
        Self {
            stream,
            scanner: match version {
                HttpVersion::Http1 => ConnectionScanner::Http1(RequestScanner::default()),
                HttpVersion::Http2 => ConnectionScanner::Http2(FrameScanner::default()),
            },
            meter: Arc::clone(meter),
            pace,
            waited: Duration::ZERO,
            stalled: None,
        }
    }

    fn scan(&mut self, bytes: &mut [u8]) {
        match &mut self.scanner {
            ConnectionScanner::Http1(scanner) => {
                if self.meter.upgraded.load(Ordering::Relaxed) {
                    scanner.stop();
                }
                scanner.read(bytes);
            }
            ConnectionScanner::Http2(scanner) => {
                scanner.read(bytes);
                let frame = scanner.unfinished().map_or(0, |frame| frame + 1);
                self.meter.frame.store(frame, Ordering::Relaxed);
            }
        }
    }

    /// Passes on the outcome of a write, or an error once writes have been pending for too long.
    /// Bytes that are written now and then make good only for the time that they may take, so that
    /// a peer cannot go on by reading a few.
    fn check_written<T>(
        &mut self,
        cx: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
        bytes: impl FnOnce(&T) -> usize,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(outcome) = &polled {
            if let Some((_, since)) = self.stalled.take() {
                self.waited += since.elapsed();
            }
            if !self.waited.is_zero()
                && let Ok(written) = outcome
            {
                let time = self.pace.time_for(bytes(written) as u64);
                self.waited = self.waited.saturating_sub(time);
            }
            return polled;
        }
        let left = self.pace.pause.saturating_sub(self.waited);
        let begin = || (Box::pin(sleep(left)), Instant::now());
        let (stalled, _) = self.stalled.get_or_insert_with(begin);
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for MeteredStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let ConnectionScanner::Http1(scanner) = &mut self.scanner
            && let Some(rest) = scanner.rest_of_refused()
        {
            buffer.put_slice(rest.get(..buffer.remaining()).unwrap_or(rest));
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let read = buffer.filled_mut().get_mut(before..).unwrap_or_default();
        self.meter
            .bytes
            .fetch_add(read.len() as u64, Ordering::Relaxed);
        self.scan(read);
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MeteredStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.meter.unflushed.store(true, Ordering::Relaxed);
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.check_written(cx, polled, |written| *written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        if polled.is_ready() {
            self.meter.unflushed.store(false, Ordering::Relaxed);
            // Next comes another answer.
            self.waited = Duration::ZERO;
            self.stalled = None;
        }
        self.check_written(cx, polled, |()| 0)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.check_written(cx, polled, |()| 0)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.meter.unflushed.store(true, Ordering::Relaxed);
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, buffers);
        self.check_written(cx, polled, |written| *written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
