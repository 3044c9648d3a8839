//! Configuration, clock, store, waking and metrics, shared by every use case. No rule about
//! exchanges.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::config::Config;
use crate::gateway::notifications::hints::NotificationHints;
use crate::protocol::error::CodeNames;
use crate::protocol::exchange::ExchangeState;
use crate::protocol::id::NodeId;
use crate::protocol::reader::InvalidMember;
use crate::protocol::timestamp::Timestamp;
use crate::store::Store;
use crate::telemetry::{Metrics, SpanTracer};
use crate::wake::{WakeCause, WakeHub};

/// Age from which a message counts as missed: longer than a wake-up, shorter than the polling
/// period.
const LATE_SECONDS: f64 = 1.0;

/// How far in the past `createdAt` may lie without a warning, and the warning.
const STALE_SECONDS: i64 = 24 * 60 * 60;
const STALE_WARNING: &str = "createdAt is over a day in the past; check the sender's clock";

pub struct GatewayContext {
    pub config: Arc<Config>,
    pub names: CodeNames,
    pub clock: Clock,
    pub node: NodeId,
    pub metrics: Arc<Metrics>,
    pub tracer: SpanTracer,
    pub(super) store: Arc<Store>,
    pub(super) wake: WakeHub,
    /// Whom submissions have asked, for notifications.
    pub(super) notices: NotificationHints,
    /// Work that outlives a request but not the node.
    pub(super) tasks: TaskTracker,
    /// Set when the node begins to drain.
    pub(super) draining: CancellationToken,
}

impl GatewayContext {
    /// A warning for the sender of an envelope that is accepted, though its clock is likely wrong.
    pub(super) fn created_warning(&self, created_at: Timestamp) -> Option<&'static str> {
        let age = self.clock.now().inner() - created_at.inner();
        (age.whole_seconds() > STALE_SECONDS).then_some(STALE_WARNING)
    }

    /// This instant moved by a number of seconds.
    pub(super) fn in_seconds(&self, seconds: u64) -> Timestamp {
        let seconds = Duration::from_secs(seconds).try_into().unwrap_or_default();
        Timestamp::from(self.clock.now().inner().saturating_add(seconds))
    }

    pub(super) fn check_created(&self, created_at: Timestamp) -> Result<(), InvalidMember> {
        if created_at > self.in_seconds(self.config.limits.clock_skew_seconds) {
            return Err(InvalidMember::timestamp(
                "/createdAt",
                "a time that is not in the future",
            ));
        }
        Ok(())
    }

    /// Counts exchanges that this node moved from one state to another.
    pub(super) fn note_transition(&self, from: &'static str, to: ExchangeState, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.metrics.transitions.of([from, to.as_str()]).add(count);
    }

    /// The time since an instant, by the database's clock.
    pub(super) fn seconds_since(&self, at: Timestamp) -> f64 {
        let passed = self.store.database.database_now() - at.inner();
        passed.as_seconds_f64().max(0.0)
    }

    /// Counts a message that polling found because no wake-up had announced it.
    pub(super) fn note_missed(&self, cause: WakeCause, waiter: &'static str, at: Timestamp) {
        if cause == WakeCause::Poll && self.seconds_since(at) > LATE_SECONDS {
            self.metrics.missed.of([waiter]).increment();
        }
    }
}
