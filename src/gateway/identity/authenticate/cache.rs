//! A cache of rows that every node refreshes every 2 s. It is not used while the refresh is
//! overdue, so that a change takes effect everywhere within 5 s.

use std::hash::Hash;
use std::time::Duration;

use quick_cache::unsync::Cache;
use tokio::time::Instant;

use crate::gateway::error::Result;
use crate::short_lock::ShortLock;

/// How long a cache is used after the last refresh: less than the 5 s that a revocation may take.
const USE_LIFETIME: Duration = Duration::from_secs(4);
/// How far back before the last refresh a refresh asks: much longer than a change takes to become
/// visible.
const RECENT_CHANGE_LIFETIME: Duration = Duration::from_secs(60);

pub(in crate::gateway) struct RefreshedCache<K, V> {
    state: ShortLock<CacheState<K, V>>,
}

struct CacheState<K, V> {
    known: Cache<K, V>,
    refreshed: Option<Instant>,
    /// Counts refreshes, so that a row read before one is not cached after it.
    generation: u64,
}

/// The refresh before which a row was read.
#[derive(Clone, Copy)]
pub(in crate::gateway) struct CacheGeneration(u64);

impl<K: Clone + Eq + Hash, V: Clone> RefreshedCache<K, V> {
    pub fn new(capacity: usize) -> Self {
        Self {
            state: ShortLock::new(CacheState {
                known: Cache::new(capacity),
                refreshed: None,
                generation: 0,
            }),
        }
    }

    pub fn generation(&self) -> CacheGeneration {
        CacheGeneration(self.state.lock().generation)
    }

    pub fn insert(&self, key: K, value: V, generation: CacheGeneration) {
        let mut state = self.state.lock();
        if state.generation == generation.0 {
            state.known.insert(key, value);
        }
    }

    /// The cached value, or the one that `read` finds.
    pub async fn get_or_read(
        &self,
        key: &K,
        read: impl Future<Output = Result<Option<V>>>,
    ) -> Result<Option<V>> {
        let generation = {
            let state = self.state.lock();
            let is_fresh = |at: Instant| at.elapsed() < USE_LIFETIME;
            if state.refreshed.is_some_and(is_fresh)
                && let Some(known) = state.known.get(key)
            {
                return Ok(Some(known.clone()));
            }
            CacheGeneration(state.generation)
        };
        let found = read.await?;
        if let Some(found) = &found {
            self.insert(key.clone(), found.clone(), generation);
        }
        Ok(found)
    }

    pub fn keys(&self) -> Vec<K> {
        let state = self.state.lock();
        state.known.iter().map(|(key, _)| key.clone()).collect()
    }

    /// How many seconds back the next refresh must ask for changes.
    pub fn seconds_to_ask(&self) -> f64 {
        let refreshed = self.state.lock().refreshed;
        let ago = refreshed.map_or(Duration::ZERO, |at| at.elapsed());
        (ago + RECENT_CHANGE_LIFETIME).as_secs_f64()
    }

    /// Removes rows that changed. The second argument of `update` says that the last refresh was
    /// too long ago: rows may have changed before the time that was asked for.
    pub fn refresh(&self, asked: Instant, update: impl FnOnce(&mut Cache<K, V>, bool)) {
        let mut state = self.state.lock();
        let is_late = |at: Instant| at.elapsed() > RECENT_CHANGE_LIFETIME / 2;
        let missed = state.refreshed.is_none_or(is_late);
        update(&mut state.known, missed);
        // The time of the question: the answer may be as old as that.
        state.refreshed = Some(asked);
        state.generation += 1;
    }
}
