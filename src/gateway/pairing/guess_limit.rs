//! Limits guesses of pairing codes. The store counts them. A guesser that it refused is refused
//! here without a statement, and few guesses are judged at once.

use std::time::Duration;

use quick_cache::sync::Cache;

use crate::gateway::admission::{KeyedSemaphore, TurnPermit};
use crate::gateway::error::{Error, Result, ThrottleDetails};
use crate::protocol::timestamp::Timestamp;
use crate::store::pairing::code::WINDOW_SECONDS;

const TURN_TIMEOUT: Duration = Duration::from_secs(2);
/// Guesses judged at once.
const AT_ONCE: usize = 4;
/// Refused guessers cached; the database refuses the others.
const CAPACITY: usize = 10_000;

#[derive(Clone, Copy)]
struct RefusedGuesser {
    until: Timestamp,
    quota: u32,
}

pub(in crate::gateway) struct GuessLimiter {
    refused: Cache<String, RefusedGuesser>,
    /// One key: guesses lock the same rows for all callers.
    turns: KeyedSemaphore<()>,
}

impl Default for GuessLimiter {
    fn default() -> Self {
        Self {
            refused: Cache::new(CAPACITY),
            turns: KeyedSemaphore::new(AT_ONCE),
        }
    }
}

fn too_many(quota: u32, retry_after: Duration) -> Error {
    Error::Throttled(ThrottleDetails {
        policy: "guesses",
        calls: "wrong codes".into(),
        quota,
        window_seconds: WINDOW_SECONDS,
        retry_after,
    })
}

impl GuessLimiter {
    /// Refuses a guesser that was refused and has not waited since.
    pub(in crate::gateway) fn check(&self, guesser: &str, now: Timestamp) -> Result<()> {
        let Some(refused) = self.refused.get(guesser) else {
            return Ok(());
        };
        match Duration::try_from(refused.until.inner() - now.inner()) {
            Ok(retry_after) if !retry_after.is_zero() => Err(too_many(refused.quota, retry_after)),
            _ => {
                self.refused.remove(guesser);
                Ok(())
            }
        }
    }

    pub(in crate::gateway) fn refuse(
        &self,
        guesser: String,
        quota: u32,
        retry_after: Duration,
        now: Timestamp,
    ) -> Error {
        let until = Timestamp::from(now.inner() + retry_after);
        self.refused
            .insert(guesser, RefusedGuesser { until, quota });
        too_many(quota, retry_after)
    }

    /// Waits for a turn, up to a timeout.
    pub(in crate::gateway) async fn turn(&self) -> Result<TurnPermit> {
        self.turns.turn(&(), TURN_TIMEOUT).await
    }
}
