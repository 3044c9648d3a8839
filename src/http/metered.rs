//! A connection that counts what it reads, so that a peer that trickles its headers can be told from one that is idle: the
//! protocol library has one timer for both, and closing an idle connection early costs its client a failed request. And
//! one that breaks when its peer takes nothing of what is written to it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use super::h2_stall::StallTracker;

/// How a connection of HTTP/2 begins.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[derive(Default)]
pub struct Meter {
    bytes: AtomicU64,
    requests: AtomicU64,
    in_flight: AtomicUsize,
    multiplexed: AtomicBool,
    /// Whether something was written since all that was to be written had gone out.
    unflushed: AtomicBool,
    /// What a peer of HTTP/2 has not taken yet.
    pub stalls: StallTracker,
}

impl Meter {
    /// How many bytes were read.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether all that was to be written has gone out.
    #[must_use]
    pub fn flushed(&self) -> bool {
        !self.unflushed.load(Ordering::Relaxed)
    }

    /// Notes a request that begins; it ends when what is returned is dropped.
    pub fn begin(self: &Arc<Self>) -> InFlight {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(self))
    }
}

pub struct InFlight(Arc<Meter>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How long a peer may take for things.
#[derive(Clone, Copy)]
pub struct Timeouts {
    pub headers: Duration,
    pub writing: Duration,
    pub idle: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// No request came for too long.
    Idle,
    /// Headers began and did not end.
    Headers,
    /// The peer took nothing of what was written to it.
    Unread,
    Stopping,
}

impl CloseReason {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Headers => "headers",
            Self::Unread => "unread",
            Self::Stopping => "stopping",
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Stays,
    /// It is asked to end: nothing is under way.
    Retires,
    Closes(CloseReason),
}

/// Watches for headers that begin and do not end; over HTTP/2, also for answers that are not taken, and for connections on
/// which nothing happens. (Over HTTP/1 those are the stream's and the protocol library's.)
pub struct Watchdog {
    meter: Arc<Meter>,
    timeouts: Timeouts,
    /// Since when no request has been under way over HTTP/2, and how many there were until then.
    idle: Option<(Instant, u64)>,
    /// Bytes and requests when the connection was last seen quiet.
    quiet: Option<(u64, u64)>,
    /// Since when bytes have been coming that are no request yet.
    trickling: Option<Instant>,
}

impl Watchdog {
    pub fn new(meter: &Arc<Meter>, timeouts: Timeouts) -> Self {
        Self {
            meter: Arc::clone(meter),
            timeouts,
            idle: None,
            quiet: Some((0, 0)),
            trickling: None,
        }
    }

    /// Looks once.
    pub fn looks(&mut self) -> Verdict {
        if self.meter.multiplexed.load(Ordering::Relaxed) {
            self.judge_streams()
        } else if self.trickles() {
            Verdict::Closes(CloseReason::Headers)
        } else {
            Verdict::Stays
        }
    }

    /// Whether there are streams, and whether their answers are taken.
    fn judge_streams(&mut self) -> Verdict {
        if self.meter.stalls.overdue(self.timeouts.writing) {
            return Verdict::Closes(CloseReason::Unread);
        }
        if self.meter.in_flight.load(Ordering::Relaxed) > 0 {
            self.idle = None;
            return Verdict::Stays;
        }
        // A request may have come and gone between two looks.
        let requests = self.meter.requests.load(Ordering::Relaxed);
        let (since, _) = match self.idle {
            Some(idle) if idle.1 == requests => idle,
            _ => *self.idle.insert((Instant::now(), requests)),
        };
        if since.elapsed() > self.timeouts.idle {
            Verdict::Retires
        } else {
            Verdict::Stays
        }
    }

    /// Whether headers have begun that do not end.
    fn trickles(&mut self) -> bool {
        let meter = &self.meter;
        let requests = meter.requests.load(Ordering::Relaxed);
        let bytes = meter.bytes.load(Ordering::Relaxed);
        let busy = meter.in_flight.load(Ordering::Relaxed) > 0;
        match self.quiet {
            Some((before, seen)) if !busy && seen == requests => {
                if bytes == before {
                    return false;
                }
                self.trickling.get_or_insert_with(Instant::now).elapsed() > self.timeouts.headers
            }
            _ => {
                (self.quiet, self.trickling) = ((!busy).then_some((bytes, requests)), None);
                false
            }
        }
    }
}

/// A stream that counts, and does not wait for ever to be read.
pub struct Metered<S> {
    stream: S,
    meter: Arc<Meter>,
    /// What is left of HTTP/2's preface, as long as nothing else was read.
    preface: &'static [u8],
    time_limit: Duration,
    /// When the peer, which takes nothing, has had its time. Only there while it takes nothing.
    stuck: Option<Pin<Box<Sleep>>>,
}

impl<S> Metered<S> {
    /// Counts what this stream reads; breaks it where nothing can be written for as long as `patience`.
    pub fn new(stream: S, meter: &Arc<Meter>, time_limit: Duration) -> Self {
        Self {
            stream,
            meter: Arc::clone(meter),
            preface: PREFACE,
            time_limit,
            stuck: None,
        }
    }

    /// Notes what was read. A peer that has said that it speaks HTTP/2 is not one whose headers do not end.
    fn note_read(&mut self, read: &[u8]) {
        let bytes = read.len() as u64;
        self.meter.bytes.fetch_add(bytes, Ordering::Relaxed);
        if self.preface.is_empty() || read.is_empty() {
            return;
        }
        let length = self.preface.len().min(read.len());
        let (said, rest) = self.preface.split_at(length);
        if !read.starts_with(said) {
            self.preface = &[];
            return;
        }
        self.preface = rest;
        if rest.is_empty() {
            self.meter.multiplexed.store(true, Ordering::Relaxed);
        }
    }

    /// What came of writing, or an error once it has been pending for too long.
    fn written<T>(
        &mut self,
        cx: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.stuck = None;
            return polled;
        }
        let time_limit = self.time_limit;
        let stuck = self
            .stuck
            .get_or_insert_with(|| Box::pin(sleep(time_limit)));
        ready!(stuck.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        self.note_read(&buffer.filled()[before..]);
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.meter.unflushed.store(true, Ordering::Relaxed);
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.written(cx, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        if polled.is_ready() {
            self.meter.unflushed.store(false, Ordering::Relaxed);
        }
        self.written(cx, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.written(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.meter.unflushed.store(true, Ordering::Relaxed);
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, buffers);
        self.written(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
