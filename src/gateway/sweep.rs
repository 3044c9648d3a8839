//! The periodic work of every node: expiry, retention, refreshing credentials and more. Statements are guarded and periods
//! have jitter, so that nodes may run the same sweep at once and no leader is needed.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Gateway;
use super::authenticate::{REFRESH_EVERY, recheck_every};
use super::error::Result;
use super::presence;
use crate::jitter::jitter;
use crate::protocol::exchange::ExchangeState;
use crate::protocol::id::TenantId;
use crate::store::error::StoreError;
use crate::store::listing::Part;
use crate::store::seconds;
use crate::wake::Key;

/// Readers judge expiry themselves; the sweep only writes it.
const EXPIRE_EVERY: Duration = Duration::from_secs(1);
const USES_EVERY: Duration = Duration::from_secs(75);
/// Three times before the lease expires.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(4);
/// After a failure, so that channels go on soon after the database is back.
const HEARTBEAT_RETRY: Duration = Duration::from_secs(1);
/// Routing judges leases itself; the sweep only removes rows and wakes other channels.
const REAP_EVERY: Duration = Duration::from_secs(5);
const COUNT_EVERY: Duration = Duration::from_secs(15);
/// Rows per statement: few enough to hold no lock for long.
const BATCH: i64 = 500;

/// Starts the sweeps; they end with `stop`.
pub(super) fn start(gateway: &Arc<Gateway>, tasks: &TaskTracker, stop: &CancellationToken) {
    let config = &gateway.context.config;
    let forget_every = Duration::from_secs(config.retention.every_seconds.max(1));
    let write_every = presence::write_every(config);
    let sweeps = Sweeps {
        gateway,
        tasks,
        stop,
    };
    sweeps.every("expiry", EXPIRE_EVERY, |gateway| async move {
        gateway.expire_due().await
    });
    sweeps.every("retention", forget_every, |gateway| async move {
        gateway.forget().await
    });
    sweeps.every("credentials", REFRESH_EVERY, |gateway| async move {
        gateway.authenticator.refresh_credentials().await
    });
    let periods = [HEARTBEAT_EVERY, HEARTBEAT_RETRY];
    sweeps.every_with_retry("heartbeat", periods, |gateway| async move {
        let channels = &gateway.channels;
        // Channels go on once the lease is renewed: those whose credential has ended must be closed before.
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
    sweeps.every("dead_nodes", REAP_EVERY, |gateway| async move {
        gateway.channels.reap_expired_nodes().await
    });
    sweeps.every("census", COUNT_EVERY, |gateway| async move {
        gateway.health.count().await
    });
    sweeps.every("uses", USES_EVERY, |gateway| async move {
        gateway.authenticator.write_uses().await
    });
    sweeps.every("calls", write_every, |gateway| async move {
        gateway.presence.write_calls().await
    });
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

struct Sweeps<'s> {
    gateway: &'s Arc<Gateway>,
    tasks: &'s TaskTracker,
    stop: &'s CancellationToken,
}

impl Sweeps<'_> {
    /// Runs `job` now and then every `period`, with jitter. A sweep under way is finished before the node stops.
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
                    .map(|exchange| Key::Exchange(exchange.tenant, exchange.request_id)),
            );
            Ok(u64::try_from(count).unwrap_or(u64::MAX))
        })
        .await
    }

    /// Deletes what is past its retention. After a failure the rest is still tried; the first failure is returned.
    async fn forget(&self) -> Result<()> {
        let store = &self.context.store;
        let keep = seconds(self.context.config.pairing.keep_seconds);
        let keys = self
            .repeat(BATCH, || store.exchanges.forget_keys(BATCH))
            .await;
        let attempts = || store.pairings.forget_pairing_sessions(keep, BATCH);
        let attempts = self.repeat(BATCH, attempts).await;
        let guesses = self
            .repeat(BATCH, || store.pairings.forget_guesses(BATCH))
            .await;
        let mut all = keys.and(attempts).and(guesses);
        for tenant in store.credentials.tenants(&Part::default()).await?.0 {
            // Stop if the database is unavailable or a standby: the rest would fail as well, one timeout at a time.
            if all.is_err() && !store.database.writable().await? {
                break;
            }
            let forgotten = self.forget_of(&tenant.tenant_id).await;
            if let Err(error) = &forgotten {
                tracing::warn!(tenant = %tenant.tenant_id, %error, "retention failed and will be tried again");
            }
            all = all.and(forgotten);
        }
        all
    }

    async fn forget_of(&self, tenant: &TenantId) -> Result<()> {
        let (store, retention) = (&self.context.store, &self.context.config.retention);
        let keep = seconds(retention.exchange_seconds);
        let exchanges = || store.exchanges.forget_exchanges(tenant, keep, BATCH);
        let exchanges = self.repeat(BATCH, exchanges).await;
        let keep = seconds(retention.session_seconds);
        let sessions = || store.sessions.forget_sessions(tenant, keep);
        let sessions = self.repeat(1, sessions).await;
        let enforcers = || store.channels.forget_enforcers(tenant, keep, BATCH);
        let enforcers = self.repeat(BATCH, enforcers).await;
        let keep = seconds(retention.audit_seconds);
        let audit = || store.audit.forget_audit(tenant, keep, BATCH);
        let audit = self.repeat(BATCH, audit).await;
        let keep = seconds(retention.prompt_seconds);
        let prompts = || store.prompts.forget_prompts(tenant, keep, BATCH);
        let prompts = self.repeat(BATCH, prompts).await;
        let scrubbed = self.scrub(tenant).await;
        let forgotten = exchanges.and(sessions).and(enforcers);
        forgotten.and(audit).and(prompts).and(scrubbed)
    }

    /// Deletes the payloads of rows that are kept without them.
    async fn scrub(&self, tenant: &TenantId) -> Result<()> {
        let (store, after) = (
            &self.context.store,
            self.context.config.retention.scrub_seconds,
        );
        if after == 0 {
            return Ok(());
        }
        let keep = seconds(after);
        let snapshots = || store.sessions.scrub_snapshots(tenant, keep);
        let snapshots = self.repeat(1, snapshots).await;
        let artifacts = || store.exchanges.scrub_artifacts(tenant, keep, BATCH);
        let artifacts = self.repeat(BATCH, artifacts).await;
        let prompts = || store.prompts.scrub_prompts(tenant, keep, BATCH);
        let prompts = self.repeat(BATCH, prompts).await;
        snapshots.and(artifacts).and(prompts)
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
