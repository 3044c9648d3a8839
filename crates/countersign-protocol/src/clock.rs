//! The one clock, which tests can move, and the ids that are made from it. The database's clock
//! judges exchanges. This one judges everything else, and has the same offset.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use time::OffsetDateTime;
use uuid::{ContextV7, Uuid};

use crate::id::{MessageId, OperationId};
use crate::timestamp::Timestamp;

#[derive(Clone)]
pub struct Clock {
    /// Microseconds added to the real time: zero outside tests.
    offset: Arc<AtomicI64>,
    /// Keeps ids of one node increasing within a millisecond.
    sequence: Arc<Mutex<ContextV7>>,
}

impl Clock {
    pub fn system() -> Self {
        Self {
            offset: Arc::default(),
            sequence: Arc::new(Mutex::new(ContextV7::new())),
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that asks the system"
    )]
    pub fn now(&self) -> Timestamp {
        let offset = time::Duration::microseconds(self.offset_micros());
        Timestamp::from(OffsetDateTime::now_utc().saturating_add(offset))
    }

    /// Microseconds that this clock is ahead of the real time.
    pub fn offset_micros(&self) -> i64 {
        self.offset.load(Ordering::Relaxed)
    }

    pub fn advance(&self, by: std::time::Duration) {
        let micros = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        self.offset.fetch_add(micros, Ordering::Relaxed);
    }

    fn uuid(&self) -> Uuid {
        let now = self.now().inner();
        let seconds = u64::try_from(now.unix_timestamp()).unwrap_or_default();
        Uuid::new_v7(uuid::Timestamp::from_unix(
            &*self.sequence,
            seconds,
            now.nanosecond(),
        ))
    }

    pub fn message_id(&self) -> MessageId {
        MessageId(self.uuid())
    }

    pub fn operation_id(&self) -> OperationId {
        OperationId(self.uuid())
    }
}
