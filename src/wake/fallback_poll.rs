//! The net: one query per node for everything it waits on, seldom while hints arrive, often while they do not.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Cause, Health, Key, Waiters};
use crate::config::{self, WakeMode};
use crate::jitter::jitter;
use crate::store::Store;

/// How far back the net looks for messages that nobody was told of: longer than any transaction lives.
const RECENT: Duration = Duration::from_secs(60);
const PER_LOOK: usize = 1_000;

/// Starts the net; it ends with `stop`.
pub(super) fn start(
    config: &config::Wake,
    waiters: Arc<Waiters>,
    store: Arc<Store>,
    health: Arc<Health>,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) {
    let (sweep, poll) = (
        Duration::from_millis(config.sweep_ms),
        Duration::from_millis(config.poll_ms),
    );
    let polling = config.mode == WakeMode::Poll;
    let stop = stop.clone();
    tasks.spawn(async move {
        let mut since_look = Duration::ZERO;
        let mut due = jitter(sweep);
        while !stop.is_cancelled() {
            // Sleeps in short steps, so that a falling silent is answered within one of them.
            let _stopped = stop.run_until_cancelled(sleep(jitter(poll))).await;
            since_look += poll;
            let hearing = !polling && health.hearing.load(Ordering::Relaxed);
            if hearing && since_look < due {
                continue;
            }
            (since_look, due) = (Duration::ZERO, jitter(sweep));
            look(&waiters, &store).await;
        }
    });
}

/// Looks once, and wakes those who have something to see.
async fn look(waiters: &Waiters, store: &Store) {
    let (mut exchanges, mut recipients) = (Vec::new(), Vec::new());
    for key in waiters.keys() {
        match key {
            Key::Exchange(tenant, request) => exchanges.push((tenant, request)),
            key @ (Key::Approver(..) | Key::Enforcer(..)) => recipients.push(key),
        }
    }
    if !exchanges.is_empty() {
        match store.settled_exchanges(&exchanges).await {
            Ok(settled) => {
                for (tenant, request) in settled {
                    waiters.wake(Key::Exchange(tenant, request).digest(), Cause::Net);
                }
            }
            Err(error) => tracing::warn!(%error, "the net could not look"),
        }
    }
    for some in recipients.chunks(PER_LOOK) {
        match store
            .recipients_with_messages(some, RECENT.as_secs_f64())
            .await
        {
            Ok(keys) => {
                for key in keys {
                    waiters.wake(key.digest(), Cause::Net);
                }
            }
            Err(error) => tracing::warn!(%error, "the net could not look"),
        }
    }
}
