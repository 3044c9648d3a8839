//! The fallback poll: one query per node for everything it waits on, to find what no notification brought. Seldom while
//! notifications arrive, often while they do not.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Cause, Health, Key, Waiters};
use crate::config::{self, WakeMode};
use crate::jitter::jitter;
use crate::store::Store;
use crate::store::error::Result;

/// How old a message may be that is looked for by its age. Those that committed even later are looked for by their
/// transaction.
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
        let mut looked = Looked::default();
        while !stop.is_cancelled() {
            // Short steps, so that missing notifications are made up for within one of them.
            let _stopped = stop.run_until_cancelled(sleep(jitter(poll))).await;
            waited += poll;
            let receiving = !polling && health.receiving.load(Ordering::Relaxed);
            if receiving && waited < due {
                continue;
            }
            (waited, due) = (Duration::ZERO, jitter(sweep));
            // Every so often only, however often it polls: it reads all that is open.
            let all = looked.at.is_none_or(|at| at.elapsed() >= sweep / 2);
            poll_once(&waiters, &store, all.then_some(&mut looked)).await;
        }
    });
}

/// The last look at messages of every age.
#[derive(Default)]
struct Looked {
    at: Option<Instant>,
    /// The oldest transaction that was under way then: what older ones wrote was visible.
    transaction: i64,
}

/// Queries once, and wakes those for whom there is something to read; with `looked`, also for what committed long after it
/// was created.
async fn poll_once(waiters: &Waiters, store: &Store, looked: Option<&mut Looked>) {
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
    if let Err(error) = poll_recipients(waiters, store, &recipients, looked).await {
        tracing::warn!(%error, "the fallback poll failed");
    }
}

async fn poll_recipients(
    waiters: &Waiters,
    store: &Store,
    recipients: &[Key],
    looked: Option<&mut Looked>,
) -> Result<()> {
    let channels = &store.channels;
    let now = Instant::now();
    // Asked before the rows are read: what is not visible to them is of this transaction or a later one.
    let oldest = match &looked {
        Some(_) => channels.oldest_transaction().await?,
        None => 0,
    };
    let since = looked.as_ref().map(|looked| looked.transaction);
    for some in recipients.chunks(KEYS_PER_QUERY) {
        let found = channels.recipients_with_messages(some, RECENT.as_secs_f64(), since);
        for recipient in found.await? {
            let digest = recipient.key.digest();
            match recipient.unseen_since {
                Some(since) => waiters.found(digest, since),
                None => waiters.wake(digest, Cause::Poll),
            }
        }
    }
    if let Some(looked) = looked {
        *looked = Looked {
            at: Some(now),
            transaction: oldest,
        };
    }
    Ok(())
}
