//! Tells a server that is slow from one that is gone. Both leave calls without an answer; only the second answers nobody.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longer than calls usually wait for a lock.
pub(in crate::store) const PULSE_LIFETIME: Duration = Duration::from_secs(3);

/// When the server last answered on any connection of a pool, if it ever did.
#[derive(Default)]
pub(in crate::store) struct ServerPulse(Mutex<Option<Instant>>);

impl ServerPulse {
    pub(in crate::store) fn beat(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Whether it answered a moment ago. Its other connections are worth keeping then: new ones would cost a slow server more than
    /// the calls that wait for it.
    pub(in crate::store) fn is_alive(&self) -> bool {
        let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.is_some_and(|last| last.elapsed() < PULSE_LIFETIME)
    }
}
