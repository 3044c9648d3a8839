//! Wakes whoever waits for a change in the database. A wake is a hint to read the rows again, never the news itself; the
//! fallback poll finds what a lost hint did not bring. A waiter registers, then reads, then waits.

mod bus;
mod fallback_poll;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::config::{Config, WakeMode};
pub use crate::protocol::wake_key::Key;
use crate::store::Store;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A hint, from this node or another.
    Hint,
    /// The fallback poll, which runs whether or not there were hints.
    Poll,
}

/// Hints waiting for the bus. When more come, it wakes everyone on the other nodes instead.
const BUS_QUEUE: usize = 8_192;

/// Wakes waiters on this node, and sends hints to the other nodes.
pub struct Hub {
    waiters: Arc<Waiters>,
    bus: Option<mpsc::Sender<Key>>,
    health: Arc<Health>,
}

#[derive(Default)]
struct Health {
    receiving: AtomicBool,
    /// Set when hints had to be dropped: the bus then wakes everyone.
    overflow: AtomicBool,
}

impl Hub {
    /// Starts the bus and the fallback poll of a node; they end with `stop`.
    pub fn start(
        config: &Config,
        clock: &Clock,
        store: &Arc<Store>,
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) -> Self {
        let waiters = Arc::new(Waiters::default());
        let health = Arc::new(Health::default());
        let bus = (config.wake.mode == WakeMode::Notify).then(|| {
            let (sender, receiver) = mpsc::channel(BUS_QUEUE);
            let metrics = Arc::clone(store.database.metrics());
            let bus = bus::Bus::new(
                config,
                clock,
                metrics,
                Arc::clone(&waiters),
                Arc::clone(&health),
            );
            bus.start(receiver, tasks, stop);
            sender
        });
        fallback_poll::start(
            &config.wake,
            Arc::clone(&waiters),
            Arc::clone(store),
            Arc::clone(&health),
            tasks,
            stop,
        );
        Self {
            waiters,
            bus,
            health,
        }
    }

    /// Wakes the waiters of these keys, here at once and on other nodes through the bus. Call it after the commit.
    pub fn wake(&self, keys: impl IntoIterator<Item = Key>) {
        for key in keys {
            self.waiters.wake(key.digest(), Cause::Hint);
            if let Some(bus) = &self.bus
                && bus.try_send(key).is_err()
            {
                self.health.overflow.store(true, Ordering::Relaxed);
            }
        }
    }

    /// The same where nobody can wait on another node.
    pub fn wake_here(&self, keys: impl IntoIterator<Item = Key>) {
        for key in keys {
            self.waiters.wake(key.digest(), Cause::Hint);
        }
    }

    /// Registers a waiter. Read only after this, or a change in between is lost.
    pub fn register(&self, key: Key) -> Waiter {
        self.waiters.register(key)
    }

    /// Whether hints from other nodes arrive; if not, the fallback poll runs often.
    pub fn healthy(&self) -> bool {
        self.bus.is_none() || self.health.receiving.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
struct Waiters {
    /// By digest of the key. Held for a few instructions, never across an await.
    entries: Mutex<HashMap<u64, Entry>>,
}

/// A key that is waited on. Two keys with one digest share it and are woken together.
struct Entry {
    key: Key,
    /// Number of hints. The fallback poll notifies without changing it, so an unseen hint is still seen as a hint.
    hints: watch::Sender<u64>,
}

impl Entry {
    fn wake(&self, cause: Cause) {
        self.hints.send_modify(|hints| match cause {
            Cause::Hint => *hints = hints.wrapping_add(1),
            Cause::Poll => {}
        });
    }
}

impl Waiters {
    fn entries(&self) -> MutexGuard<'_, HashMap<u64, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn register(self: &Arc<Self>, key: Key) -> Waiter {
        let digest = key.digest();
        let mut entries = self.entries();
        let entry = entries.entry(digest).or_insert_with(|| Entry {
            key,
            hints: watch::Sender::new(0),
        });
        let hints = entry.hints.subscribe();
        let seen = *hints.borrow();
        Waiter {
            digest,
            seen,
            hints: Some(hints),
            waiters: Arc::clone(self),
        }
    }

    fn wake(&self, digest: u64, cause: Cause) {
        if let Some(entry) = self.entries().get(&digest) {
            entry.wake(cause);
        }
    }

    fn wake_everyone(&self) {
        for entry in self.entries().values() {
            entry.wake(Cause::Hint);
        }
    }

    fn keys(&self) -> Vec<Key> {
        let entries = self.entries();
        entries.values().map(|entry| entry.key.clone()).collect()
    }
}

/// A registered waiter; dropping it unregisters it.
pub struct Waiter {
    digest: u64,
    hints: Option<watch::Receiver<u64>>,
    seen: u64,
    waiters: Arc<Waiters>,
}

impl Waiter {
    /// Waits for the next wake since the last one, and returns its cause.
    pub async fn woken(&mut self) -> Cause {
        let Some(hints) = &mut self.hints else {
            return std::future::pending().await;
        };
        // The entry lives as long as its waiters, so the sender is never gone.
        drop(hints.changed().await);
        let before = std::mem::replace(&mut self.seen, *hints.borrow_and_update());
        if self.seen == before {
            Cause::Poll
        } else {
            Cause::Hint
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut entries = self.waiters.entries();
        self.hints = None;
        let entry = entries.get(&self.digest);
        if entry.is_some_and(|entry| entry.hints.receiver_count() == 0) {
            entries.remove(&self.digest);
        }
    }
}
