//! The waiters of this node, and the signals that wake them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use time::OffsetDateTime;
use tokio::sync::watch;

use crate::protocol::id::MessageId;
use crate::protocol::wake_key::WakeKey;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeCause {
    /// A hint, from this node or another.
    Hint,
    /// The fallback poll, which runs whether or not there were hints.
    Poll,
}

/// The changes that a waiter has to look at.
#[derive(Debug, PartialEq, Eq)]
pub enum WakeNews {
    Everything,
    /// Only these messages are new.
    Messages(Vec<MessageId>),
}

#[derive(Default)]
pub(super) struct WaiterTable {
    /// By digest of the key. Held for a few instructions, never across an await.
    entries: Mutex<HashMap<u64, WaiterEntry>>,
}

/// A key that is waited on. Two keys with one digest share it and are woken together.
struct WaiterEntry {
    key: WakeKey,
    signal: watch::Sender<WakeSignal>,
}

/// The last messages that hints have named, for waiters that have not looked yet.
const RECENT_MESSAGES: usize = 16;

#[derive(Default)]
struct WakeSignal {
    counts: WakeCounts,
    recent: VecDeque<MessageId>,
}

#[derive(Clone, Copy)]
struct WakeCounts {
    /// Number of hints. The fallback poll notifies without changing it, so an unseen hint is still
    /// seen as a hint.
    hints: u64,
    /// How many of them named a message.
    named: u64,
    /// How often the fallback poll notified.
    polls: u64,
    /// How often the fallback poll found messages that may be unseen, and when the oldest was
    /// created that it found last.
    finds: u64,
    since: OffsetDateTime,
}

impl Default for WakeCounts {
    fn default() -> Self {
        Self {
            hints: 0,
            named: 0,
            polls: 0,
            finds: 0,
            since: OffsetDateTime::UNIX_EPOCH,
        }
    }
}

impl WaiterEntry {
    fn wake(&self, cause: WakeCause) {
        self.signal.send_modify(|signal| match cause {
            WakeCause::Hint => signal.counts.hints = signal.counts.hints.wrapping_add(1),
            WakeCause::Poll => signal.counts.polls = signal.counts.polls.wrapping_add(1),
        });
    }

    fn wake_for(&self, message: MessageId) {
        self.signal.send_modify(|signal| {
            signal.counts.hints = signal.counts.hints.wrapping_add(1);
            signal.counts.named = signal.counts.named.wrapping_add(1);
            if signal.recent.len() == RECENT_MESSAGES {
                signal.recent.pop_front();
            }
            signal.recent.push_back(message);
        });
    }
}

impl WaiterTable {
    fn entries(&self) -> MutexGuard<'_, HashMap<u64, WaiterEntry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn register(self: &Arc<Self>, key: WakeKey) -> Waiter {
        let digest = key.digest();
        let mut entries = self.entries();
        let entry = entries.entry(digest).or_insert_with(|| WaiterEntry {
            key,
            signal: watch::Sender::new(WakeSignal::default()),
        });
        let signal = entry.signal.subscribe();
        let seen = signal.borrow().counts;
        Waiter {
            digest,
            seen,
            looked: seen,
            unseen_since: None,
            signal: Some(signal),
            waiters: Arc::clone(self),
        }
    }

    pub(super) fn count(&self, digest: u64) -> usize {
        let entries = self.entries();
        let entry = entries.get(&digest);
        entry.map_or(0, |entry| entry.signal.receiver_count())
    }

    pub(super) fn wake(&self, digest: u64, cause: WakeCause) {
        if let Some(entry) = self.entries().get(&digest) {
            entry.wake(cause);
        }
    }

    /// Wakes the waiters of a key for one message.
    pub(super) fn wake_for(&self, digest: u64, message: MessageId) {
        if let Some(entry) = self.entries().get(&digest) {
            entry.wake_for(message);
        }
    }

    /// Wakes the waiters of a key because the fallback poll found messages that may be unseen. The
    /// oldest was created at `since`.
    pub(super) fn found(&self, digest: u64, since: OffsetDateTime) {
        if let Some(entry) = self.entries().get(&digest) {
            entry.signal.send_modify(|signal| {
                signal.counts.finds = signal.counts.finds.wrapping_add(1);
                signal.counts.since = since;
            });
        }
    }

    pub(super) fn wake_everyone(&self) {
        for entry in self.entries().values() {
            entry.wake(WakeCause::Hint);
        }
    }

    pub(super) fn keys(&self) -> Vec<WakeKey> {
        let entries = self.entries();
        entries.values().map(|entry| entry.key.clone()).collect()
    }
}

/// A registered waiter; dropping it unregisters it.
pub struct Waiter {
    digest: u64,
    signal: Option<watch::Receiver<WakeSignal>>,
    seen: WakeCounts,
    /// The counts when `news` was last called.
    looked: WakeCounts,
    unseen_since: Option<OffsetDateTime>,
    waiters: Arc<WaiterTable>,
}

impl Waiter {
    /// Waits for the next wake since the last one, and returns its cause.
    pub async fn woken(&mut self) -> WakeCause {
        let Some(signal) = &mut self.signal else {
            return std::future::pending().await;
        };
        // The entry lives as long as its waiters, so the sender is never gone.
        drop(signal.changed().await);
        let now = signal.borrow_and_update().counts;
        let before = std::mem::replace(&mut self.seen, now);
        match now.finds.wrapping_sub(before.finds) {
            0 => {}
            1 => self.unseen_since = Some(now.since),
            // Only the last is known.
            _ => self.unseen_since = Some(OffsetDateTime::UNIX_EPOCH),
        }
        if now.hints == before.hints {
            WakeCause::Poll
        } else {
            WakeCause::Hint
        }
    }

    /// The changes since this was last called. Call it after `woken`.
    pub fn news(&mut self) -> WakeNews {
        let Some(signal) = &self.signal else {
            return WakeNews::Everything;
        };
        let signal = signal.borrow();
        let (now, before) = (
            signal.counts,
            std::mem::replace(&mut self.looked, signal.counts),
        );
        let named = now.named.wrapping_sub(before.named);
        let is_all = now.hints.wrapping_sub(before.hints) == named
            && (now.polls, now.finds) == (before.polls, before.finds);
        match usize::try_from(named) {
            Ok(named) if is_all && named <= signal.recent.len() => {
                let known = signal.recent.len() - named;
                WakeNews::Messages(signal.recent.iter().skip(known).copied().collect())
            }
            _ => WakeNews::Everything,
        }
    }

    /// When the oldest message was created that may be unseen, if the fallback poll found one since
    /// this was last called.
    pub fn unseen_since(&mut self) -> Option<OffsetDateTime> {
        self.unseen_since.take()
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut entries = self.waiters.entries();
        self.signal = None;
        let entry = entries.get(&self.digest);
        if entry.is_some_and(|entry| entry.signal.receiver_count() == 0) {
            entries.remove(&self.digest);
        }
    }
}
