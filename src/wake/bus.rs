//! Hints between nodes over NOTIFY: sent after the commit, coalesced, on connections of their own, watched by a canary.
//! NOTIFY inside the writing transaction would hold a cluster-wide lock across its flush to disk.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Cause, Health, Key, Waiters};
use crate::clock::Clock;
use crate::config::{self, Config};
use crate::jitter::jitter;
use crate::store::notify::{Listener, Notifier};
use crate::telemetry::Metrics;

/// Shortest time between two flushes of a node: what comes meanwhile is said at once. Longer, and a steady trickle of wakes
/// would wait for nothing; shorter, and a flood would be said one by one.
const COALESCE: Duration = Duration::from_millis(2);
/// Digests per notification: 17 bytes each stay under PostgreSQL's limit of 8,000.
const PER_NOTIFY: usize = 400;
const PER_FLUSH: usize = 4_000;
/// First pause before connecting again; it doubles up to the last.
const RECONNECT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(3));

/// Longest wait for an answer of PostgreSQL: a peer that is gone without a word would otherwise hold us for ever.
const PATIENCE: Duration = Duration::from_secs(5);

/// A wait that was too long, as an error of the connection.
fn silence<T>(_: Elapsed) -> Result<T, sqlx::Error> {
    Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()))
}

pub(super) struct Bus {
    database: config::Database,
    wake: config::Wake,
    /// This process: every payload carries it, so that a node can pass over its own. Never the configured name, which
    /// two nodes may share by mistake.
    tag: String,
    waiters: Arc<Waiters>,
    health: Arc<Health>,
    /// Said when a listener is new: a canary is to show whether it hears.
    listening: Notify,
    heard: AtomicU64,
    /// When the last one was sent, until it is back.
    canary: Mutex<Option<Instant>>,
    metrics: Arc<Metrics>,
}

impl Bus {
    pub(super) fn new(
        config: &Config,
        clock: &Clock,
        metrics: Arc<Metrics>,
        waiters: Arc<Waiters>,
        health: Arc<Health>,
    ) -> Self {
        Self {
            database: config.database.clone(),
            wake: config.wake.clone(),
            tag: clock.operation_id().to_string(),
            listening: Notify::new(),
            waiters,
            health,
            heard: AtomicU64::new(0),
            canary: Mutex::default(),
            metrics,
        }
    }

    fn canary(&self) -> MutexGuard<'_, Option<Instant>> {
        self.canary.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn start(
        self,
        keys: mpsc::Receiver<Key>,
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) {
        let bus = Arc::new(self);
        let sender = Arc::clone(&bus).send_all(keys, stop.clone());
        tasks.spawn(sender);
        let stop = stop.clone();
        tasks.spawn(async move { stop.run_until_cancelled(bus.hear_all()).await });
    }

    /// Sends what must be looked at, and a canary now and then, until the node stops.
    async fn send_all(self: Arc<Self>, mut keys: mpsc::Receiver<Key>, stop: CancellationToken) {
        let mut notifier: Option<Notifier> = None;
        let mut pause = RECONNECT.0;
        let canary_every = Duration::from_millis(self.wake.canary_ms);
        let mut next_canary = Instant::now();
        let mut batch = Vec::new();
        let mut stopping = false;
        while !stopping {
            tokio::select! {
                count = keys.recv_many(&mut batch, PER_FLUSH) => stopping = count == 0,
                () = tokio::time::sleep_until(next_canary) => {}
                () = self.listening.notified() => next_canary = Instant::now(),
                () = stop.cancelled() => {
                    // Whatever was committed before the stop is still said.
                    keys.close();
                    while let Ok(key) = keys.try_recv() { batch.push(key); }
                    stopping = true;
                }
            }
            let mut payloads = self.payloads(&mut batch);
            if Instant::now() >= next_canary && !stopping {
                next_canary = Instant::now() + jitter(canary_every);
                payloads.push(format!("c {}", self.tag));
                *self.canary() = Some(Instant::now());
            }
            // Nothing but this connection depends on the call, so cutting it short loses nothing but the connection.
            match timeout(PATIENCE, self.flush(&mut notifier, &payloads))
                .await
                .unwrap_or_else(silence)
            {
                Ok(()) => pause = RECONNECT.0,
                Err(error) => {
                    // What could not be said is left to the other nodes' nets; saying it late helps nobody.
                    tracing::warn!(%error, "notifications cannot be sent");
                    notifier = None;
                    let _stopped = stop.run_until_cancelled(sleep(jitter(pause))).await;
                    pause = (pause * 2).min(RECONNECT.1);
                }
            }
            let _stopped = stop.run_until_cancelled(sleep(COALESCE)).await;
        }
    }

