//! The metrics of the use cases. They carry no ids.

use super::Gateway;
use super::error::Error;
use crate::protocol::exchange::ExchangeState;
use crate::protocol::timestamp::Timestamp;
use crate::wake::Cause;

/// Age from which a message counts as missed: longer than a wake-up takes, shorter than the polling period.
const LATE_SECONDS: f64 = 1.0;

impl Gateway {
    /// Sets the gauges to the current values.
    pub fn observe(&self) {
        self.store.observe();
        let metrics = &self.metrics;
        metrics.observe_process();
        metrics.waits.set_count(self.waiting());
        metrics
            .wake_healthy
            .set(f64::from(u8::from(self.wake.healthy())));
        metrics.heartbeat_age.set(self.lease_age().as_secs_f64());
    }

    /// Counts exchanges that this node moved from one state to another.
    pub(super) fn note_transition(&self, from: &'static str, to: ExchangeState, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.metrics.transitions.of([from, to.as_str()]).add(count);
    }

    /// The time since an instant, by the database's clock.
    pub(super) fn seconds_since(&self, at: Timestamp) -> f64 {
        let passed = self.store.database_now() - at.inner();
        passed.as_seconds_f64().max(0.0)
    }

    /// Counts a message that polling found because no wake-up had announced it.
    pub(super) fn note_missed(&self, cause: Cause, waiter: &'static str, at: Timestamp) {
        if cause == Cause::Poll && self.seconds_since(at) > LATE_SECONDS {
            self.metrics.missed.of([waiter]).increment();
        }
    }

    pub(super) async fn count(&self) -> Result<(), Error> {
        let census = self.store.census().await?;
        let count = |count: i64| usize::try_from(count).unwrap_or_default();
        self.metrics.pending.set_count(count(census.pending));
        self.metrics.overdue.set_count(count(census.overdue));
        Ok(())
    }
}
