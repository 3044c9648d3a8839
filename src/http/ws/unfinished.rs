//! What has been read of a message that is not whole yet. The socket's library keeps it out of sight, so it is told by what the
//! connection has read: it takes up room like a body, and has as long as a body. An idle socket pays for none of this.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Sleep, sleep};

use crate::http::memory_permit::MemoryPermit;
use crate::http::metered::Meter;

/// Bytes that need no room: there are only so many channels, but more than connections that send large bodies.
const SMALL: usize = 8 << 10;
/// What a client's control frame has around its payload.
const CONTROL_HEAD: u64 = 6;

#[derive(Debug)]
pub enum Want {
    Memory,
    /// Nothing: it has taken too long.
    Late,
}

pub struct Unfinished {
    meter: Arc<Meter>,
    /// What was read of it that made whole messages and control frames.
    settled: u64,
    memory: MemoryPermit,
    /// When its time is over; only there while one is coming.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Unfinished {
    /// None yet.
    pub fn new(meter: Arc<Meter>) -> Self {
        Self {
            settled: meter.read(),
            meter,
            memory: MemoryPermit::default(),
            deadline: None,
        }
    }

    fn bytes(&self) -> usize {
        let bytes = self.meter.read().saturating_sub(self.settled);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// Waits until it wants something. Only to be polled after the socket was: that is when more has been read.
    pub fn poll_want(&mut self, cx: &mut Context<'_>, time_limit: Duration) -> Poll<Want> {
        let bytes = self.bytes();
        if bytes == 0 {
            self.deadline = None;
            return Poll::Pending;
        }
        if !self.memory.holds(bytes.saturating_sub(SMALL)) {
            return Poll::Ready(Want::Memory);
        }
        let deadline = self
            .deadline
            .get_or_insert_with(|| Box::pin(sleep(time_limit)));
        ready!(deadline.as_mut().poll(cx));
        Poll::Ready(Want::Late)
    }

    /// Waits until so many more bytes have been read. Only to be polled after the socket was.
    pub async fn grown_by(&self, bytes: u64) {
        let enough = self.meter.read() + bytes;
        poll_fn(|_| {
            if self.meter.read() < enough {
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        })
        .await;
    }

    /// Takes the room it wants. False if there is none.
    pub async fn take_memory(&mut self, all: &Arc<Semaphore>) -> bool {
        let bytes = self.bytes().saturating_sub(SMALL);
        self.memory.take(all, bytes).await
    }

    /// Notes a control frame. It may have come in the middle of a message, which goes on.
    pub fn note_control(&mut self, payload: usize) {
        let settled = self.settled + CONTROL_HEAD + payload as u64;
        self.settled = settled.min(self.meter.read());
    }

    /// A whole message of this size, with the room that it holds until it has been worked on; nothing if there is none.
    pub async fn finish(&mut self, size: usize, all: &Arc<Semaphore>) -> Option<MemoryPermit> {
        (self.settled, self.deadline) = (self.meter.read(), None);
        let mut memory = std::mem::take(&mut self.memory);
        let fits = memory.take(all, size.saturating_sub(SMALL)).await;
        fits.then_some(memory)
    }
}
