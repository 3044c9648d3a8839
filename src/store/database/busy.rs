//! Rows that another transaction has locked. Statements pass over them (`skip locked`) and report them as busy. Such a row is
//! tried again after a pause, apart from all others, and holds no connection meanwhile.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::jitter::jitter;
use crate::store::error::{Result, StoreError};

/// First and longest pause. Most locks are held by a statement that is about to commit.
const PAUSES: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(128));

/// The row that a statement has to lock, if it could.
#[derive(Debug)]
pub enum RowLock<F> {
    Locked(F),
    /// Another transaction has the lock, and nothing was written.
    Busy,
}

impl<F> RowLock<F> {
    pub fn unless(busy: bool, fact: F) -> Self {
        if busy { Self::Busy } else { Self::Locked(fact) }
    }

    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Busy)
    }

    /// The fact, once no more tries are left.
    pub fn locked(self) -> Result<F> {
        match self {
            Self::Locked(fact) => Ok(fact),
            Self::Busy => Err(StoreError::Unavailable(
                "another transaction has locked the row".into(),
            )),
        }
    }
}

/// The tries of one busy row.
pub(in crate::store) struct LockTries {
    until: Instant,
    pause: Duration,
}

impl LockTries {
    pub fn new(patience: Duration) -> Self {
        Self {
            until: Instant::now() + patience,
            pause: PAUSES.0,
        }
    }

    /// The pause before the next try; `None` if there is none.
    pub fn next_pause(&mut self) -> Option<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        let pause = jitter(self.pause).min(left);
        self.pause = (self.pause * 2).min(PAUSES.1);
        (!pause.is_zero()).then_some(pause)
    }
}

/// Which keys were found busy, and until when no statement needs to try them: many calls about one locked row cost as little
/// as one.
#[derive(Default)]
pub(in crate::store) struct BusyKeys(Mutex<HashMap<String, Instant>>);

impl BusyKeys {
    pub fn add(&self, keys: Vec<String>, pause: Duration) {
        let now = Instant::now();
        let mut busy = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        busy.retain(|_, until| *until > now);
        busy.extend(keys.into_iter().map(|key| (key, now + pause)));
    }

    pub fn contain(&self, keys: &[String]) -> bool {
        let busy = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        !busy.is_empty() && {
            let now = Instant::now();
            keys.iter()
                .any(|key| busy.get(key).is_some_and(|until| *until > now))
        }
    }
}
