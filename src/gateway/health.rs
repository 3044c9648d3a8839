//! Whether the node should be sent requests, and the gauges that are read when metrics are collected.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::channel::Channels;
use super::context::Context;
use super::error::Result;
use super::exchanges::Exchanges;
use crate::store::schema::Schema;
use crate::telemetry::instrument::as_f64;

/// How long an answer about readiness is reused.
const READINESS_FOR: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    /// Ready, but wake-ups do not arrive and the node polls.
    Degraded,
    Draining,
    DatabaseAway,
    /// The database takes no writes; it may be a standby.
    ReadOnly,
    /// Migrations are missing.
    SchemaBehind,
    /// The schema is newer than this program.
    SchemaAhead,
}

pub struct Health {
    context: Arc<Context>,
    exchanges: Arc<Exchanges>,
    channels: Arc<Channels>,
    known: Mutex<Option<(Readiness, Instant)>>,
}

impl Health {
    pub(super) fn new(
        context: &Arc<Context>,
        exchanges: &Arc<Exchanges>,
        channels: &Arc<Channels>,
    ) -> Self {
        Self {
            context: Arc::clone(context),
            exchanges: Arc::clone(exchanges),
            channels: Arc::clone(channels),
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
            && at.elapsed() < READINESS_FOR
        {
            return readiness;
        }
        let readiness = match self.context.store.database.schema().await {
            Err(_) => Readiness::DatabaseAway,
            Ok(Schema::Behind) => Readiness::SchemaBehind,
            Ok(Schema::Ahead) => Readiness::SchemaAhead,
            Ok(Schema::Known) => match self.context.store.database.writable().await {
                Err(_) => Readiness::DatabaseAway,
                Ok(false) => Readiness::ReadOnly,
                Ok(true) if self.context.wake.healthy() => Readiness::Ready,
                Ok(true) => Readiness::Degraded,
            },
        };
        *known = Some((readiness, Instant::now()));
        readiness
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
