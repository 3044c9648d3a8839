//! Accounts for a message that has not arrived completely. tungstenite buffers it out of sight, so its size is derived from
//! what the connection has read. It needs memory and has a deadline like a body; an idle socket pays for neither.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Sleep, sleep};

use crate::http::memory_permit::MemoryPermit;
use crate::http::metered::Meter;

/// Bytes that need no permit. Fewer than for a body, because there are more channels than uploads.
const SMALL: usize = 8 << 10;
/// Header of a client's control frame.
const CONTROL_HEADER: u64 = 6;

#[derive(Debug)]
pub enum PartialEvent {
    NeedsMemory,
    TimedOut,
}

pub struct PartialMessage {
    meter: Arc<Meter>,
    /// Bytes read that made up complete messages and control frames.
    complete: u64,
    memory: MemoryPermit,
    /// Set while a message is arriving.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl PartialMessage {
    pub fn new(meter: Arc<Meter>) -> Self {
        Self {
            complete: meter.read(),
            meter,
            memory: MemoryPermit::default(),
            deadline: None,
        }
    }

    fn bytes(&self) -> usize {
        let bytes = self.meter.read().saturating_sub(self.complete);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// Must be polled after the socket, which is what reads more.
    pub fn poll_event(&mut self, cx: &mut Context<'_>, time_limit: Duration) -> Poll<PartialEvent> {
        let bytes = self.bytes();
        if bytes == 0 {
            self.deadline = None;
            return Poll::Pending;
        }
        if !self.memory.covers(bytes.saturating_sub(SMALL)) {
            return Poll::Ready(PartialEvent::NeedsMemory);
        }
        let deadline = self
            .deadline
            .get_or_insert_with(|| Box::pin(sleep(time_limit)));
        ready!(deadline.as_mut().poll(cx));
        Poll::Ready(PartialEvent::TimedOut)
    }

    /// Waits until so many more bytes have been read. Must be polled after the socket.
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

    /// Acquires the memory that has been missing. False if there is none left.
    pub async fn acquire_memory(&mut self, all: &Arc<Semaphore>) -> bool {
        let bytes = self.bytes().saturating_sub(SMALL);
        self.memory.acquire(all, bytes).await
    }

    /// Notes a control frame, which may have come in the middle of a message.
    pub fn note_control(&mut self, payload: usize) {
        let complete = self.complete + CONTROL_HEADER + payload as u64;
        self.complete = complete.min(self.meter.read());
    }

    /// Notes that the message is complete. Its memory is held until the permit is dropped; `None` if there is none left.
    pub async fn finish(&mut self, size: usize, all: &Arc<Semaphore>) -> Option<MemoryPermit> {
        (self.complete, self.deadline) = (self.meter.read(), None);
        let mut memory = std::mem::take(&mut self.memory);
        let acquired = memory.acquire(all, size.saturating_sub(SMALL)).await;
        acquired.then_some(memory)
    }
}
