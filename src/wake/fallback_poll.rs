//! The fallback poll: one query per node for everything it waits on, to find what no notification
//! brought. Seldom while notifications arrive, often while they do not.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::health::BusHealth;
use super::waiters::{WaiterTable, WakeCause};
use crate::config::{self, WakeMode};
use crate::jitter::jitter;
use crate::protocol::wake_key::WakeKey;
use crate::store::Store;
use crate::store::channels::channel::{LateMessages, RunningChannel};
use crate::store::error::Result;

/// How old a message may be that is found by its age. Those that committed even later are found by
/// their transaction.
const RECENT_LIFETIME: Duration = Duration::from_secs(60);
const KEYS_PER_QUERY: usize = 1_000;
/// Open messages of a recipient that each scan for late ones reads.
const LATE_ROWS: i64 = 200;
/// A transaction is long if it was under way at this many scans.
const LONG_SCANS: u32 = 3;

pub(super) fn start(
    config: &config::Wake,
    waiters: Arc<WaiterTable>,
    store: Arc<Store>,
    health: Arc<BusHealth>,
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
        let mut late = LateScan::default();
        while !stop.is_cancelled() {
            // Short steps, so that missing notifications are made up for within one of them.
            let _stopped = stop.run_until_cancelled(sleep(jitter(poll))).await;
            waited += poll;
            let receiving = !polling && health.receiving.load(Ordering::Relaxed);
            if receiving && waited < due {
                continue;
            }
            (waited, due) = (Duration::ZERO, jitter(sweep));
            // Every so often only, however often it polls: this reads more.
            let scan = late.at.is_none_or(|at| at.elapsed() >= sweep / 2);
            poll_once(&waiters, &store, scan.then_some(&mut late)).await;
        }
    });
}

/// Looks for messages that committed late, or were created by a clock that has stepped back.
#[derive(Default)]
struct LateScan {
    at: Option<Instant>,
    /// The oldest transaction that was under way at the last scan: what older ones wrote was
    /// visible.
    since: i64,
    /// The transactions under way, and at how many scans they were.
    running: HashMap<i64, u32>,
}

impl LateScan {
    /// Returns the messages to scan now. Few open messages are always read; all of them once a long
    /// transaction has ended, which is what makes messages late.
    fn next(&self, running: &RunningChannel) -> LateMessages {
        let ended = (self.running.iter())
            .any(|(transaction, scans)| *scans >= LONG_SCANS && !running.all.contains(transaction));
        LateMessages {
            since: self.since,
            most: if ended { i64::MAX } else { LATE_ROWS },
        }
    }

    fn note(&mut self, at: Instant, running: &RunningChannel) {
        self.at = Some(at);
        self.since = running.oldest;
        let scans = |transaction| self.running.get(transaction).map_or(1, |scans| scans + 1);
        self.running = (running.all.iter())
            .map(|transaction| (*transaction, scans(transaction)))
            .collect();
    }
}

/// Queries once, and wakes those for whom there is something to read; with `late`, also for late
/// messages.
async fn poll_once(waiters: &WaiterTable, store: &Store, late: Option<&mut LateScan>) {
    let (mut exchanges, mut recipients) = (Vec::new(), Vec::new());
    for key in waiters.keys() {
        match key {
            WakeKey::Exchange(tenant, request) => exchanges.push((tenant, request)),
            key @ (WakeKey::Approver(..) | WakeKey::Enforcer(..)) => recipients.push(key),
        }
    }
    for some in exchanges.chunks(KEYS_PER_QUERY) {
        match store.exchanges.settled_exchanges(some).await {
            Ok(settled) => {
                for (tenant, request) in settled {
                    waiters.wake(WakeKey::Exchange(tenant, request).digest(), WakeCause::Poll);
                }
            }
            Err(error) => tracing::warn!(%error, "the fallback poll failed"),
        }
    }
    if let Err(error) = poll_recipients(waiters, store, &recipients, late).await {
        tracing::warn!(%error, "the fallback poll failed");
    }
}

async fn poll_recipients(
    waiters: &WaiterTable,
    store: &Store,
    recipients: &[WakeKey],
    late: Option<&mut LateScan>,
) -> Result<()> {
    let channels = &store.channels;
    let now = Instant::now();
    // Asked before the rows are read: what is not visible to them is of one of these transactions
    // or a later one.
    let running = match &late {
        Some(_) => channels.running_transactions().await?,
        None => RunningChannel::default(),
    };
    let wanted = late.as_ref().map(|late| late.next(&running));
    for some in recipients.chunks(KEYS_PER_QUERY) {
        let found = channels.recipients_with_messages(some, RECENT_LIFETIME.as_secs_f64(), wanted);
        for recipient in found.await? {
            let digest = recipient.key.digest();
            match recipient.unseen_since {
                Some(since) => waiters.found(digest, since),
                None => waiters.wake(digest, WakeCause::Poll),
            }
        }
    }
    if let Some(late) = late {
        late.note(now, &running);
    }
    Ok(())
}
