//! The periodic work of every node: expiry, refreshing credentials and more. Statements are guarded
//! and periods have jitter, so that nodes may run the same sweep at once and no leader is needed.
//! Retention and the log are done by one node at a time.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::gateway::Gateway;
use crate::gateway::channels::presence;
use crate::gateway::error::Result;
use crate::gateway::identity::authenticate::{REFRESH_INTERVAL, recheck_every};
use crate::jitter::jitter;
use crate::protocol::exchange::ExchangeState;
use crate::store::error::StoreError;
use crate::wake::WakeKey;

/// Readers judge expiry themselves; the sweep only writes it.
const EXPIRE_INTERVAL: Duration = Duration::from_secs(1);
const USES_INTERVAL: Duration = Duration::from_secs(75);
/// Three times before the lease expires.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(4);
/// After a failure, so that channels go on soon after the database is back.
const HEARTBEAT_RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Routing judges leases itself; the sweep only removes rows and wakes other channels.
const REAP_INTERVAL: Duration = Duration::from_secs(5);
const COUNT_INTERVAL: Duration = Duration::from_secs(15);
/// Rows per statement: few enough to hold no lock for long.
const BATCH: i64 = 500;

/// Starts the sweeps; they end with `stop`.
pub(in crate::gateway) fn start(
    gateway: &Arc<Gateway>,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) {
    let config = &gateway.context.config;
    let forget_every = Duration::from_secs(config.retention.every_seconds.max(1));
    let write_every = presence::write_every(config);
    let sweeps = SweepTasks {
        gateway,
        tasks,
        stop,
    };
    sweeps.every("expiry", EXPIRE_INTERVAL, |gateway| async move {
        gateway.expire_due().await
    });
    sweeps.every("retention", forget_every, |gateway| async move {
        gateway.delete_expired().await
    });
    sweeps.every("credentials", REFRESH_INTERVAL, |gateway| async move {
        gateway.authenticator.refresh_credentials().await
    });
    let periods = [HEARTBEAT_INTERVAL, HEARTBEAT_RETRY_INTERVAL];
    sweeps.every_with_retry("heartbeat", periods, |gateway| async move {
        let channels = &gateway.channels;
        // Channels go on once the lease is renewed: those whose credential has ended must be closed
        // before.
        let refreshed = if channels.is_cut_off() {
            gateway.authenticator.refresh_credentials().await
        } else {
            Ok(())
        };
        let beat = match refreshed {
            Ok(()) => channels.heartbeat().await,
            failed => failed,
        };
        channels.close_after_outage();
        beat
    });
    sweeps.every("dead_nodes", REAP_INTERVAL, |gateway| async move {
        gateway.channels.reap_expired_nodes().await
    });
    sweeps.every("census", COUNT_INTERVAL, |gateway| async move {
        gateway.health.count().await
    });
    sweeps.every("uses", USES_INTERVAL, |gateway| async move {
        gateway.authenticator.write_uses().await
    });
    sweeps.every("calls", write_every, |gateway| async move {
        gateway.presence.write_calls().await
    });
    let notify_every = Duration::from_millis(config.notifications.sweep_ms);
    sweeps.every("notifications", notify_every, |gateway| async move {
        gateway.notifications.sweep().await
    });
    if gateway.log.is_on() {
        let build_every = Duration::from_millis(config.log.build_ms);
        sweeps.every("log", build_every, |gateway| async move {
            gateway.log.build().await
        });
    }
    let auth = &config.auth;
    if auth.jwt() && auth.jwt_secret.is_empty() {
        // Shorter than configured, because jitter adds up to a fifth.
        let period = Duration::from_secs(auth.jwt_jwks_refresh_seconds) * 4 / 5;
        sweeps.every("issuer_keys", period, |gateway| async move {
            gateway.authenticator.refresh_issuer_keys().await
        });
    }
    if auth.introspection() {
        sweeps.every(
            "channel_tokens",
            recheck_every(auth),
            |gateway| async move { gateway.authenticator.recheck_channels().await },
        );
    }
}

struct SweepTasks<'s> {
    gateway: &'s Arc<Gateway>,
    tasks: &'s TaskTracker,
    stop: &'s CancellationToken,
}

impl SweepTasks<'_> {
    /// Runs `job` now and then every `period`, with jitter. A sweep under way is finished before
    /// the node stops.
    fn every<J, F>(&self, name: &'static str, period: Duration, job: J)
    where
        J: Fn(Arc<Gateway>) -> F + Send + 'static,
        F: Future<Output = Result<()>> + Send,
    {
        self.every_with_retry(name, [period; 2], job);
    }

    /// The same with another period after a failure.
    fn every_with_retry<J, F>(&self, name: &'static str, [period, retry]: [Duration; 2], job: J)
    where
        J: Fn(Arc<Gateway>) -> F + Send + 'static,
        F: Future<Output = Result<()>> + Send,
    {
        let (gateway, stop) = (Arc::clone(self.gateway), self.stop.clone());
        self.tasks.spawn(async move {
            while !stop.is_cancelled() {
                let begun = Instant::now();
                let swept = job(Arc::clone(&gateway)).await;
                let outcome = if swept.is_ok() { "ok" } else { "failed" };
                let times = gateway.context.metrics.sweep_time.of([name, outcome]);
                times.took(begun.elapsed());
                let pause = if swept.is_ok() { period } else { retry };
                if let Err(error) = swept {
                    tracing::warn!(sweep = name, %error, "a sweep failed and will be tried again");
                }
                let _stopped = stop.run_until_cancelled(sleep(jitter(pause))).await;
            }
        });
    }
}

impl Gateway {
    /// Writes what has expired, and ends the waits for it.
    async fn expire_due(&self) -> Result<()> {
        let exchanges = self.expire_exchanges().await;
        let prompts = self
            .repeat(BATCH, || self.context.store.prompts.expire_prompts(BATCH))
            .await;
        exchanges.and(prompts)
    }

    async fn expire_exchanges(&self) -> Result<()> {
        self.repeat(BATCH, async || {
            let expired = self.context.store.exchanges.expire(BATCH).await?;
            let count = expired.len();
            let lag = self.context.metrics.sweep_lag.of(["expiry"]);
            for exchange in &expired {
                lag.observe(exchange.late);
            }
            self.context.note_transition(
                ExchangeState::PendingApproval.as_str(),
                ExchangeState::Expired,
                count,
            );
            self.context.wake.wake(
                expired
                    .into_iter()
                    .map(|exchange| WakeKey::Exchange(exchange.tenant, exchange.request_id)),
            );
            Ok(u64::try_from(count).unwrap_or(u64::MAX))
        })
        .await
    }

    /// Repeats a step while it finds `full` rows and the node is not draining.
    async fn repeat<F>(&self, full: i64, step: impl Fn() -> F) -> Result<()>
    where
        F: Future<Output = Result<u64, StoreError>>,
    {
        while i64::try_from(step().await?).unwrap_or(i64::MAX) >= full
            && !self.context.draining.is_cancelled()
        {}
        Ok(())
    }
}
