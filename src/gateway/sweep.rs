//! What every node does beside requests: expiry, forgetting, and keeping its credentials fresh. All of it is guarded by
//! state and jittered, so that nodes that meet do no harm and nothing needs a leader.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Gateway;
use super::authenticate::{REFRESH_EVERY, recheck_every};
use super::error::Error;
use super::presence;
use crate::jitter::jitter;
use crate::protocol::exchange::State;
use crate::protocol::id::TenantId;
use crate::store::error::StoreError;
use crate::store::listing::Part;
use crate::store::seconds;
use crate::wake::Key;

/// How often expired exchanges are looked for. Readers judge expiry themselves; this only writes it down.
const EXPIRE_EVERY: Duration = Duration::from_secs(1);
/// How often uses of credentials are written: at most once a minute for each.
const USES_EVERY: Duration = Duration::from_secs(75);
/// How often a node renews its lease: three times before it runs out.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(4);
/// How often dead nodes are looked for. Routing judges their leases itself; this only tidies up and tells.
const BURY_EVERY: Duration = Duration::from_secs(5);
/// How often what is pending is counted, for metrics.
const COUNT_EVERY: Duration = Duration::from_secs(15);
/// Rows per statement: short enough to hold no lock for long.
const BATCH: i64 = 500;

/// Starts the sweeps; they end with `stop`.
pub(super) fn start(gateway: &Arc<Gateway>, tasks: &TaskTracker, stop: &CancellationToken) {
    let forget_every = Duration::from_secs(gateway.config.retention.every_seconds.max(1));
    every(
        gateway,
        tasks,
        stop,
        "expiry",
        EXPIRE_EVERY,
        |gateway| async move { gateway.expire_due().await },
    );
    every(
        gateway,
        tasks,
        stop,
        "retention",
        forget_every,
        |gateway| async move { gateway.forget().await },
    );
    every(
        gateway,
        tasks,
        stop,
        "credentials",
        REFRESH_EVERY,
        |gateway| async move { gateway.refresh_credentials().await },
    );
    every(
        gateway,
        tasks,
        stop,
        "heartbeat",
        HEARTBEAT_EVERY,
        |gateway| async move { gateway.heartbeat().await },
    );
    every(
        gateway,
        tasks,
        stop,
        "dead_nodes",
        BURY_EVERY,
        |gateway| async move { gateway.reap_expired_nodes().await },
    );
    every(
        gateway,
        tasks,
        stop,
        "census",
        COUNT_EVERY,
        |gateway| async move { gateway.count().await },
    );
    every(
        gateway,
        tasks,
        stop,
        "uses",
        USES_EVERY,
        |gateway| async move { gateway.write_uses().await },
    );
    every(
        gateway,
        tasks,
        stop,
        "calls",
        presence::write_every(&gateway.config),
        |gateway| async move { gateway.write_calls().await },
    );
    start_for_tokens(gateway, tasks, stop);
}

/// Starts what tokens from elsewhere need, where they are taken.
fn start_for_tokens(gateway: &Arc<Gateway>, tasks: &TaskTracker, stop: &CancellationToken) {
    let auth = &gateway.config.auth;
    if auth.jwt() && auth.jwt_secret.is_empty() {
        // A little more often than promised, since jitter makes it a little less.
        let period = Duration::from_secs(auth.jwt_jwks_refresh_seconds) * 4 / 5;
        every(
            gateway,
            tasks,
            stop,
            "issuer_keys",
            period,
            |gateway| async move { gateway.refresh_issuer_keys().await },
        );
    }
    if auth.introspection() {
        every(
            gateway,
            tasks,
            stop,
            "channel_tokens",
            recheck_every(auth),
            |gateway| async move { gateway.recheck_channels().await },
        );
    }
}

/// Runs `job` now and then every `period`, jittered. A sweep under way is finished before the node stops.
fn every<J, F>(
    gateway: &Arc<Gateway>,
    tasks: &TaskTracker,
    stop: &CancellationToken,
    name: &'static str,
    period: Duration,
    job: J,
) where
    J: Fn(Arc<Gateway>) -> F + Send + 'static,
    F: Future<Output = Result<(), Error>> + Send,
{
    let (gateway, stop) = (Arc::clone(gateway), stop.clone());
    tasks.spawn(async move {
        while !stop.is_cancelled() {
            let begun = Instant::now();
            let swept = job(Arc::clone(&gateway)).await;
            let outcome = if swept.is_ok() { "ok" } else { "failed" };
            let times = gateway.metrics.sweep_time.of([name, outcome]);
            times.took(begun.elapsed());
            if let Err(error) = swept {
                tracing::warn!(sweep = name, %error, "a sweep failed and will be tried again");
            }
            let _stopped = stop.run_until_cancelled(sleep(jitter(period))).await;
        }
    });
}

