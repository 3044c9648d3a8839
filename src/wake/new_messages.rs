//! New messages, for the channels of this node: those that it has just committed, and copies of those that other nodes have. The
//! rows stay the truth. A message that is not here, or not any more, is read from them.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::recent_set::RecentSet;
use crate::protocol::id::{MessageId, RequestId, TenantId};
use crate::protocol::message::{DecisionDelivery, RequestMessage};
use crate::protocol::timestamp::Timestamp;
use crate::protocol::wake_key::WakeKey;
use crate::short_lock::ShortLock;

/// Later a channel reads the row: meanwhile the message may have been acknowledged elsewhere.
const MESSAGE_LIFETIME: Duration = Duration::from_millis(200);
/// A larger message is read page by page, as the client takes it.
pub const MESSAGE_BYTES: usize = 64 << 10;
/// A larger request is not named to other nodes, which read a few of those named at once, and learn their sizes only then.
pub const NAMED_BYTES: usize = 16 << 10;
/// A larger message is not copied to other nodes: encrypted and in base64, it would not fit into a notification.
pub const COPY_BYTES: usize = 5_500;
/// Of all messages together.
const TOTAL_BYTES: usize = 16 << 20;

#[derive(Debug, Clone, Deserialize, Serialize)]
pub enum NewMessage {
    Request(RequestMessage),
    Decision {
        request_id: RequestId,
        expires_at: Timestamp,
        delivery: DecisionDelivery,
    },
}

pub(super) struct NewMessages {
    queue: ShortLock<MessageQueue>,
}

struct MessageQueue {
    entries: HashMap<MessageId, MessageEntry>,
    /// Oldest first, also those that were taken.
    order: VecDeque<(Instant, MessageId)>,
    bytes: usize,
    /// Messages that a copy must not bring again: they were taken, acknowledged or claimed.
    gone: RecentSet<MessageId>,
    /// Requests whose withdrawals were sent. A copy of one may arrive later, from another node.
    withdrawn: RecentSet<(TenantId, RequestId)>,
}

struct MessageEntry {
    /// Its recipient. A hint may wake another one, whose key has the same digest.
    key: WakeKey,
    message: NewMessage,
    bytes: usize,
    /// Channels that have not taken it.
    readers: usize,
    expires_at: Instant,
}

impl Default for NewMessages {
    fn default() -> Self {
        Self {
            queue: ShortLock::new(MessageQueue {
                entries: HashMap::new(),
                order: VecDeque::new(),
                bytes: 0,
                gone: RecentSet::new(MESSAGE_LIFETIME),
                withdrawn: RecentSet::new(MESSAGE_LIFETIME),
            }),
        }
    }
}

impl NewMessages {
    /// Adds a message that has just been committed, for this many channels of its recipient.
    pub fn add(&self, key: WakeKey, readers: usize, message: NewMessage) {
        self.add_for(MESSAGE_LIFETIME, key, readers, message);
    }

    /// Adds a copy of a message, unless it is too old or not needed any more. By a clock that is compared with the database's now and
    /// then, a message may seem to come from the future, by as much at most.
    pub fn add_copy(
        &self,
        age: time::Duration,
        key: WakeKey,
        readers: usize,
        message: NewMessage,
    ) -> bool {
        let left = MESSAGE_LIFETIME.checked_sub(age.unsigned_abs());
        left.is_some_and(|left| self.add_for(left, key, readers, message))
    }

    fn add_for(
        &self,
        lifetime: Duration,
        key: WakeKey,
        readers: usize,
        message: NewMessage,
    ) -> bool {
        let (id, bytes) = (message.id(), message.bytes());
        if bytes > MESSAGE_BYTES || readers == 0 {
            return false;
        }
        let now = Instant::now();
        let mut queue = self.queue.lock();
        queue.remove_old(now);
        let is_known = queue.entries.contains_key(&id) || queue.gone.contains(&id, now);
        if is_known || queue.bytes + bytes > TOTAL_BYTES {
            return false;
        }
        queue.bytes += bytes;
        queue.order.push_back((now, id));
        let entry = MessageEntry {
            key,
            // Only the newest channel takes a decision.
            readers: match message {
                NewMessage::Request(_) => readers,
                NewMessage::Decision { .. } => 1,
            },
            message,
            bytes,
            expires_at: now + lifetime,
        };
        queue.entries.insert(id, entry);
        true
    }

