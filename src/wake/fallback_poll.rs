//! The fallback poll: one query per node for everything it waits on, to find what no notification brought. Seldom while
//! notifications arrive, often while they do not.

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

/// How old a message may be that is still looked for: longer than any transaction lives.
const RECENT: Duration = Duration::from_secs(60);
const KEYS_PER_QUERY: usize = 1_000;

pub(super) fn start(
    config: &config::Wake,
    waiters: Arc<Waiters>,
    store: Arc<Store>,
    health: Arc<Health>,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) {
    let sweep = Duration::from_millis(config.sweep_ms);
    let poll = Duration::from_millis(config.poll_ms);
    let polling = config.mode == WakeMode::Poll;
    let stop = stop.clone();
    tasks.spawn(async move {
        let mut waited = Duration::ZERO;
        let mut due = jitter(sweep);
        while !stop.is_cancelled() {
            // Short steps, so that missing notifications are made up for within one of them.
            let _stopped = stop.run_until_cancelled(sleep(jitter(poll))).await;
            waited += poll;
            let receiving = !polling && health.receiving.load(Ordering::Relaxed);
            if receiving && waited < due {
                continue;
            }
            (waited, due) = (Duration::ZERO, jitter(sweep));
            poll_once(&waiters, &store).await;
        }
    });
}

/// Queries once, and wakes those for whom there is something to read.
async fn poll_once(waiters: &Waiters, store: &Store) {
    let (mut exchanges, mut recipients) = (Vec::new(), Vec::new());
    for key in waiters.keys() {
        match key {
            Key::Exchange(tenant, request) => exchanges.push((tenant, request)),
            key @ (Key::Approver(..) | Key::Enforcer(..)) => recipients.push(key),
        }
    }
    if !exchanges.is_empty() {
        match store.exchanges.settled_exchanges(&exchanges).await {
            Ok(settled) => {
                for (tenant, request) in settled {
                    waiters.wake(Key::Exchange(tenant, request).digest(), Cause::Poll);
                }
            }
            Err(error) => tracing::warn!(%error, "the fallback poll failed"),
        }
    }
    for some in recipients.chunks(KEYS_PER_QUERY) {
        let channels = &store.channels;
        match (channels.recipients_with_messages(some, RECENT.as_secs_f64())).await {
            Ok(keys) => {
                for key in keys {
                    waiters.wake(key.digest(), Cause::Poll);
                }
            }
            Err(error) => tracing::warn!(%error, "the fallback poll failed"),
        }
    }
}
