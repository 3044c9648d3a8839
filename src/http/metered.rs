//! A stream that counts what it reads, and fails when its peer reads nothing of what is written to it. By hand, because
//! hyper has one timer for idle connections and for slow headers, and none for peers that do not read.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// What a connection has done so far.
#[derive(Default)]
pub struct Meter {
    bytes: AtomicU64,
    requests: AtomicU64,
    in_flight: AtomicUsize,
    /// Whether something was written since the last flush.
    unflushed: AtomicBool,
}

impl Meter {
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

    /// Counts a request, which is in flight until the guard is dropped.
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

pub struct Metered<S> {
    stream: S,
    meter: Arc<Meter>,
    write_timeout: Duration,
    /// Runs while a write is pending, and only then.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Metered<S> {
    pub fn new(stream: S, meter: &Arc<Meter>, write_timeout: Duration) -> Self {
        Self {
            stream,
            meter: Arc::clone(meter),
            write_timeout,
            stalled: None,
        }
    }

    /// Passes on the outcome of a write, or an error once it has been pending for too long.
    fn check_written<T>(
        &mut self,
        cx: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.stalled = None;
            return polled;
        }
        let timeout = self.write_timeout;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(timeout)));
        ready!(stalled.as_mut().poll(cx));
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
        let read = (buffer.filled().len() - before) as u64;
        self.meter.bytes.fetch_add(read, Ordering::Relaxed);
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
        self.check_written(cx, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        if polled.is_ready() {
            self.meter.unflushed.store(false, Ordering::Relaxed);
        }
        self.check_written(cx, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.check_written(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.meter.unflushed.store(true, Ordering::Relaxed);
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, buffers);
        self.check_written(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
