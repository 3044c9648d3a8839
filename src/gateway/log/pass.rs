//! One pass of the node that builds the log, under a lease: a node that vanishes is followed by another.

use std::collections::BTreeMap;
use std::time::Duration;

use super::builder::{BuildFailure, LogBuilder, stored_entry};
use super::service::LogService;
use crate::gateway::error::{Error, Result};
use crate::protocol::id::TenantId;
use crate::store::log::UnloggedEvent;

const SWEEP: &str = "log";
/// Longer than a batch takes.
const LEASE_LIFETIME: Duration = Duration::from_secs(30);
/// A pass reads no more than the events of this time, however long the log has stood still.
const MAX_SPAN: time::Duration = time::Duration::HOUR;
/// Events that are in memory at once. Each may have 64 KiB.
const BATCH: usize = 256;

impl LogService {
    /// Logs what has been decided or delivered since, unless another node does.
    pub(in crate::gateway) async fn build(&self) -> Result<()> {
        let database = &self.context.store.database;
        let Some(builder) = &self.builder else {
            return Ok(());
        };
        if !database
            .take_sweep(SWEEP, LEASE_LIFETIME, LEASE_LIFETIME)
            .await?
        {
            return Ok(());
        }
        let built = self.build_to_horizon(builder).await;
        // The first node that wakes after most of the interval is next.
        let pause = Duration::from_millis(self.context.config.log.build_ms) * 3 / 4;
        let kept = database.keep_sweep(SWEEP, pause).await;
        built.and(kept.map(drop).map_err(Into::into))
    }

    async fn build_to_horizon(&self, builder: &LogBuilder) -> Result<()> {
        let store = &self.context.store;
        let progress = store.log.progress().await?;
        let Some(reached) = progress.reached else {
            // The log begins now.
            return Ok(store.log.reach(progress.horizon).await?);
        };
        let until = progress.horizon.min(reached + MAX_SPAN);
        if until <= reached {
            return Ok(());
        }
        let overlap = Duration::from_millis(self.context.config.log.overlap_ms);
        let mut damaged = Vec::new();
        loop {
            let limit = i64::try_from(BATCH).unwrap_or(i64::MAX);
            let events = store
                .log
                .unlogged(reached - overlap, until, &damaged, limit)
                .await?;
            let is_full = events.len() == BATCH;
            if !self.log_events(builder, events, &mut damaged).await? {
                return Ok(());
            }
            let is_kept = !is_full || store.database.keep_sweep(SWEEP, LEASE_LIFETIME).await?;
            if !is_kept || self.context.draining.is_cancelled() {
                return Ok(());
            }
            if !is_full {
                break;
            }
        }
        store.log.reach(until).await?;
        if damaged.is_empty() {
            Ok(())
        } else {
            Err(Error::Internal)
        }
    }

    /// Adds events to the logs of their tenants. One log that is damaged does not stop the others.
    /// False if another node builds too.
    async fn log_events(
        &self,
        builder: &LogBuilder,
        events: Vec<UnloggedEvent>,
        damaged: &mut Vec<TenantId>,
    ) -> Result<bool> {
        let lag = self.context.metrics.sweep_lag.of([SWEEP]);
        let mut tenants: BTreeMap<TenantId, Vec<UnloggedEvent>> = BTreeMap::new();
        for event in events {
            tenants.entry(event.tenant.clone()).or_default().push(event);
        }
        for (tenant, events) in tenants {
            let entries: Vec<_> = events
                .iter()
                .map(|event| stored_entry(&event.kind, event.request_id.clone(), &event.text))
                .collect();
            match builder.append(&tenant, &entries).await {
                Ok(true) => {
                    for event in &events {
                        lag.observe(self.context.seconds_since(event.at.into()));
                    }
                }
                Ok(false) => return Ok(false),
                Err(BuildFailure::Store(error)) => return Err(error.into()),
                Err(error @ BuildFailure::Damaged(_)) => {
                    tracing::error!(%tenant, %error, "the log of a tenant cannot be continued");
                    damaged.push(tenant);
                }
            }
        }
        Ok(true)
    }
}
