//! Guessers this node has refused: until their minute is over they are refused again without asking the database, and few
//! guesses are judged at a time. The counting itself is the store's.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::error::Error;
use crate::protocol::timestamp::Timestamp;

const PATIENCE: Duration = Duration::from_secs(2);
/// Guesses judged at once.
const AT_ONCE: usize = 4;
/// Refused guessers remembered; past this the memory starts over, and the database refuses them.
const MAX_REFUSED: usize = 10_000;

struct TooManyGuesses {
    until: Timestamp,
    quota: u32,
}

pub(super) struct Guesses {
    /// Held for a few instructions, never across an await.
    refused: Mutex<HashMap<String, TooManyGuesses>>,
    turns: Semaphore,
}

impl Default for Guesses {
    fn default() -> Self {
        Self {
            refused: Mutex::default(),
            turns: Semaphore::new(AT_ONCE),
        }
    }
}

impl Guesses {
    /// Refuses whoever was refused and has not waited since.
    pub(super) fn check(&self, principal: &str, now: Timestamp) -> Result<(), Error> {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = refused.get(principal) else {
            return Ok(());
        };
        match Duration::try_from(known.until.inner() - now.inner()) {
            Ok(retry_after) if !retry_after.is_zero() => Err(Error::TooManyGuesses {
                retry_after,
                quota: known.quota,
            }),
            _ => {
                refused.remove(principal);
                Ok(())
            }
        }
    }

    pub(super) fn refuse(
        &self,
        principal: &str,
        quota: u32,
        retry_after: Duration,
        now: Timestamp,
    ) -> Error {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() >= MAX_REFUSED {
            refused.clear();
        }
        let until = Timestamp::from(now.inner() + retry_after);
        refused.insert(principal.to_owned(), TooManyGuesses { until, quota });
        Error::TooManyGuesses { retry_after, quota }
    }

    /// Waits for a turn, for a while.
    pub(super) async fn turn(&self) -> Result<SemaphorePermit<'_>, Error> {
        match timeout(PATIENCE, self.turns.acquire()).await {
            Ok(turn) => turn.map_err(|_| Error::Internal),
            Err(_) => Err(Error::Unavailable),
        }
    }
}
