//! Limits how much of a node one caller may hold or ask for at once. Two types do all the counting:
//!
//! - [`KeyedCounter`] counts per key and in all, and refuses at once.
//! - [`KeyedSemaphore`] has a number of turns per key, for which callers wait.
//!
//! The permit of either gives back its place when it is dropped, also if the client hangs up. Rates
//! (calls a second) are in `limit`. These are all limits of one caller on one node:
//!
//! | Of | Limit | Beyond it |
//! |---|---|---|
//! | an address | connections (`http::connection_limit`) | closed at once |
//! | an address | `rates.address` before a caller is known | 429 |
//! | an address | `rates.refused_tokens`, 4 introspections (`token_quota`) | 429; waits, then 503 |
//! | all strangers | 64 introspections, 80 with known tokens (`token_quota`) | waits, then 503 |
//! | a credential | memory for bodies (`http::memory`) | waits, then 503 |
//! | a credential | `rates.*` per id and kind of call, `rates.body_kib` (`limit`) | 429 |
//! | a credential | `limits.waits_per_identity` for one enforcer (`wait`) | 429 |
//! | a credential | `pairing.guesses_per_principal` wrong codes (`guess_limit`) | 429 |
//! | an identity | `limits.channels_per_identity` (`channel`) | its oldest channel is closed |
//! | a notification | 5 tests at once, then 1 a second (`notifications`) | 429 |
//! | an approver | 1 statement about devices (`devices`) | waits, then 503 |
//! | an approver | `limits.pending_per_approver`, and one enforcer's share (`load`) | 429 |
//! | a tenant | `limits.channels_per_tenant` (`channel`) | 503 |
//! | a tenant | `pairing.guesses_per_tenant` wrong codes (`guess_limit`) | 429 |
//! | a tenant | 1 state of a team (`teams`) | waits, then 503 |
//! | a tenant | 1 large body being parsed (`http::parsing`) | waits |
//! | a tenant | 256 deliveries, 32 of them failing, 32 turns (`notifications`) | left to the sweep |
//! | the node | `limits.channels_per_node` (`channel`) | 503 |
//! | the node | 4 guesses of pairing codes (`guess_limit`) | waits, then 503 |
//! | the node | 2,048 deliveries, 256 turns (`notifications`) | left to the sweep |

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::error::{Error, Result};
use crate::short_lock::ShortLock;

/// Keys after which unused ones are dropped for the first time.
const PRUNE_AT: usize = 1_024;

#[derive(Debug, Clone, Copy)]
pub struct CountLimit {
    pub per_key: usize,
    pub total: usize,
}

pub struct KeyedCounter<K> {
    state: ShortLock<CounterState<K>>,
}

struct CounterState<K> {
    counts: HashMap<K, usize>,
    total: usize,
}

impl<K> Default for KeyedCounter<K> {
    fn default() -> Self {
        Self {
            state: ShortLock::new(CounterState {
                counts: HashMap::new(),
                total: 0,
            }),
        }
    }
}

impl<K: Clone + Eq + Hash> KeyedCounter<K> {
    /// Counts `count` more of a key. `None` if that would exceed a limit.
    pub fn enter(
        self: &Arc<Self>,
        key: K,
        count: usize,
        limit: CountLimit,
    ) -> Option<CounterPermit<K>> {
        let mut state = self.state.lock();
        let before = state.counts.get(&key).copied().unwrap_or_default();
        if before + count > limit.per_key || state.total + count > limit.total {
            return None;
        }
        state.counts.insert(key.clone(), before + count);
        state.total += count;
        Some(CounterPermit {
            key,
            count,
            counter: Arc::clone(self),
        })
    }

    pub fn total(&self) -> usize {
        self.state.lock().total
    }

    /// The keys that count `count` or more.
    pub fn with_at_least(&self, count: usize) -> Vec<K> {
        let state = self.state.lock();
        let full = state.counts.iter().filter(|(_, own)| **own >= count);
        full.map(|(key, _)| key.clone()).collect()
    }
}

/// Counted places of a key. Dropping it gives them back.
pub struct CounterPermit<K: Clone + Eq + Hash> {
    key: K,
    count: usize,
    counter: Arc<KeyedCounter<K>>,
}

impl<K: Clone + Eq + Hash> Drop for CounterPermit<K> {
    fn drop(&mut self) {
        let mut state = self.counter.state.lock();
        state.total -= self.count;
        if let Some(count) = state.counts.get_mut(&self.key) {
            *count -= self.count;
            if *count == 0 {
                state.counts.remove(&self.key);
            }
        }
    }
}

/// A semaphore for each key, as long as somebody holds it.
pub struct KeyedSemaphore<K> {
    permits: usize,
    keys: ShortLock<SemaphoreMap<K>>,
}

struct SemaphoreMap<K> {
    semaphores: HashMap<K, Weak<Semaphore>>,
    prune_at: usize,
}

impl<K: Clone + Eq + Hash> KeyedSemaphore<K> {
    /// Semaphores with `permits` each.
    pub fn new(permits: usize) -> Self {
        Self {
            permits,
            keys: ShortLock::new(SemaphoreMap {
                semaphores: HashMap::new(),
                prune_at: PRUNE_AT,
            }),
        }
    }

    /// The semaphore of a key. It is never closed.
    pub fn of(&self, key: &K) -> Arc<Semaphore> {
        let mut keys = self.keys.lock();
        if let Some(semaphore) = keys.semaphores.get(key).and_then(Weak::upgrade) {
            return semaphore;
        }
        if keys.semaphores.len() >= keys.prune_at {
            keys.semaphores.retain(|_, held| held.strong_count() > 0);
            // The map doubles before the next pruning, so each insertion costs a constant amount.
            keys.prune_at = (2 * keys.semaphores.len()).max(PRUNE_AT);
        }
        let semaphore = Arc::new(Semaphore::new(self.permits));
        let held = Arc::downgrade(&semaphore);
        keys.semaphores.insert(key.clone(), held);
        semaphore
    }

    /// Waits for a turn of a key. A caller that waits longer than `time_limit` gets 503.
    pub async fn turn(&self, key: &K, time_limit: Duration) -> Result<TurnPermit> {
        let turn = turn_of_each([self.of(key)], Instant::now() + time_limit).await;
        turn.ok_or(Error::Unavailable)
    }
}

/// A turn of one or more semaphores. Dropping it gives them back.
pub struct TurnPermit(
    #[expect(dead_code, reason = "held until dropped")] Vec<OwnedSemaphorePermit>,
);

/// Waits for a turn of each semaphore, one after the other. `None` at the deadline.
pub async fn turn_of_each(
    semaphores: impl IntoIterator<Item = Arc<Semaphore>>,
    deadline: Instant,
) -> Option<TurnPermit> {
    let mut permits = Vec::new();
    for semaphore in semaphores {
        let permit = timeout_at(deadline, semaphore.acquire_owned()).await;
        permits.push(permit.ok()?.ok()?);
    }
    Some(TurnPermit(permits))
}
