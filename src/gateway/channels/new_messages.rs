//! Messages that this node has just committed, for its own channels: they need not read back what it wrote. The rows stay the
//! truth. A message that is not here, or not any more, is read from them.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::protocol::id::{MessageId, RequestId};
use crate::protocol::message::{DecisionDelivery, RequestMessage};
use crate::protocol::timestamp::Timestamp;
use crate::short_lock::ShortLock;
use crate::wake::WakeKey;

/// Later a channel reads the row: meanwhile the message may have been acknowledged elsewhere.
const MESSAGE_LIFETIME: Duration = Duration::from_millis(200);
/// A larger message is read page by page, as the client takes it.
pub(in crate::gateway) const MESSAGE_BYTES: usize = 64 << 10;
/// A larger request is not named to other nodes, which read a few of those named at once, and learn their sizes only then.
pub(in crate::gateway) const NAMED_BYTES: usize = 16 << 10;
/// Of all messages together.
const TOTAL_BYTES: usize = 16 << 20;

#[derive(Debug, Clone)]
pub(in crate::gateway) enum NewMessage {
    Request(RequestMessage),
    Decision {
        request_id: RequestId,
        expires_at: Timestamp,
        delivery: DecisionDelivery,
    },
}

#[derive(Default)]
pub(in crate::gateway) struct NewMessages {
    queue: ShortLock<MessageQueue>,
}

#[derive(Default)]
struct MessageQueue {
    entries: HashMap<MessageId, MessageEntry>,
    /// Oldest first, also those that were taken.
    order: VecDeque<(Instant, MessageId)>,
    bytes: usize,
}

struct MessageEntry {
    /// Its recipient. A hint may wake another one, whose key has the same digest.
    key: WakeKey,
    message: NewMessage,
    bytes: usize,
    /// Channels that have not taken it.
    readers: usize,
}

impl NewMessages {
    /// Adds a message for this many channels of its recipient.
    pub fn add(&self, key: WakeKey, readers: usize, message: NewMessage) {
        let (id, bytes) = (message.id(), message.bytes());
        if bytes > MESSAGE_BYTES || readers == 0 {
            return;
        }
        let now = Instant::now();
        let mut queue = self.queue.lock();
        queue.remove_old(now);
        if queue.bytes + bytes > TOTAL_BYTES {
            return;
        }
        queue.bytes += bytes;
        queue.order.push_back((now, id));
        let entry = MessageEntry {
            key,
            message,
            bytes,
            readers,
        };
        queue.entries.insert(id, entry);
    }

    /// The recipient's message, once for each of its channels.
    pub fn take(&self, key: &WakeKey, id: MessageId) -> Option<NewMessage> {
        let mut queue = self.queue.lock();
        queue.remove_old(Instant::now());
        let entry = queue.entries.get_mut(&id)?;
        if entry.key != *key {
            return None;
        }
        if entry.readers > 1 {
            entry.readers -= 1;
            return Some(entry.message.clone());
        }
        queue.remove(id)
    }

    /// Removes a message that was acknowledged.
    pub fn remove(&self, id: MessageId) {
        drop(self.queue.lock().remove(id));
    }
}

impl NewMessage {
    fn id(&self) -> MessageId {
        match self {
            Self::Request(request) => request.message_id,
            Self::Decision { delivery, .. } => delivery.message_id,
        }
    }

    fn bytes(&self) -> usize {
        let (body, trace) = match self {
            Self::Request(request) => (request.stored.as_ref(), request.trace.as_ref()),
            Self::Decision { delivery, .. } => (Some(&delivery.body), delivery.trace.as_ref()),
        };
        body.map_or(0, String::len) + trace.map_or(0, String::len) + 512
    }
}

impl MessageQueue {
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
