//! Makes batches of the rows that are queued: which rows share one, when it begins, and where busy
//! rows pause.

use std::collections::{HashSet, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

use crate::store::database::batch_gate::{BatchGate, BatchPermit};
use crate::store::database::batch_statement::BatchStatement;
use crate::store::database::busy::{BusyKeys, LockTries};
use crate::store::error::Result;

/// Most rows of a batch, by weight: past this a statement's own time outweighs what is saved.
const MAX_ROWS: usize = 256;
/// Most bytes of a batch.
const MAX_BYTES: usize = 8 << 20;
/// Rows with which a batch starts while another is running. A smaller one waits for the other's
/// end.
const WORTHWHILE_ROWS: usize = 32;
/// The same in bytes.
const WORTHWHILE_BYTES: usize = 1 << 20;
/// Longest wait for the other's end, since it may be slow. Long enough for the slow statements of a
/// busy machine: each further running batch takes another connection, which has its own plans to
/// make.
const BATCH_TIMEOUT: Duration = Duration::from_millis(40);
/// Conflicting rows that may wait outside the queue.
const MAX_HELD: usize = 512;
/// Busy rows that may pause outside the queue.
const MAX_PAUSED: usize = 4_096;

/// A row that was queued, and who waits for its fact.
pub(in crate::store) struct QueuedRow<S: BatchStatement> {
    pub row: S::Row,
    pub caller: RowCaller<S::Fact>,
}

pub(in crate::store) struct RowCaller<F> {
    pub reply: oneshot::Sender<Result<F>>,
    /// For the row's bytes in the queue; held until it is answered.
    pub _permit: OwnedSemaphorePermit,
    /// Set once the row was found busy.
    pub tries: Option<LockTries>,
}

/// Busy rows, while they pause.
pub(in crate::store) struct PausedRows<S: BatchStatement> {
    queue: mpsc::WeakSender<QueuedRow<S>>,
    keys: BusyKeys,
    room: Arc<Semaphore>,
    patience: Duration,
    tasks: TaskTracker,
}

impl<S: BatchStatement> PausedRows<S> {
    pub fn new(
        queue: &mpsc::Sender<QueuedRow<S>>,
        lock_timeout: Duration,
        tasks: &TaskTracker,
    ) -> Self {
        Self {
            // Weak, so that the workers end when the batcher is dropped.
            queue: queue.downgrade(),
            keys: BusyKeys::default(),
            room: Arc::new(Semaphore::new(MAX_PAUSED)),
            patience: S::patience(lock_timeout),
            tasks: tasks.clone(),
        }
    }

    /// Pauses a row that a statement found busy, and all others with its keys. Returns it if no try
    /// is left.
    pub fn add_busy(&self, job: QueuedRow<S>) -> Result<(), QueuedRow<S>> {
        let keys = S::conflict_keys(&job.row);
        let pause = self.add(job)?;
        self.keys.add(keys, pause);
        Ok(())
    }

    /// Puts a row into the queue again after a pause. Returns it if no try is left.
    fn add(&self, mut job: QueuedRow<S>) -> Result<Duration, QueuedRow<S>> {
        let Ok(room) = Arc::clone(&self.room).try_acquire_owned() else {
            return Err(job);
        };
        let tries = job
            .caller
            .tries
            .get_or_insert_with(|| LockTries::new(self.patience));
        let Some(pause) = tries.next_pause() else {
            return Err(job);
        };
        let queue = self.queue.clone();
        self.tasks.spawn(async move {
            sleep(pause).await;
            if let Some(queue) = queue.upgrade() {
                // Fails only when the node stops, which the caller is told then.
                let _stopped = queue.send(job).await;
            }
            drop(room);
        });
        Ok(pause)
    }
}

/// Rows that do not conflict.
struct RowBatch<S: BatchStatement> {
    jobs: Vec<QueuedRow<S>>,
    seen: HashSet<String>,
    bytes: usize,
    weight: usize,
}

impl<S: BatchStatement> RowBatch<S> {
    /// Adds a row, or returns it if it conflicts with another. One that is known to be busy pauses
    /// instead.
    fn add(&mut self, job: QueuedRow<S>, paused: &PausedRows<S>) -> Result<(), QueuedRow<S>> {
        let conflict_keys = S::conflict_keys(&job.row);
        if conflict_keys.iter().any(|key| self.seen.contains(key)) {
            return Err(job);
        }
        let job = if paused.keys.contain(&conflict_keys) {
            match paused.add(job) {
                Ok(_) => return Ok(()),
                Err(job) => job,
            }
        } else {
            job
        };
        self.seen.extend(conflict_keys);
        self.bytes += S::bytes(&job.row);
        self.weight += S::weight(&job.row);
        self.jobs.push(job);
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.weight >= MAX_ROWS || self.bytes >= MAX_BYTES
    }

    fn is_worthwhile(&self) -> bool {
        self.weight >= WORTHWHILE_ROWS || self.bytes >= WORTHWHILE_BYTES
    }
}

/// The queue of a batcher, and the rows held back because they conflicted with an earlier batch.
pub(in crate::store) struct BatchIntake<S: BatchStatement> {
    receiver: mpsc::Receiver<QueuedRow<S>>,
    held: VecDeque<QueuedRow<S>>,
    /// How many batches of this kind are running.
    running: watch::Receiver<usize>,
    gate: BatchGate,
    paused: Arc<PausedRows<S>>,
}

impl<S: BatchStatement> BatchIntake<S> {
    pub fn new(
        receiver: mpsc::Receiver<QueuedRow<S>>,
        running: watch::Receiver<usize>,
        gate: BatchGate,
        paused: &Arc<PausedRows<S>>,
    ) -> Self {
        Self {
            receiver,
            held: VecDeque::new(),
            running,
            gate,
            paused: Arc::clone(paused),
        }
    }

    /// The next batch: at least one row, all that are queued, and more while another batch is
    /// running. A large one needs no permit, nor does one that has waited for too long.
    pub async fn next(&mut self) -> Option<(Vec<QueuedRow<S>>, Option<BatchPermit>)> {
        let mut batch = RowBatch {
            jobs: Vec::new(),
            seen: HashSet::new(),
            bytes: 0,
            weight: 0,
        };
        let mut waiting = std::mem::take(&mut self.held);
        while !batch.is_full()
            && let Some(job) = waiting.pop_front()
        {
            self.held.extend(batch.add(job, &self.paused).err());
        }
        while batch.jobs.is_empty() {
            let job = self.receiver.recv().await?;
            self.held.extend(batch.add(job, &self.paused).err());
        }
        self.fill(&mut batch);
        let gathered = timeout(BATCH_TIMEOUT, self.gather(&mut batch)).await;
        if gathered.is_ok() {
            self.fill(&mut batch);
        }
        self.held.append(&mut waiting);
        Some((batch.jobs, gathered.ok().flatten()))
    }

    /// Adds what is queued.
    fn fill(&mut self, batch: &mut RowBatch<S>) {
        // Further conflicting rows stay in the queue, which refuses new rows once it is full.
        while !batch.is_full()
            && self.held.len() < MAX_HELD
            && let Ok(job) = self.receiver.try_recv()
        {
            self.held.extend(batch.add(job, &self.paused).err());
        }
    }

    /// Waits until the batch is worth a statement, or none of its kind is running and few others are.
    async fn gather(&mut self, batch: &mut RowBatch<S>) -> Option<BatchPermit> {
        let Self {
            receiver,
            held,
            running,
            gate,
            paused,
        } = self;
        let mut turn = pin!(async {
            drop(running.wait_for(|count| *count == 0).await);
            gate.enter().await
        });
        while !batch.is_worthwhile() && held.len() < MAX_HELD {
            tokio::select! {
                biased;
                permit = &mut turn => return permit,
                job = receiver.recv() => match job {
                    Some(job) => held.extend(batch.add(job, paused).err()),
                    None => return None,
                },
            }
        }
        None
    }
}
