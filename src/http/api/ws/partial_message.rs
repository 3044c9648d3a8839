//! Accounts for a message that has not arrived completely. tungstenite buffers it out of sight, so
//! its size is derived from what the connection has read. It needs memory and has a deadline like a
//! body; an idle socket pays for neither.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

use crate::http::server::memory::{FREE_BYTES, MemoryPermit};
use crate::http::server::metered::ConnectionMeter;

/// Header of a client's control frame.
const CONTROL_HEADER: u64 = 6;

#[derive(Debug)]
pub enum PartialEvent {
    NeedsMemory,
    TimedOut,
}

pub struct PartialMessage {
    meter: Arc<ConnectionMeter>,
    /// Bytes read that made up complete messages and control frames.
    complete: u64,
    memory: MemoryPermit,
    /// Set while a message is arriving.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl PartialMessage {
    /// Its memory is added to an empty permit.
    pub fn new(meter: Arc<ConnectionMeter>, memory: MemoryPermit) -> Self {
        Self {
            complete: meter.read(),
            meter,
            memory,
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
        if !self.memory.covers(bytes.saturating_sub(FREE_BYTES)) {
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
    pub async fn acquire_memory(&mut self) -> bool {
        let bytes = self.bytes().saturating_sub(FREE_BYTES);
        self.memory.grow(bytes).await
    }

    /// Notes a control frame, which may have come in the middle of a message.
    pub fn note_control(&mut self, payload: usize) {
        let complete = self.complete + CONTROL_HEADER + payload as u64;
        self.complete = complete.min(self.meter.read());
    }

    /// Notes that the message is complete, and returns its memory; `None` if there is no more.
    pub async fn finish(&mut self, size: usize) -> Option<MemoryPermit> {
        (self.complete, self.deadline) = (self.meter.read(), None);
        let mut memory = self.memory.take();
        let acquired = memory.grow(size.saturating_sub(FREE_BYTES)).await;
        acquired.then_some(memory)
    }
}
