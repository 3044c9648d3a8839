//! The readiness of the node, and the gauges that are read when metrics are collected.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::context::GatewayContext;
use super::error::Result;
use crate::gateway::channels::channel::ChannelService;
use crate::gateway::exchanges::service::ExchangeService;
use crate::store::database::schema::SchemaState;
use crate::store::error::StoreError;
use crate::telemetry::instrument::as_f64;

/// How long an answer about readiness is reused.
const READINESS_LIFETIME: Duration = Duration::from_secs(1);
/// Leaves enough time to answer a readiness probe within a second.
const PROBE_TIMEOUT: Duration = Duration::from_millis(700);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    /// Ready, but wake-ups do not arrive and the node polls.
    Degraded,
    /// The node has not joined the others yet.
    Starting,
    Draining,
    DatabaseAway,
    /// The database takes no writes; it may be a standby.
    ReadOnly,
    /// Migrations are missing.
    SchemaBehind,
    /// The schema is newer than this program.
    SchemaAhead,
}

pub struct HealthService {
    context: Arc<GatewayContext>,
    exchanges: Arc<ExchangeService>,
    channels: Arc<ChannelService>,
    joined: AtomicBool,
    /// Locked while the database is asked, which has a limit.
    known: Mutex<Option<(Readiness, Instant)>>,
}

impl HealthService {
    pub(super) fn new(
        context: &Arc<GatewayContext>,
        exchanges: &Arc<ExchangeService>,
        channels: &Arc<ChannelService>,
    ) -> Self {
        Self {
            context: Arc::clone(context),
            exchanges: Arc::clone(exchanges),
            channels: Arc::clone(channels),
            joined: AtomicBool::new(false),
            known: Mutex::new(None),
        }
    }

    /// Whether the node should be sent requests. Asks the database at most once a second.
    pub async fn readiness(&self) -> Readiness {
        if self.context.draining.is_cancelled() {
            return Readiness::Draining;
        }
        let mut known = self.known.lock().await;
        if let Some((readiness, at)) = *known
            && at.elapsed() < READINESS_LIFETIME
        {
            return readiness;
        }
        let probed = self.context.store.database.probe(PROBE_TIMEOUT).await;
        let readiness = match (probed, *known) {
            (Err(StoreError::ReadOnly(_)), _) => Readiness::ReadOnly,
            (Err(_), _) => Readiness::DatabaseAway,
            (Ok(Some(SchemaState::Behind)), _) => Readiness::SchemaBehind,
            (Ok(Some(SchemaState::Ahead)), _) => Readiness::SchemaAhead,
            (Ok(None), Some((last @ (Readiness::SchemaBehind | Readiness::SchemaAhead), _))) => {
                last
            }
            // Not remembered: it may join at any moment.
            (Ok(_), _) if !self.has_joined() => return Readiness::Starting,
            (Ok(_), _) if self.context.wake.healthy() => Readiness::Ready,
            (Ok(_), _) => Readiness::Degraded,
        };
        *known = Some((readiness, Instant::now()));
        readiness
    }

    /// Whether the node has joined the others, before which it serves no calls.
    pub fn has_joined(&self) -> bool {
        self.joined.load(Ordering::Acquire)
    }

    pub(super) fn note_joined(&self) {
        self.joined.store(true, Ordering::Release);
    }

    /// Database connections for requests: open, and idle among them.
    pub fn pool_usage(&self) -> (usize, usize) {
        self.context.store.database.pool_usage()
    }

    /// Registers the gauges that are read from the gateway when metrics are collected.
    pub fn observe(self: &Arc<Self>) {
        // Weak, since the context owns the metrics.
        let read = |read: fn(&Self) -> f64| {
            let health = Arc::downgrade(self);
            move || health.upgrade().map(|health| read(&health))
        };
        let healthy = |health: &Self| f64::from(u8::from(health.context.wake.healthy()));
        let metrics = &self.context.metrics;
        metrics
            .waits
            .observe([], read(|health| as_f64(health.exchanges.waiting())));
        metrics.wake_healthy.observe([], read(healthy));
        metrics
            .heartbeat_age
            .observe([], read(|health| health.channels.lease_age().as_secs_f64()));
    }

    pub(super) async fn count(&self) -> Result<()> {
        let counts = self.context.store.exchanges.count_pending().await?;
        let count = |count: i64| usize::try_from(count).unwrap_or_default();
        let metrics = &self.context.metrics;
        metrics.pending.set_count(count(counts.pending));
        metrics.overdue.set_count(count(counts.overdue));
        Ok(())
    }
}