    fn payloads(&self, batch: &mut Vec<Key>) -> Vec<String> {
        let digests: HashSet<u64> = batch.drain(..).map(|key| key.digest()).collect();
        if self.health.overflow.swap(false, Ordering::Relaxed) {
            return vec![format!("* {}", self.tag)];
        }
        let digests: Vec<String> = digests
            .into_iter()
            .map(|digest| format!("{digest:016x}"))
            .collect();
        digests
            .chunks(PER_NOTIFY)
            .map(|chunk| format!("k {} {}", self.tag, chunk.join(" ")))
            .collect()
    }

    /// Sends payloads, connecting if need be.
    async fn flush(
        &self,
        notifier: &mut Option<Notifier>,
        payloads: &[String],
    ) -> Result<(), sqlx::Error> {
        for payload in payloads {
            let notifier = match notifier {
                Some(notifier) => notifier,
                None => notifier.insert(Notifier::connect(&self.database).await?),
            };
            notifier.send(payload).await?;
            self.metrics.hints_sent.increment();
        }
        Ok(())
    }

    /// Hears for ever: connects, lets everyone look (hints may have been lost), and listens until the connection is lost
    /// or a canary does not come back.
    async fn hear_all(&self) {
        let mut pause = RECONNECT.0;
        loop {
            match timeout(PATIENCE, Listener::connect(&self.database))
                .await
                .unwrap_or_else(silence)
            {
                Ok(hearer) => {
                    // What was said meanwhile is lost: everyone looks. Whether it hears, its first canary will show.
                    self.waiters.wake_everyone();
                    self.listening.notify_one();
                    let heard_before = self.heard.load(Ordering::Relaxed);
                    self.hear(hearer).await;
                    if self.heard.load(Ordering::Relaxed) > heard_before {
                        pause = RECONNECT.0;
                    }
                    tracing::warn!("notifications are not arriving; polling until they do");
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot listen for notifications; polling until it works");
                }
            }
            self.health.hearing.store(false, Ordering::Relaxed);
            self.waiters.wake_everyone();
            sleep(jitter(pause)).await;
            pause = (pause * 2).min(RECONNECT.1);
        }
    }

    /// Hears until the connection is lost, or no canary has come back in time.
    async fn hear(&self, mut hearer: Listener) {
        let longest = Duration::from_millis(self.wake.canary_ms);
        let silence = longest + longest / 5 + Duration::from_millis(self.wake.canary_timeout_ms);
        let mut count = self.heard.load(Ordering::Relaxed);
        let mut deadline = Instant::now() + silence;
        loop {
            match timeout_at(deadline, hearer.next()).await {
                Ok(Ok(Some(payload))) => self.understand(&payload),
                Ok(Ok(None) | Err(_)) | Err(_) => return,
            }
            let now = self.heard.load(Ordering::Relaxed);
            if now != count {
                (count, deadline) = (now, Instant::now() + silence);
            }
        }
    }

    /// Acts on one hint. What is not understood comes from a newer version and means: look.
    fn understand(&self, payload: &str) {
        self.metrics.hints_heard.increment();
        let mut words = payload.split(' ');
        let (kind, tag) = (words.next(), words.next());
        let own = tag == Some(self.tag.as_str());
        match kind {
            Some("k") if own => {}
            Some("k") => {
                for digest in words.filter_map(|word| u64::from_str_radix(word, 16).ok()) {
                    self.waiters.wake(digest, Cause::Hint);
                }
            }
            Some("c") if own => {
                self.heard.fetch_add(1, Ordering::Relaxed);
                if let Some(sent) = self.canary().take() {
                    self.metrics.canary.took(sent.elapsed());
                }
                self.health.hearing.store(true, Ordering::Relaxed);
            }
            Some("c") => {}
            _ => self.waiters.wake_everyone(),
        }
    }
}
