//! A connection that counts what it reads, so that a peer that trickles its headers can be told from one that is idle.
//! The protocol library has one timer for both, and closing an idle connection early costs its client a failed request.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// What happened on a connection so far.
#[derive(Default)]
pub struct Meter {
    bytes: AtomicU64,
    requests: AtomicU64,
    in_flight: AtomicUsize,
    multiplexed: AtomicBool,
}

impl Meter {
    /// How many bytes were read.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Notes a request that begins; it ends when what is returned is dropped.
    pub fn begin(self: &Arc<Self>, version: axum::http::Version) -> InFlight {
        if version == axum::http::Version::HTTP_2 {
            self.multiplexed.store(true, Ordering::Relaxed);
        }
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(self))
    }
}

/// A request under way.
pub struct InFlight(Arc<Meter>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Watches for headers that begin and do not end.
pub struct Watchdog {
    meter: Arc<Meter>,
    patience: Duration,
    /// Bytes and requests when the connection was last seen quiet.
    quiet: Option<(u64, u64)>,
    /// Since when bytes have been coming that are no request yet.
    trickling: Option<Instant>,
}

impl Watchdog {
    /// A watchdog with this much patience.
    pub fn new(meter: &Arc<Meter>, patience: Duration) -> Self {
        Self {
            meter: Arc::clone(meter),
            patience,
            quiet: None,
            trickling: None,
        }
    }

    /// Looks once; true if the peer has used up its time.
    pub fn barks(&mut self) -> bool {
        let meter = &self.meter;
        let requests = meter.requests.load(Ordering::Relaxed);
        let bytes = meter.bytes.load(Ordering::Relaxed);
        let busy = meter.in_flight.load(Ordering::Relaxed) > 0
            || meter.multiplexed.load(Ordering::Relaxed);
        match self.quiet {
            Some((before, seen)) if !busy && seen == requests => {
                if bytes == before {
                    return false;
                }
                self.trickling.get_or_insert_with(Instant::now).elapsed() > self.patience
            }
            _ => {
                (self.quiet, self.trickling) = ((!busy).then_some((bytes, requests)), None);
                false
            }
        }
    }
}

/// A stream that counts.
pub struct Metered<S> {
    stream: S,
    meter: Arc<Meter>,
}

impl<S> Metered<S> {
    /// Counts what this stream reads.
    pub fn new(stream: S, meter: &Arc<Meter>) -> Self {
        Self {
            stream,
            meter: Arc::clone(meter),
        }
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
        let count = buffer.filled().len() - before;
        self.meter.bytes.fetch_add(count as u64, Ordering::Relaxed);
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
