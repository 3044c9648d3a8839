//! Sends hints between nodes over NOTIFY: after the commit, on connections of its own, verified by a
//! canary. Hints that come while others are being sent are sent together. NOTIFY inside the writing
//! transaction would hold a cluster-wide lock across its flush to disk.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::health::BusHealth;
use super::waiters::{WaiterTable, WakeCause};
use crate::clock::Clock;
use crate::config::{self, Config};
use crate::jitter::jitter;
use crate::protocol::id::MessageId;
use crate::store::database::notify::{WakeListener, WakeNotifier};
use crate::telemetry::Metrics;

/// Hints waiting for the bus. When more come, it wakes everyone on the other nodes instead.
const QUEUE: usize = 8_192;
/// Digests per notification: 17 bytes each stay under PostgreSQL's limit of 8,000.
const PER_NOTIFY: usize = 400;
/// The same of digests with a message, of 50 bytes each.
const MESSAGES_PER_NOTIFY: usize = 150;
const PER_FLUSH: usize = 4_000;
/// First pause before connecting again; it doubles up to the last.
const RECONNECT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(3));
/// Longest wait for PostgreSQL: a connection that died silently would never answer.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(5);

fn read_named(word: &str) -> Option<(u64, MessageId)> {
    let (digest, message) = word.split_once(':')?;
    let digest = u64::from_str_radix(digest, 16).ok()?;
    Some((digest, MessageId(Uuid::try_parse(message).ok()?)))
}

fn timed_out<T>(_: Elapsed) -> Result<T, sqlx::Error> {
    Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()))
}

/// A key that has changed, by its digest.
pub(super) struct WakeHint {
    pub digest: u64,
    /// The message that is new, if that is all.
    pub message: Option<MessageId>,
}

/// Which other nodes this one hears.
#[derive(Default)]
struct OtherNodes {
    /// When each one's canary last arrived, by its tag.
    heard: HashMap<String, Instant>,
    /// Since when this node hears itself, and so would hear others.
    listening_since: Option<Instant>,
    /// Whether hints were not sent, because nobody was there.
    kept: bool,
}

pub(super) struct WakeBus {
    database: config::Database,
    wake: config::Wake,
    /// Identifies this process in every payload, so that it can ignore its own. Not the configured
    /// node id, which two nodes may share by mistake.
    tag: String,
    waiters: Arc<WaiterTable>,
    health: Arc<BusHealth>,
    /// Signalled when a listener has connected, which a canary must verify, and when another node
    /// has.
    connected: Notify,
    canaries_received: AtomicU64,
    others: Mutex<OtherNodes>,
    /// When the last canary was sent, until it arrives.
    canary: Mutex<Option<Instant>>,
    metrics: Arc<Metrics>,
}

impl WakeBus {
    /// Starts the bus, which ends with `stop`, and returns the queue of its hints.
    pub(super) fn start(
        config: &Config,
        clock: &Clock,
        metrics: &Arc<Metrics>,
        waiters: &Arc<WaiterTable>,
        health: &Arc<BusHealth>,
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) -> mpsc::Sender<WakeHint> {
        let (sender, keys) = mpsc::channel(QUEUE);
        let bus = Arc::new(Self {
            database: config.database.clone(),
            wake: config.wake.clone(),
            tag: clock.operation_id().to_string(),
            connected: Notify::new(),
            waiters: Arc::clone(waiters),
            health: Arc::clone(health),
            canaries_received: AtomicU64::new(0),
            others: Mutex::default(),
            canary: Mutex::default(),
            metrics: Arc::clone(metrics),
        });
        tasks.spawn(Arc::clone(&bus).run_sender(keys, stop.clone()));
        let stop = stop.clone();
        tasks.spawn(async move {
            let listening = Box::pin(bus.run_listener());
            stop.run_until_cancelled(listening).await
        });
        sender
    }

    fn canary(&self) -> MutexGuard<'_, Option<Instant>> {
        self.canary.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long the next canary may take to arrive.
    fn canary_time_limit(&self) -> Duration {
        let interval = Duration::from_millis(self.wake.canary_ms);
        interval + interval / 5 + Duration::from_millis(self.wake.canary_timeout_ms)
    }

    fn others(&self) -> MutexGuard<'_, OtherNodes> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether no other node listens, as far as this one hears: then hints are kept back.
    fn keeps_hints(&self) -> bool {
        let mut others = self.others();
        // Twice: one canary may be lost.
        let time_limit = self.canary_time_limit() * 2;
        others.heard.retain(|_, heard| heard.elapsed() < time_limit);
        let since = others.listening_since;
        let would_hear = since.is_some_and(|since| since.elapsed() > time_limit);
        let alone = would_hear && others.heard.is_empty();
        others.kept |= alone;
        alone
    }

    fn note_other(&self, tag: &str) {
        let mut others = self.others();
        if others
            .heard
            .insert(tag.to_owned(), Instant::now())
            .is_none()
        {
            // The new node must read everything that was kept back.
            if std::mem::take(&mut others.kept) {
                self.health.overflow.store(true, Ordering::Relaxed);
            }
            self.connected.notify_one();
        }
    }

