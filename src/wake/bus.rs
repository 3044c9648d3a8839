//! Sends hints between nodes over NOTIFY: after the commit, on connections of its own, verified by a
//! canary. Hints that come while others are being sent are sent together. NOTIFY inside the writing
//! transaction would hold a cluster-wide lock across its flush to disk.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::copy_cipher::{CopyCipher, MessageCopy};
use super::copy_demand::CopyDemand;
use super::health::BusHealth;
use super::hint::{self, HintNews, WakeHint, read_digest, read_message};
use super::new_messages::NewMessages;
use super::waiters::{WaiterTable, WakeCause};
use crate::clock::Clock;
use crate::config::{self, Config};
use crate::jitter::jitter;
use crate::protocol::id::MessageId;
use crate::store::Store;
use crate::store::database::notify::{WakeListener, WakeNotifier};
use crate::telemetry::Metrics;

/// Hints waiting for the bus. When more come, it wakes everyone on the other nodes instead.
const QUEUE: usize = 8_192;
const PER_FLUSH: usize = 4_000;
/// How long a hint waits for others if nobody has asked about its key: most likely no other node has a channel for it.
const HINT_GRACE: Duration = Duration::from_millis(5);
/// First pause before connecting again; it doubles up to the last.
const RECONNECT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(3));
/// Longest wait for PostgreSQL: a connection that died silently would never answer.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(5);

fn timed_out<T>(_: Elapsed) -> Result<T, sqlx::Error> {
    Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()))
}