    /// The recipient's message, once for each of its channels. A channel that was opened after that came into memory reads the
    /// row: the message may have been acknowledged before.
    pub fn take(&self, key: &WakeKey, id: MessageId, since: Instant) -> Option<NewMessage> {
        let now = Instant::now();
        let mut queue = self.queue.lock();
        queue.remove_old(now);
        let entry = queue.entries.get_mut(&id)?;
        let is_older = entry.expires_at < since + MESSAGE_LIFETIME;
        if entry.key != *key || entry.expires_at <= now || is_older {
            return None;
        }
        if entry.readers > 1 {
            entry.readers -= 1;
            let message = entry.message.clone();
            return queue.unless_withdrawn(key, message, now);
        }
        queue.gone.insert(id, now);
        let message = queue.remove(id)?;
        queue.unless_withdrawn(key, message, now)
    }

    /// Forgets a message that was acknowledged or claimed. A copy does not bring it again.
    pub fn remove(&self, id: MessageId) {
        let mut queue = self.queue.lock();
        queue.gone.insert(id, Instant::now());
        drop(queue.remove(id));
    }

    /// Notes that a withdrawal was sent. A copy of its request is not sent any more.
    pub fn note_withdrawn(&self, tenant: TenantId, request: RequestId) {
        let mut queue = self.queue.lock();
        queue.withdrawn.insert((tenant, request), Instant::now());
    }
}

impl NewMessage {
    pub fn id(&self) -> MessageId {
        match self {
            Self::Request(request) => request.message_id,
            Self::Decision { delivery, .. } => delivery.message_id,
        }
    }

    /// By the database's clock.
    pub fn created_at(&self) -> Timestamp {
        match self {
            Self::Request(request) => request.created_at,
            Self::Decision { delivery, .. } => delivery.decided_at,
        }
    }

    /// Whether a copy of it may fit into a notification.
    pub fn is_small(&self) -> bool {
        self.bytes() <= COPY_BYTES
    }

    /// Whether other nodes are told which message it is.
    pub fn is_named(&self) -> bool {
        match self {
            Self::Request(request) => request
                .stored
                .as_ref()
                .is_none_or(|it| it.len() < NAMED_BYTES),
            Self::Decision { .. } => true,
        }
    }

    pub fn bytes(&self) -> usize {
        let (body, trace) = match self {
            Self::Request(request) => (request.stored.as_ref(), request.trace.as_ref()),
            Self::Decision { delivery, .. } => (Some(&delivery.body), delivery.trace.as_ref()),
        };
        body.map_or(0, String::len) + trace.map_or(0, String::len) + 512
    }
}

impl MessageQueue {
    fn unless_withdrawn(
        &self,
        key: &WakeKey,
        message: NewMessage,
        now: Instant,
    ) -> Option<NewMessage> {
        let is_withdrawn = match &message {
            NewMessage::Request(request) => {
                let request = (key.tenant().clone(), request.request_id.clone());
                self.withdrawn.contains(&request, now)
            }
            NewMessage::Decision { .. } => false,
        };
        (!is_withdrawn).then_some(message)
    }

    fn remove(&mut self, id: MessageId) -> Option<NewMessage> {
        let entry = self.entries.remove(&id)?;
        self.bytes -= entry.bytes;
        Some(entry.message)
    }

    fn remove_old(&mut self, now: Instant) {
        while let Some((added_at, id)) = self.order.front().copied()
            && (now.saturating_duration_since(added_at) > MESSAGE_LIFETIME
                || !self.entries.contains_key(&id))
        {
            self.order.pop_front();
            drop(self.remove(id));
        }
    }
}
