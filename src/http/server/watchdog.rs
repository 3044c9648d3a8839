//! Decides when a connection has kept the node waiting for too long. It changes nothing itself.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::h2_framing::PREFACE_BYTES;
use super::h2_stall::StallTracker;
use super::metered::{ConnectionMeter, ReadPace};

/// How long a peer may take.
#[derive(Clone, Copy)]
pub struct PeerTimeouts {
    pub headers: Duration,
    pub pace: ReadPace,
    /// For all of one answer.
    pub answer: Duration,
    pub idle: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// No request came for too long.
    Idle,
    /// Headers began and did not end.
    Headers,
    /// The peer read too little of what was written to it.
    Unread,
    /// The node is full, and the peer had not authenticated.
    Full,
    Stopping,
}

impl CloseReason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Headers => "headers",
            Self::Unread => "unread",
            Self::Full => "full",
            Self::Stopping => "stopping",
        }
    }
}

pub enum WatchdogVerdict {
    Keep,
    /// Nothing is under way: ask the peer to close.
    Retire,
    Close(CloseReason),
}

/// Watches for headers that begin and do not end, and for answers that take too long in all; over
/// HTTP/2, also for unread responses and idle connections. Over HTTP/1 the metered stream notices
/// the former, and the protocol library the latter.
pub struct ConnectionWatchdog {
    meter: Arc<ConnectionMeter>,
    /// Present for HTTP/2.
    stalls: Option<Arc<StallTracker>>,
    timeouts: PeerTimeouts,
    /// The number of requests while no HTTP/2 stream is open.
    idle: UnchangedNumber,
    /// Bytes and requests when the connection was last seen between two requests.
    between: Option<(u64, u64)>,
    /// Since when bytes have been arriving that do not make a request.
    headers_began: Option<Instant>,
    /// The HTTP/2 frame that is unfinished.
    frame: UnchangedNumber,
    /// The request over HTTP/1 whose answer is being written.
    writing: UnchangedNumber,
}

/// A number, and since when it has been the same.
#[derive(Default)]
struct UnchangedNumber(Option<(Instant, u64)>);

impl UnchangedNumber {
    /// How long the number has been the same; no time if there is no number.
    fn age(&mut self, number: Option<u64>) -> Duration {
        match (self.0, number) {
            (Some((since, seen)), Some(number)) if seen == number => since.elapsed(),
            _ => {
                self.0 = number.map(|number| (Instant::now(), number));
                Duration::ZERO
            }
        }
    }
}

impl ConnectionWatchdog {
    pub fn new(
        meter: &Arc<ConnectionMeter>,
        stalls: Option<&Arc<StallTracker>>,
        timeouts: PeerTimeouts,
    ) -> Self {
        Self {
            meter: Arc::clone(meter),
            stalls: stalls.cloned(),
            timeouts,
            idle: UnchangedNumber::default(),
            between: Some((0, 0)),
            headers_began: None,
            frame: UnchangedNumber::default(),
            writing: UnchangedNumber::default(),
        }
    }

    pub fn check(&mut self) -> WatchdogVerdict {
        if let Some(stalls) = &self.stalls {
            if stalls.check(self.timeouts.pace, self.timeouts.answer) {
                return WatchdogVerdict::Close(CloseReason::Unread);
            }
            // A preface that has begun has as long as headers.
            if !(1..PREFACE_BYTES as u64).contains(&self.meter.read()) {
                if self.frame_overdue() {
                    return WatchdogVerdict::Close(CloseReason::Headers);
                }
                return self.check_idle();
            }
        } else if self.answer_overdue() || self.meter.is_aborted() {
            return WatchdogVerdict::Close(CloseReason::Unread);
        }
        if self.headers_overdue() {
            WatchdogVerdict::Close(CloseReason::Headers)
        } else {
            WatchdogVerdict::Keep
        }
    }

    /// Whether one answer has been under way for too long. An event stream is flushed now and then.
    fn answer_overdue(&mut self) -> bool {
        let answered = (!self.meter.flushed()).then(|| self.meter.requests());
        self.writing.age(answered) > self.timeouts.answer
    }

    /// Whether one frame of HTTP/2, or one block of headers, has been arriving for too long.
    fn frame_overdue(&mut self) -> bool {
        // The protocol library does not read on while it cannot write.
        let unfinished = self.meter.unfinished_frame();
        let unfinished = unfinished.filter(|_| self.meter.flushed());
        self.frame.age(unfinished) > self.timeouts.headers
    }

    fn check_idle(&mut self) -> WatchdogVerdict {
        // A request may have come and gone between two checks.
        let idle = (self.meter.in_flight() == 0).then(|| self.meter.requests());
        if self.idle.age(idle) > self.timeouts.idle {
            WatchdogVerdict::Retire
        } else {
            WatchdogVerdict::Keep
        }
    }

    fn headers_overdue(&mut self) -> bool {
        let (bytes, requests) = (self.meter.read(), self.meter.requests());
        let busy = self.meter.in_flight() > 0;
        match self.between {
            Some((before, seen)) if !busy && seen == requests => {
                if bytes == before {
                    return false;
                }
                let began = *self.headers_began.get_or_insert_with(Instant::now);
                began.elapsed() > self.timeouts.headers
            }
            _ => {
                self.between = (!busy).then_some((bytes, requests));
                self.headers_began = None;
                false
            }
        }
    }
}