/// Asks other nodes for copies of a key's messages, if it is time. Many of these must not keep other hints out of the queue: if one is
/// lost, rows are read until the next time.
pub(super) fn ask_for_copies(hints: &mpsc::Sender<WakeHint>, demand: &CopyDemand, digest: u64) {
    if hints.capacity() > QUEUE / 2 && demand.must_ask(digest) {
        drop(hints.try_send(WakeHint {
            digest,
            news: HintNews::Demand,
            can_wait: true,
        }));
    }
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
    new_messages: Arc<NewMessages>,
    demand: Arc<CopyDemand>,
    cipher: CopyCipher,
    store: Arc<Store>,
    /// For hints of the bus itself. Weak, so that the queue ends with the hub.
    hints: mpsc::WeakSender<WakeHint>,
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

/// The parts that the bus shares with the hub.
pub(super) struct BusParts {
    pub waiters: Arc<WaiterTable>,
    pub new_messages: Arc<NewMessages>,
    pub demand: Arc<CopyDemand>,
    pub store: Arc<Store>,
    pub health: Arc<BusHealth>,
}

impl WakeBus {
    /// Starts the bus, which ends with `stop`, and returns the queue of its hints.
    pub(super) fn start(
        config: &Config,
        clock: &Clock,
        copy_secret: &[u8; 32],
        parts: BusParts,
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) -> mpsc::Sender<WakeHint> {
        let (sender, hints) = mpsc::channel(QUEUE);
        let tag = clock.operation_id().to_string();
        let bus = Arc::new(Self {
            database: config.database.clone(),
            wake: config.wake.clone(),
            cipher: CopyCipher::new(copy_secret, &tag),
            tag,
            connected: Notify::new(),
            waiters: parts.waiters,
            new_messages: parts.new_messages,
            demand: parts.demand,
            metrics: Arc::clone(parts.store.database.metrics()),
            store: parts.store,
            hints: sender.downgrade(),
            health: parts.health,
            canaries_received: AtomicU64::new(0),
            others: Mutex::default(),
            canary: Mutex::default(),
        });
        tasks.spawn(Arc::clone(&bus).run_sender(hints, stop.clone()));
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
            self.demand.ask_again();
            self.connected.notify_one();
        }
    }

    /// Sends hints, and a canary now and then, until the node stops.
    async fn run_sender(
        self: Arc<Self>,
        mut hints: mpsc::Receiver<WakeHint>,
        stop: CancellationToken,
    ) {
        let mut notifier: Option<WakeNotifier> = None;
        let mut pause = RECONNECT.0;
        let canary_every = Duration::from_millis(self.wake.canary_ms);
        let mut next_canary = Instant::now();
        let mut batch: Vec<WakeHint> = Vec::new();
        let mut flush_at = None;
        let mut stopping = false;
        while !stopping {
            tokio::select! {
                count = hints.recv_many(&mut batch, PER_FLUSH) => stopping = count == 0,
                () = sleep_until(flush_at.map_or(next_canary, |at| next_canary.min(at))) => {}
                () = self.connected.notified() => next_canary = Instant::now(),
                () = stop.cancelled() => {
                    // Hints of commits before the stop are still sent.
                    hints.close();
                    while let Ok(hint) = hints.try_recv() { batch.push(hint); }
                    stopping = true;
                }
            }
            let now = Instant::now();
            let may_wait = !stopping
                && (1..PER_FLUSH).contains(&batch.len())
                && batch.iter().all(|hint| hint.can_wait);
            if may_wait && now < next_canary && now < *flush_at.get_or_insert(now + HINT_GRACE) {
                continue;
            }
            flush_at = None;
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
            self.demand.ask_again();
            return vec![format!("* {}", self.tag)];
        }
        if batch.is_empty() || self.keeps_hints() {
            batch.clear();
            return Vec::new();
        }
        hint::notifications(&self.tag, &self.cipher, std::mem::take(batch))
    }

    async fn flush(
        &self,
        notifier: &mut Option<WakeNotifier>,
        payloads: &[String],
    ) -> Result<(), sqlx::Error> {
        if payloads.is_empty() {
            return Ok(());
        }
        let notifier = match notifier {
            Some(notifier) => notifier,
            None => notifier.insert(WakeNotifier::connect(&self.database).await?),
        };
        notifier.send(payloads).await?;
        let sent = u64::try_from(payloads.len()).unwrap_or(u64::MAX);
        self.metrics.hints_sent.add(sent);
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
            Some("k" | "m" | "n" | "w" | "*") if own => {}
            Some("k") => {
                for digest in words.filter_map(read_digest) {
                    self.waiters.wake(digest, WakeCause::Hint);
                }
            }
            Some("m") => {
                for (digest, message) in words.filter_map(read_message) {
                    self.hear(digest, message, None::<fn() -> _>);
                }
            }
            Some("n") => {
                for (name, copy) in words.filter_map(|word| word.rsplit_once(':')) {
                    if let Some((digest, message)) = read_message(name) {
                        let decrypt = || self.cipher.decrypt(tag?, name, copy);
                        self.hear(digest, message, Some(decrypt));
                    }
                }
            }
            Some("w") => words
                .filter_map(read_digest)
                .for_each(|digest| self.demand.note(digest)),
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

    /// Wakes the waiters of a new message, which then take it from its copy or read its row.
    fn hear(
        &self,
        digest: u64,
        message: MessageId,
        copy: Option<impl FnOnce() -> Option<MessageCopy>>,
    ) {
        let readers = self.waiters.count(digest);
        if readers == 0 {
            return;
        }
        if let Some(decrypt) = copy {
            let outcome = match decrypt().map(|copy| self.keep(copy, readers)) {
                Some(true) => "kept",
                Some(false) => "refused",
                None => "unreadable",
            };
            self.metrics.copies.of([outcome]).increment();
        }
        self.waiters.wake_for(digest, message);
        if let Some(hints) = self.hints.upgrade() {
            ask_for_copies(&hints, &self.demand, digest);
        }
    }

    /// Keeps a copy for channels here; false if it is too old or not needed any more.
    fn keep(&self, copy: MessageCopy, readers: usize) -> bool {
        let created_at = copy.message.created_at().inner();
        let age = self.store.database.database_now() - created_at;
        (self.new_messages).add_copy(age, copy.key, readers, copy.message)
    }
}