    /// Sends hints, and a canary now and then, until the node stops.
    async fn run_sender(
        self: Arc<Self>,
        mut keys: mpsc::Receiver<WakeHint>,
        stop: CancellationToken,
    ) {
        let mut notifier: Option<WakeNotifier> = None;
        let mut pause = RECONNECT.0;
        let canary_every = Duration::from_millis(self.wake.canary_ms);
        let mut next_canary = Instant::now();
        let mut batch = Vec::new();
        let mut stopping = false;
        while !stopping {
            tokio::select! {
                count = keys.recv_many(&mut batch, PER_FLUSH) => stopping = count == 0,
                () = tokio::time::sleep_until(next_canary) => {}
                () = self.connected.notified() => next_canary = Instant::now(),
                () = stop.cancelled() => {
                    // Hints of commits before the stop are still sent.
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
            // Cancelling it loses nothing but the connection.
            let flush = self.flush(&mut notifier, &payloads);
            match (timeout(DATABASE_TIMEOUT, flush).await).unwrap_or_else(timed_out) {
                Ok(()) => pause = RECONNECT.0,
                Err(error) => {
                    tracing::warn!(%error, "notifications cannot be sent");
                    notifier = None;
                    // The other nodes read everything, unless their fallback polls find it sooner.
                    let lost = payloads.iter().any(|payload| !payload.starts_with("c "));
                    self.health.overflow.fetch_or(lost, Ordering::Relaxed);
                    next_canary = Instant::now();
                    let _stopped = stop.run_until_cancelled(sleep(jitter(pause))).await;
                    pause = (pause * 2).min(RECONNECT.1);
                }
            }
        }
    }

    fn payloads(&self, batch: &mut Vec<WakeHint>) -> Vec<String> {
        if self.health.overflow.swap(false, Ordering::Relaxed) {
            batch.clear();
            return vec![format!("* {}", self.tag)];
        }
        if batch.is_empty() || self.keeps_hints() {
            batch.clear();
            return Vec::new();
        }
        let plain = batch.iter().filter(|hint| hint.message.is_none());
        let digests: HashSet<u64> = plain.map(|hint| hint.digest).collect();
        let named: Vec<String> = batch
            .drain(..)
            .filter(|hint| !digests.contains(&hint.digest))
            .filter_map(|hint| Some(format!("{:016x}:{}", hint.digest, hint.message?.0.simple())))
            .collect();
        let digests: Vec<String> = digests
            .into_iter()
            .map(|digest| format!("{digest:016x}"))
            .collect();
        let keys = digests.chunks(PER_NOTIFY).map(|chunk| ("k", chunk));
        let messages = named.chunks(MESSAGES_PER_NOTIFY).map(|chunk| ("m", chunk));
        keys.chain(messages)
            .map(|(kind, chunk)| format!("{kind} {} {}", self.tag, chunk.join(" ")))
            .collect()
    }

    async fn flush(
        &self,
        notifier: &mut Option<WakeNotifier>,
        payloads: &[String],
    ) -> Result<(), sqlx::Error> {
        for payload in payloads {
            let notifier = match notifier {
                Some(notifier) => notifier,
                None => notifier.insert(WakeNotifier::connect(&self.database).await?),
            };
            notifier.send(payload).await?;
            self.metrics.hints_sent.increment();
        }
        Ok(())
    }

    /// Connects again and again, and listens until the connection is lost or a canary does not
    /// arrive.
    async fn run_listener(&self) {
        let mut pause = RECONNECT.0;
        loop {
            let connect = WakeListener::connect(&self.database);
            match (timeout(DATABASE_TIMEOUT, connect).await).unwrap_or_else(timed_out) {
                Ok(listener) => {
                    // Hints sent meanwhile are lost, so everyone reads again.
                    self.waiters.wake_everyone();
                    self.connected.notify_one();
                    let before = self.canaries_received.load(Ordering::Relaxed);
                    self.listen(listener).await;
                    if self.canaries_received.load(Ordering::Relaxed) > before {
                        pause = RECONNECT.0;
                    }
                    tracing::warn!("notifications are not arriving; polling until they do");
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot listen for notifications; polling until it works");
                }
            }
            self.health.receiving.store(false, Ordering::Relaxed);
            self.others().listening_since = None;
            self.waiters.wake_everyone();
            sleep(jitter(pause)).await;
            pause = (pause * 2).min(RECONNECT.1);
        }
    }

    /// Listens until the connection is lost, or no canary has arrived in time.
    async fn listen(&self, mut listener: WakeListener) {
        let time_limit = self.canary_time_limit();
        let mut count = self.canaries_received.load(Ordering::Relaxed);
        let mut deadline = Instant::now() + time_limit;
        loop {
            match timeout_at(deadline, listener.next()).await {
                Ok(Ok(Some(payload))) => self.handle(&payload),
                Ok(Ok(None) | Err(_)) | Err(_) => return,
            }
            let now = self.canaries_received.load(Ordering::Relaxed);
            if now != count {
                (count, deadline) = (now, Instant::now() + time_limit);
            }
        }
    }

    /// Acts on one notification. An unknown one comes from a newer version, and wakes everyone.
    fn handle(&self, payload: &str) {
        self.metrics.hints_heard.increment();
        let mut words = payload.split(' ');
        let (kind, tag) = (words.next(), words.next());
        let own = tag == Some(self.tag.as_str());
        match kind {
            Some("k" | "m" | "*") if own => {}
            Some("k") => {
                for digest in words.filter_map(|word| u64::from_str_radix(word, 16).ok()) {
                    self.waiters.wake(digest, WakeCause::Hint);
                }
            }
            Some("m") => {
                for (digest, message) in words.filter_map(read_named) {
                    self.waiters.wake_for(digest, message);
                }
            }
            Some("c") if own => {
                self.canaries_received.fetch_add(1, Ordering::Relaxed);
                if let Some(sent) = self.canary().take() {
                    self.metrics.canary.took(sent.elapsed());
                }
                self.health.receiving.store(true, Ordering::Relaxed);
                self.others()
                    .listening_since
                    .get_or_insert_with(Instant::now);
            }
            Some("c") => self.note_other(tag.unwrap_or_default()),
            _ => self.waiters.wake_everyone(),
        }
    }
}