impl Gateway {
    /// Writes down what has expired, and releases those who wait for it.
    async fn expire_due(&self) -> Result<(), Error> {
        let exchanges = self.expire_exchanges().await;
        let prompts = self
            .repeat(BATCH, || self.store.expire_prompts(BATCH))
            .await;
        exchanges.and(prompts)
    }

    async fn expire_exchanges(&self) -> Result<(), Error> {
        self.repeat(BATCH, async || {
            let expired = self.store.expire(BATCH).await?;
            let count = expired.len();
            let lag = self.metrics.sweep_lag.of(["expiry"]);
            for exchange in &expired {
                lag.observe(exchange.late);
            }
            self.note_transition(State::PendingApproval.as_str(), State::Expired, count);
            self.wake.wake(
                expired
                    .into_iter()
                    .map(|exchange| Key::Exchange(exchange.tenant, exchange.request_id)),
            );
            Ok(u64::try_from(count).unwrap_or(u64::MAX))
        })
        .await
    }

    /// Forgets what is past its retention. One thing's trouble does not keep the others past their time: the rest is tried
    /// all the same, and the first failure reported in the end.
    async fn forget(&self) -> Result<(), Error> {
        let store = &self.store;
        let keep = seconds(self.config.pairing.keep_seconds);
        let keys = self.repeat(BATCH, || store.forget_keys(BATCH)).await;
        let attempts = || store.forget_pairing_sessions(keep, BATCH);
        let attempts = self.repeat(BATCH, attempts).await;
        let guesses = self.repeat(BATCH, || store.forget_guesses(BATCH)).await;
        let mut all = keys.and(attempts).and(guesses);
        for tenant in store.tenants(&Part::default()).await?.0 {
            // Unless the database is away, or a standby: then the rest would fail as well, one timeout after the other.
            if all.is_err() && !store.writable().await? {
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

    /// Forgets what of one tenant is past its retention.
    async fn forget_of(&self, tenant: &TenantId) -> Result<(), Error> {
        let (store, retention) = (&self.store, &self.config.retention);
        let keep = seconds(retention.exchange_seconds);
        let exchanges = || store.forget_exchanges(tenant, keep, BATCH);
        let exchanges = self.repeat(BATCH, exchanges).await;
        let keep = seconds(retention.session_seconds);
        let sessions = || store.forget_sessions(tenant, keep);
        let sessions = self.repeat(1, sessions).await;
        let enforcers = || store.forget_enforcers(tenant, keep, BATCH);
        let enforcers = self.repeat(BATCH, enforcers).await;
        let keep = seconds(retention.audit_seconds);
        let audit = || store.forget_audit(tenant, keep, BATCH);
        let audit = self.repeat(BATCH, audit).await;
        let keep = seconds(retention.prompt_seconds);
        let prompts = || store.forget_prompts(tenant, keep, BATCH);
        let prompts = self.repeat(BATCH, prompts).await;
        let scrubbed = self.scrub(tenant).await;
        let forgotten = exchanges.and(sessions).and(enforcers);
        forgotten.and(audit).and(prompts).and(scrubbed)
    }

    /// Empties what of one tenant is kept without its payloads.
    async fn scrub(&self, tenant: &TenantId) -> Result<(), Error> {
        let (store, after) = (&self.store, self.config.retention.scrub_seconds);
        if after == 0 {
            return Ok(());
        }
        let keep = seconds(after);
        let snapshots = || store.scrub_snapshots(tenant, keep);
        let snapshots = self.repeat(1, snapshots).await;
        let artifacts = || store.scrub_artifacts(tenant, keep, BATCH);
        let artifacts = self.repeat(BATCH, artifacts).await;
        let prompts = || store.scrub_prompts(tenant, keep, BATCH);
        let prompts = self.repeat(BATCH, prompts).await;
        snapshots.and(artifacts).and(prompts)
    }

    /// Repeats a step for as long as it finds so many rows, and is not in the way of a stop.
    async fn repeat<F>(&self, full: i64, step: impl Fn() -> F) -> Result<(), Error>
    where
        F: Future<Output = Result<u64, StoreError>>,
    {
        while i64::try_from(step().await?).unwrap_or(i64::MAX) >= full
            && !self.draining.is_cancelled()
        {}
        Ok(())
    }
}
