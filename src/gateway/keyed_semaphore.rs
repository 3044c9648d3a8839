//! A semaphore for each key, as long as somebody holds it.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Semaphore;

/// Keys after which unused ones are dropped for the first time.
const PRUNE_AT: usize = 1_024;

pub struct KeyedSemaphore<K> {
    permits: usize,
    /// Held for a few instructions, never across an await.
    keys: Mutex<SemaphoreMap<K>>,
}

struct SemaphoreMap<K> {
    semaphores: HashMap<K, Weak<Semaphore>>,
    prune_at: usize,
}

impl<K: Clone + Eq + Hash> KeyedSemaphore<K> {
    /// Semaphores with so many permits each.
    pub fn new(permits: usize) -> Self {
        Self {
            permits,
            keys: Mutex::new(SemaphoreMap {
                semaphores: HashMap::new(),
                prune_at: PRUNE_AT,
            }),
        }
    }

    /// The semaphore of a key. It is never closed.
    pub fn of(&self, key: &K) -> Arc<Semaphore> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(semaphore) = keys.semaphores.get(key).and_then(Weak::upgrade) {
            return semaphore;
        }
        if keys.semaphores.len() >= keys.prune_at {
            keys.semaphores.retain(|_, held| held.strong_count() > 0);
            // Not before as many were added: however many are in use, each costs one look.
            keys.prune_at = (2 * keys.semaphores.len()).max(PRUNE_AT);
        }
        let semaphore = Arc::new(Semaphore::new(self.permits));
        let held = Arc::downgrade(&semaphore);
        keys.semaphores.insert(key.clone(), held);
        semaphore
    }
}
