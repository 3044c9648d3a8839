//! Pauses between attempts, and polling until something has happened.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::error::Result;
use countersign_protocol::jitter::jitter;

/// The pause before the next attempt. It varies by a fifth, and doubles up to a limit.
pub(crate) struct RetryPause {
    pause: Duration,
    max: Duration,
}

impl RetryPause {
    pub(crate) const fn new(first: Duration, max: Duration) -> Self {
        Self { pause: first, max }
    }

    pub(crate) const fn constant(pause: Duration) -> Self {
        Self::new(pause, pause)
    }

    pub(crate) fn current(&self) -> Duration {
        jitter(self.pause)
    }

    pub(crate) fn lengthen(&mut self) {
        self.pause = (self.pause * 2).min(self.max);
    }
}

/// Calls `attempt` until its result is final, for up to `time`. Returns the last result.
pub(crate) async fn poll<T>(
    mut pause: RetryPause,
    time: Duration,
    is_final: impl Fn(&T) -> bool,
    attempt: impl AsyncFn() -> Result<T>,
) -> Result<T> {
    let until = Instant::now() + time;
    loop {
        let result = attempt().await?;
        let next = Instant::now() + pause.current();
        if is_final(&result) || next >= until {
            return Ok(result);
        }
        sleep_until(next).await;
        pause.lengthen();
    }
}
