//! Waking: rows are the truth, a wake is only a hint that someone must look, and the net catches every lost hint.
//! A waiter registers, then reads, then waits; it is a counter and not a queue, since the rows are the queue.

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
    /// The net, which looks whether or not there were hints.
    Net,
}

/// Hints waiting for the bus; past this it says "look at everything".
const BUS_QUEUE: usize = 8_192;

/// Wakes whoever waits on this node, and tells the other nodes.
pub struct Hub {
    waiters: Arc<Waiters>,
    bus: Option<mpsc::Sender<Key>>,
    health: Arc<Health>,
}

#[derive(Default)]
struct Health {
    hearing: AtomicBool,
    /// Set when hints had to be dropped: the bus then says "everything".
    overflow: AtomicBool,
}

impl Hub {
    /// Starts the bus and the net of a node; they end with `stop`.
    #[must_use]
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
            let metrics = Arc::clone(store.metrics());
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

    /// Names who must look, after the commit: waiters here at once, the other nodes through the bus.
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

    /// The same where nobody waits on another node.
    pub fn wake_here(&self, keys: impl IntoIterator<Item = Key>) {
        for key in keys {
            self.waiters.wake(key.digest(), Cause::Hint);
        }
    }

    /// Registers interest. Read only after this, or a change in between is lost.
    #[must_use]
    pub fn register(&self, key: Key) -> Waiter {
        self.waiters.register(key)
    }

    /// Whether hints from other nodes arrive; if not, the net polls.
    #[must_use]
    pub fn healthy(&self) -> bool {
        self.bus.is_none() || self.health.hearing.load(Ordering::Relaxed)
    }
}

/// Everyone on this node who waits for something.
#[derive(Default)]
struct Waiters {
    /// By digest of the key. A std mutex: it is held for a few instructions and never across an await.
    entries: Mutex<HashMap<u64, Entry>>,
}

/// One key that someone waits on. Two keys of one digest share it and are woken together.
struct Entry {
    key: Key,
    /// How many hints there were. The net sends it as it is: whoever has not seen the last hint yet still finds it.
    hints: watch::Sender<u64>,
}

impl Entry {
    fn wake(&self, cause: Cause) {
        self.hints.send_modify(|hints| match cause {
            Cause::Hint => *hints = hints.wrapping_add(1),
            Cause::Net => {}
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
        self.entries()
            .values()
            .map(|entry| entry.key.clone())
            .collect()
    }
}

/// A registered interest; forgotten when dropped.
pub struct Waiter {
    digest: u64,
    hints: Option<watch::Receiver<u64>>,
    seen: u64,
    waiters: Arc<Waiters>,
}

impl Waiter {
    /// Waits until someone says to look since the last look, and tells who.
    pub async fn woken(&mut self) -> Cause {
        match &mut self.hints {
            Some(hints) => {
                // The entry lives as long as we do, so the sender is never gone.
                drop(hints.changed().await);
                let before = std::mem::replace(&mut self.seen, *hints.borrow_and_update());
                if self.seen == before {
                    Cause::Net
                } else {
                    Cause::Hint
                }
            }
            None => std::future::pending().await,
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut entries = self.waiters.entries();
        self.hints = None;
        if entries
            .get(&self.digest)
            .is_some_and(|entry| entry.hints.receiver_count() == 0)
        {
            entries.remove(&self.digest);
        }
    }
}
