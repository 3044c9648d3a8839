//! What every node does beside requests: expiry, forgetting, and keeping its credentials fresh. All of it is guarded by
//! state and jittered, so that nodes that meet do no harm and nothing needs a leader.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Gateway;
use super::authenticate::REFRESH_EVERY;
use super::error::Error;
use crate::jitter::jitter;
use crate::store::seconds;
use crate::wake::Key;

/// How often expired exchanges are looked for. Readers judge expiry themselves; this only writes it down.
const EXPIRE_EVERY: Duration = Duration::from_secs(1);
/// How often uses of credentials are written: at most once a minute for each.
const USES_EVERY: Duration = Duration::from_secs(75);
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
        "uses",
        USES_EVERY,
        |gateway| async move { gateway.write_uses().await },
    );
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
            if job(Arc::clone(&gateway)).await.is_err() {
                tracing::warn!(sweep = name, "a sweep failed and will be tried again");
            }
            let _stopped = stop.run_until_cancelled(sleep(jitter(period))).await;
        }
    });
}

impl Gateway {
    /// Writes down what has expired, and releases those who wait for it.
    async fn expire_due(&self) -> Result<(), Error> {
        loop {
            let expired = self.store.expire(BATCH).await?;
            let count = expired.len();
            self.wake.wake(
                expired
                    .into_iter()
                    .map(|exchange| Key::Exchange(exchange.tenant, exchange.request_id)),
            );
            if i64::try_from(count).unwrap_or(i64::MAX) < BATCH {
                return Ok(());
            }
        }
    }

    /// Forgets what is past its retention.
    async fn forget(&self) -> Result<(), Error> {
        let retention = &self.config.retention;
        let full = |count: u64| i64::try_from(count).unwrap_or(i64::MAX) >= BATCH;
        while full(self.store.forget_keys(BATCH).await?) {}
        for tenant in self.store.tenants().await? {
            let id = &tenant.tenant_id;
            while full(
                self.store
                    .forget_exchanges(id, seconds(retention.exchange_seconds), BATCH)
                    .await?,
            ) {}
            if retention.scrub_seconds > 0 {
                while full(
                    self.store
                        .scrub_artifacts(id, seconds(retention.scrub_seconds), BATCH)
                        .await?,
                ) {}
            }
        }
        Ok(())
    }
}
