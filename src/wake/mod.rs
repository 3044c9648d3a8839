//! Wakes tasks that wait for a change in the database. A wake is a hint to read the rows again,
//! never the news itself; the fallback poll finds what a lost hint did not bring. A waiter
//! registers, then reads, then waits.

mod bus;
mod fallback_poll;
mod health;
mod waiters;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::bus::{WakeBus, WakeHint};
use self::health::BusHealth;
use self::waiters::WaiterTable;
pub use self::waiters::{Waiter, WakeCause, WakeNews};
use crate::clock::Clock;
use crate::config::{Config, WakeMode};
use crate::protocol::id::MessageId;
pub use crate::protocol::wake_key::WakeKey;
use crate::store::Store;

/// Wakes waiters on this node, and sends hints to the other nodes.
pub struct WakeHub {
    waiters: Arc<WaiterTable>,
    bus: Option<mpsc::Sender<WakeHint>>,
    health: Arc<BusHealth>,
}

impl WakeHub {
    /// Starts the bus and the fallback poll of a node; they end with `stop`.
    pub fn start(
        config: &Config,
        clock: &Clock,
        store: &Arc<Store>,
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) -> Self {
        let waiters = Arc::new(WaiterTable::default());
        let health = Arc::new(BusHealth::default());
        let bus = (config.wake.mode == WakeMode::Notify).then(|| {
            let metrics = store.database.metrics();
            WakeBus::start(config, clock, metrics, &waiters, &health, tasks, stop)
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

    /// Wakes the waiters of these keys, here at once and on other nodes through the bus. Call it
    /// after the commit.
    pub fn wake(&self, keys: impl IntoIterator<Item = WakeKey>) {
        for key in keys {
            let digest = key.digest();
            self.waiters.wake(digest, WakeCause::Hint);
            self.tell_others(WakeHint {
                digest,
                message: None,
            });
        }
    }

    /// The same for one new message, which its readers then need not look for.
    pub fn wake_for(&self, key: &WakeKey, message: MessageId) {
        let digest = key.digest();
        self.waiters.wake_for(digest, message);
        self.tell_others(WakeHint {
            digest,
            message: Some(message),
        });
    }

    /// The same, but other nodes are not told which message it is.
    pub fn wake_here_for(&self, key: &WakeKey, message: MessageId) {
        let digest = key.digest();
        self.waiters.wake_for(digest, message);
        self.tell_others(WakeHint {
            digest,
            message: None,
        });
    }

    /// How many waiters of this node wait for a key.
    pub fn waiter_count(&self, key: &WakeKey) -> usize {
        self.waiters.count(key.digest())
    }

    fn tell_others(&self, hint: WakeHint) {
        if let Some(bus) = &self.bus
            && bus.try_send(hint).is_err()
        {
            self.health.overflow.store(true, Ordering::Relaxed);
        }
    }

    /// The same where nobody can wait on another node.
    pub fn wake_here(&self, keys: impl IntoIterator<Item = WakeKey>) {
        for key in keys {
            self.waiters.wake(key.digest(), WakeCause::Hint);
        }
    }

    /// Registers a waiter. Read only after this, or a change in between is lost.
    pub fn register(&self, key: WakeKey) -> Waiter {
        self.waiters.register(key)
    }

    /// Whether hints from other nodes arrive; if not, the fallback poll runs often.
    pub fn healthy(&self) -> bool {
        self.bus.is_none() || self.health.receiving.load(Ordering::Relaxed)
    }
}
