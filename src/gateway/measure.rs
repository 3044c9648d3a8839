//! What the use cases tell operators: figures without ids. Where they are kept stands in `telemetry`.

use super::Gateway;
use super::error::Error;
use crate::protocol::exchange::State;
use crate::protocol::timestamp::Timestamp;
use crate::wake::Cause;

/// How old news may be before it counts as late: longer than a hint takes, shorter than the net's round.
const LATE_SECONDS: f64 = 1.0;

impl Gateway {
    /// Sets the gauges that stand for what is so at this moment.
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

    /// Notes that this node moved exchanges from one state to another.
    pub(super) fn note_transition(&self, from: &'static str, to: State, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.metrics.transitions.of([from, to.as_str()]).add(count);
    }

    /// How long ago something happened, by the database's clock.
    pub(super) fn seconds_since(&self, at: Timestamp) -> f64 {
        let passed = self.store.database_now() - at.inner();
        passed.as_seconds_f64().max(0.0)
    }

    /// Notes news that no hint brought, and that had been there for a while when the net found it.
    pub(super) fn note_missed(&self, cause: Cause, waiter: &'static str, at: Timestamp) {
        if cause == Cause::Net && self.seconds_since(at) > LATE_SECONDS {
            self.metrics.missed.of([waiter]).increment();
        }
    }

    pub(super) async fn count(&self) -> Result<(), Error> {
        let counts = self.store.count_pending().await?;
        let count = |count: i64| usize::try_from(count).unwrap_or_default();
        self.metrics.pending.set_count(count(counts.pending));
        self.metrics.overdue.set_count(count(counts.overdue));
        Ok(())
    }
}
