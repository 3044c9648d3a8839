//! The waiters of this node, and the signals that wake them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use time::OffsetDateTime;
use tokio::sync::Notify;

use crate::protocol::id::MessageId;
use crate::protocol::wake_key::WakeKey;
use crate::short_lock::ShortLock;

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
    /// By digest of the key.
    entries: ShortLock<HashMap<u64, WaiterEntry>>,
}

/// A key that is waited on. Two keys with one digest share it and are woken together.
struct WaiterEntry {
    key: WakeKey,
    /// Shared with its waiters. Not a `watch` of tokio: that takes 0.4 KiB, and every idle channel has one.
    signal: Arc<WakeSignal>,
}

/// The last messages that hints have named, for waiters that have not looked yet.
const RECENT_MESSAGES: usize = 16;

#[derive(Default)]
struct WakeSignal {
    state: ShortLock<WakeState>,
    changed: Notify,
}

#[derive(Default)]
struct WakeState {
    counts: WakeCounts,
    recent: VecDeque<MessageId>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct WakeCounts {
    /// Number of hints. The fallback poll notifies without changing it, so an unseen hint is still
    /// seen as a hint.
    hints: u32,
    /// How many of them named a message.
    named: u32,
    /// How often the fallback poll notified.
    polls: u32,
    /// How often the fallback poll found messages that may be unseen, and when the oldest was
    /// created that it found last.
    finds: u32,
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

impl WakeSignal {
    fn change(&self, change: impl FnOnce(&mut WakeState)) {
        change(&mut self.state.lock());
        self.changed.notify_waiters();
    }

    fn wake(&self, cause: WakeCause) {
        self.change(|state| match cause {
            WakeCause::Hint => state.counts.hints = state.counts.hints.wrapping_add(1),
            WakeCause::Poll => state.counts.polls = state.counts.polls.wrapping_add(1),
        });
    }

    fn wake_for(&self, message: MessageId) {
        self.change(|state| {
            state.counts.hints = state.counts.hints.wrapping_add(1);
            state.counts.named = state.counts.named.wrapping_add(1);
            if state.recent.len() == RECENT_MESSAGES {
                state.recent.pop_front();
            }
            state.recent.push_back(message);
        });
    }

    /// Waits until the counts differ from these, and returns them.
    async fn changed_from(&self, seen: &WakeCounts) -> WakeCounts {
        loop {
            // Made before the look, so that a change in between is not missed.
            let changed = self.changed.notified();
            let now = self.state.lock().counts;
            if now != *seen {
                return now;
            }
            changed.await;
        }
    }
}

impl WaiterEntry {
    /// Waiters come and go only while the table is locked.
    fn waiters(&self) -> usize {
        Arc::strong_count(&self.signal) - 1
    }
}

impl WaiterTable {
    pub(super) fn register(self: &Arc<Self>, key: WakeKey) -> Waiter {
        let digest = key.digest();
        let mut entries = self.entries.lock();
        let entry = entries.entry(digest).or_insert_with(|| WaiterEntry {
            key,
            signal: Arc::default(),
        });
        let signal = Arc::clone(&entry.signal);
        let seen = signal.state.lock().counts;
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
        let entries = self.entries.lock();
        let entry = entries.get(&digest);
        entry.map_or(0, WaiterEntry::waiters)
    }

    pub(super) fn wake(&self, digest: u64, cause: WakeCause) {
        if let Some(entry) = self.entries.lock().get(&digest) {
            entry.signal.wake(cause);
        }
    }

    /// Wakes the waiters of a key for one message.
    pub(super) fn wake_for(&self, digest: u64, message: MessageId) {
        if let Some(entry) = self.entries.lock().get(&digest) {
            entry.signal.wake_for(message);
        }
    }

    /// Wakes the waiters of a key because the fallback poll found messages that may be unseen. The
    /// oldest was created at `since`.
    pub(super) fn found(&self, digest: u64, since: OffsetDateTime) {
        if let Some(entry) = self.entries.lock().get(&digest) {
            entry.signal.change(|state| {
                state.counts.finds = state.counts.finds.wrapping_add(1);
                state.counts.since = since;
            });
        }
    }

    pub(super) fn wake_everyone(&self) {
        for entry in self.entries.lock().values() {
            entry.signal.wake(WakeCause::Hint);
        }
    }

    pub(super) fn keys(&self) -> Vec<WakeKey> {
        let entries = self.entries.lock();
        entries.values().map(|entry| entry.key.clone()).collect()
    }
}

/// A registered waiter; dropping it unregisters it.
pub struct Waiter {
    digest: u64,
    signal: Option<Arc<WakeSignal>>,
    seen: WakeCounts,
    /// The counts when `news` was last called.
    looked: WakeCounts,
    unseen_since: Option<OffsetDateTime>,
    waiters: Arc<WaiterTable>,
}

impl Waiter {
    /// Waits for the next wake since the last one, and returns its cause.
    pub async fn woken(&mut self) -> WakeCause {
        let Some(signal) = &self.signal else {
            return std::future::pending().await;
        };
        let now = signal.changed_from(&self.seen).await;
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
        let state = signal.state.lock();
        let now = state.counts;
        let before = std::mem::replace(&mut self.looked, now);
        let named = now.named.wrapping_sub(before.named);
        let is_all = now.hints.wrapping_sub(before.hints) == named
            && (now.polls, now.finds) == (before.polls, before.finds);
        match usize::try_from(named) {
            Ok(named) if is_all && named <= state.recent.len() => {
                let known = state.recent.len() - named;
                WakeNews::Messages(state.recent.iter().skip(known).copied().collect())
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
        let mut entries = self.waiters.entries.lock();
        self.signal = None;
        let entry = entries.get(&self.digest);
        if entry.is_some_and(|entry| entry.waiters() == 0) {
            entries.remove(&self.digest);
        }
    }
}
