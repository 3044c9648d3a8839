//! Wakes tasks that wait for a change in the database. A wake is a hint to read the rows again,
//! never the news itself; the fallback poll finds what a lost hint did not bring. A waiter
//! registers, then reads, then waits.

mod bus;
mod copy_cipher;
mod copy_demand;
mod fallback_poll;
mod health;
mod hint;
mod new_messages;
mod recent_set;
mod waiters;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::bus::{BusParts, WakeBus, ask_for_copies};
use self::copy_cipher::MessageCopy;
use self::copy_demand::CopyDemand;
use self::health::BusHealth;
use self::hint::{HintNews, WakeHint};
use self::new_messages::{COPY_BYTES, NewMessages};
pub use self::new_messages::{MESSAGE_BYTES, NAMED_BYTES, NewMessage};
use self::waiters::WaiterTable;
pub use self::waiters::{Waiter, WakeCause, WakeNews};
use crate::clock::Clock;
use crate::config::{Config, WakeMode};
use crate::protocol::id::{MessageId, RequestId, TenantId};
pub use crate::protocol::wake_key::WakeKey;
use crate::store::Store;

/// While more hints than these wait for the bus, messages are only named.
const HINTS_BEFORE_COPY: usize = 256;

/// Wakes waiters on this node, and sends hints to the other nodes.
pub struct WakeHub {
    waiters: Arc<WaiterTable>,
    new_messages: Arc<NewMessages>,
    demand: Arc<CopyDemand>,
    bus: Option<mpsc::Sender<WakeHint>>,
    health: Arc<BusHealth>,
}

impl WakeHub {
    /// Starts the bus and the fallback poll of a node; they end with `stop`. The nodes' copies of messages are encrypted under
    /// keys derived from `copy_secret`.
    pub fn start(
        config: &Config,
        clock: &Clock,
        copy_secret: &[u8; 32],
        store: &Arc<Store>,
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) -> Self {
        let waiters = Arc::new(WaiterTable::default());
        let health = Arc::new(BusHealth::default());
        let new_messages = Arc::new(NewMessages::default());
        let demand = Arc::new(CopyDemand::default());
        let bus = (config.wake.mode == WakeMode::Notify).then(|| {
            let parts = BusParts {
                waiters: Arc::clone(&waiters),
                new_messages: Arc::clone(&new_messages),
                demand: Arc::clone(&demand),
                store: Arc::clone(store),
                health: Arc::clone(&health),
            };
            WakeBus::start(config, clock, copy_secret, parts, tasks, stop)
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
            new_messages,
            demand,
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
            self.tell_others(digest, HintNews::Change, false);
        }
    }

    /// The same for one new message, which its readers then need not look for.
    pub fn wake_for(&self, key: &WakeKey, message: MessageId) {
        let digest = key.digest();
        self.waiters.wake_for(digest, message);
        let can_wait = !self.demand.is_wanted(digest);
        self.tell_others(digest, HintNews::Message(message), can_wait);
    }

    /// The same with the message itself, for channels that need not read its row: those of this node, and of nodes that want copies.
    pub fn announce(&self, key: WakeKey, message: NewMessage) {
        let (digest, id) = (key.digest(), message.id());
        let is_wanted = self.demand.is_wanted(digest);
        let wants_copy = is_wanted && message.is_small();
        let news = match &self.bus {
            _ if !message.is_named() => HintNews::Change,
            Some(bus) if wants_copy && bus.max_capacity() - bus.capacity() < HINTS_BEFORE_COPY => {
                let (key, message) = (key.clone(), message.clone());
                HintNews::Copy(Box::new(MessageCopy { key, message }))
            }
            _ => HintNews::Message(id),
        };
        let readers = self.waiters.count(digest);
        self.new_messages.add(key, readers, message);
        self.waiters.wake_for(digest, id);
        self.tell_others(digest, news, !is_wanted);
    }

    /// Whether a channel would take a new message of this key and size without reading its row, here or on another node.
    pub fn is_awaited(&self, key: &WakeKey, bytes: usize) -> bool {
        let digest = key.digest();
        (bytes <= MESSAGE_BYTES && self.waiters.count(digest) > 0)
            || (bytes <= COPY_BYTES && self.demand.is_wanted(digest))
    }

    /// A new message, if it is still in memory and not older than the channel, once for each channel of its recipient.
    pub fn take(&self, key: &WakeKey, message: MessageId, since: Instant) -> Option<NewMessage> {
        self.new_messages.take(key, message, since)
    }

    /// Forgets a message that was acknowledged or claimed.
    pub fn forget(&self, message: MessageId) {
        self.new_messages.remove(message);
    }

    fn tell_others(&self, digest: u64, news: HintNews, can_wait: bool) {
        let hint = WakeHint {
            digest,
            news,
            can_wait,
        };
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

    /// Notes that the withdrawal of a request was sent, so that the request does not follow it.
    pub fn note_withdrawn(&self, tenant: TenantId, request: RequestId) {
        self.new_messages.note_withdrawn(tenant, request);
    }

    /// Registers a waiter. Read only after this, or a change in between is lost.
    pub fn register(&self, key: WakeKey) -> Waiter {
        let is_recipient = !matches!(key, WakeKey::Exchange(..));
        if let Some(bus) = self.bus.as_ref().filter(|_| is_recipient) {
            ask_for_copies(bus, &self.demand, key.digest());
        }
        self.waiters.register(key)
    }

    /// Whether hints from other nodes arrive; if not, the fallback poll runs often.
    pub fn healthy(&self) -> bool {
        self.bus.is_none() || self.health.receiving.load(Ordering::Relaxed)
    }
}
