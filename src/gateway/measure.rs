//! The metrics of the use cases. They carry no ids.

use std::sync::Arc;

use super::Gateway;
use super::error::Error;
use crate::protocol::exchange::ExchangeState;
use crate::protocol::timestamp::Timestamp;
use crate::telemetry::instrument::as_f64;
use crate::wake::Cause;

/// Age from which a message counts as missed: longer than a wake-up takes, shorter than the polling period.
const LATE_SECONDS: f64 = 1.0;

impl Gateway {
    /// Registers the gauges that are read from the gateway when metrics are collected.
    pub fn observe(self: &Arc<Self>) {
        // Weak, since the gateway owns the metrics.
        let read = |read: fn(&Self) -> f64| {
            let gateway = Arc::downgrade(self);
            move || gateway.upgrade().map(|gateway| read(&gateway))
        };
        let healthy = |gateway: &Self| f64::from(u8::from(gateway.wake.healthy()));
        let metrics = &self.metrics;
        metrics
            .waits
            .observe([], read(|gateway| as_f64(gateway.waiting())));
        metrics.wake_healthy.observe([], read(healthy));
        metrics
            .heartbeat_age
            .observe([], read(|gateway| gateway.lease_age().as_secs_f64()));
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
        let counts = self.store.count_pending().await?;
        let count = |count: i64| usize::try_from(count).unwrap_or_default();
        self.metrics.pending.set_count(count(counts.pending));
        self.metrics.overdue.set_count(count(counts.overdue));
        Ok(())
    }
}
