//! Batches calls of one kind into shared statements: while one batch commits, the next one fills, and nothing waits when the
//! node is idle. A batch never holds two conflicting rows, and every row gets its own answer.

use std::collections::{HashSet, VecDeque};
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::PgConnection;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::error::{Class, Result, StoreError, classify};
use super::pool::Pool;
use super::tenant_scope::TenantScope;
use crate::telemetry::Metrics;
use crate::telemetry::instrument::{Counter, Histogram};

/// Most rows of a batch: past this a statement's own time outweighs what is saved.
const MAX_ROWS: usize = 256;
/// Most bytes of a batch.
const MAX_BYTES: usize = 8 << 20;
/// Rows that may wait for a batch; more means the database does not keep up.
const QUEUE: usize = 4_096;

/// Rows with which a batch starts while another is running. A smaller one waits for the other's end.
const WORTHWHILE_ROWS: usize = 32;
/// The same in bytes.
const WORTHWHILE_BYTES: usize = 1 << 20;
/// Longest wait for the other's end, since it may be waiting for a lock. Long enough for the slow statements of a busy machine:
/// each further running batch takes another connection, which has its own plans to make.
const MAX_WAIT: Duration = Duration::from_millis(40);

/// Bytes that may wait for a batch, in KiB: rows alone would let 4,096 payloads of 2 MiB pile up.
const QUEUE_KIB: usize = 256 << 10;
/// Conflicting rows that may wait outside the queue.
const MAX_HELD: usize = 512;

/// One fact per row, in the order of the rows.
pub type BatchResult<S> = sqlx::Result<Vec<<S as BatchStatement>::Fact>>;

/// A statement that takes many rows at once.
pub trait BatchStatement: Send + Sync + 'static {
    const NAME: &'static str;
    type Row: Send + Sync + 'static;
    type Fact: Send + 'static;

    fn tenant_scope(rows: &[Self::Row]) -> TenantScope<'_>;

    /// What must not occur twice in a batch, because the statement would not see one row's work for the other.
    fn conflict_keys(_: &Self::Row) -> Vec<String> {
        Vec::new()
    }

    /// Roughly how many bytes the row sends or fetches.
    fn bytes(_: &Self::Row) -> usize {
        256
    }

    fn run(
        &self,
        connection: &mut PgConnection,
        rows: &[Self::Row],
    ) -> impl Future<Output = BatchResult<Self>> + Send;
}

type Reply<F> = oneshot::Sender<Result<F>>;

struct Job<S: BatchStatement> {
    row: S::Row,
    reply: Reply<S::Fact>,
    /// For its bytes in the queue; held until it is answered.
    permit: OwnedSemaphorePermit,
}

struct Measures {
    rows: Histogram,
    time: Histogram,
    retried: Counter,
    failed: Counter,
}

impl Measures {
    fn of(metrics: &Metrics, statement: &'static str) -> Self {
        Self {
            rows: metrics.batch_rows.of([statement]),
            time: metrics.batch_time.of([statement]),
            retried: metrics.batch_trouble.of([statement, "retried"]),
            failed: metrics.batch_trouble.of([statement, "failed"]),
        }
    }
}

pub struct Batcher<S: BatchStatement> {
    sender: mpsc::Sender<Job<S>>,
    /// KiB that the queue still takes.
    queue_kib: Arc<Semaphore>,
}

impl<S: BatchStatement> Batcher<S> {
    /// Starts `workers` that share one queue; they end when the batcher is dropped.
    pub fn start(statement: S, pool: &Pool, workers: usize, tasks: &TaskTracker) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let running = watch::Sender::new(0_usize);
        let intake = Arc::new(Mutex::new(Intake {
            receiver,
            held: VecDeque::new(),
            running: running.subscribe(),
        }));
        let statement = Arc::new(statement);
        let measures = Arc::new(Measures::of(pool.metrics(), S::NAME));
        for _ in 0..workers {
            let (statement, pool) = (Arc::clone(&statement), pool.clone());
            let intake = Arc::clone(&intake);
            let running = running.clone();
            let measures = Arc::clone(&measures);
            tasks.spawn(async move {
                loop {
                    let batch = {
                        let mut intake = intake.lock().await;
                        let Some(batch) = intake.next().await else {
                            return;
                        };
                        // Counted before the next worker takes the intake.
                        running.send_modify(|count| *count += 1);
                        batch
                    };
                    let begun = Instant::now();
                    measures.rows.observe(count_of(batch.len()));
                    run_batch(&*statement, &pool, &measures, batch).await;
                    measures.time.took(begun.elapsed());
                    running.send_modify(|count| *count -= 1);
                }
            });
        }
        Self {
            sender,
            queue_kib: Arc::new(Semaphore::new(QUEUE_KIB)),
        }
    }

    /// Puts a row into the next batch and waits for its fact.
    pub async fn run(&self, row: S::Row) -> Result<S::Fact> {
        let overloaded =
            || StoreError::Unavailable("too many calls are waiting for the database".into());
        let kib = u32::try_from(S::bytes(&row) >> 10)
            .unwrap_or(u32::MAX)
            .saturating_add(1);
        let permit = Arc::clone(&self.queue_kib)
            .try_acquire_many_owned(kib)
            .map_err(|_| overloaded())?;
        let (reply, answer) = oneshot::channel();
        self.sender
            .try_send(Job { row, reply, permit })
            .map_err(|_| overloaded())?;
        answer
            .await
            .map_err(|_| StoreError::Unavailable("the node is stopping".into()))?
    }
}

/// Rows that do not conflict.
struct Batch<S: BatchStatement> {
    jobs: Vec<Job<S>>,
    seen: HashSet<String>,
    bytes: usize,
}

impl<S: BatchStatement> Batch<S> {
    /// Adds a row, or returns it if it conflicts with another.
    fn add(&mut self, job: Job<S>) -> Result<(), Job<S>> {
        let conflict_keys = S::conflict_keys(&job.row);
        if conflict_keys.iter().any(|key| self.seen.contains(key)) {
            return Err(job);
        }
        self.seen.extend(conflict_keys);
        self.bytes += S::bytes(&job.row);
        self.jobs.push(job);
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.jobs.len() >= MAX_ROWS || self.bytes >= MAX_BYTES
    }

    fn is_worthwhile(&self) -> bool {
        self.jobs.len() >= WORTHWHILE_ROWS || self.bytes >= WORTHWHILE_BYTES
    }
}

/// The queue of a batcher, and the rows held back because they conflicted with an earlier batch.
struct Intake<S: BatchStatement> {
    receiver: mpsc::Receiver<Job<S>>,
    held: VecDeque<Job<S>>,
    running: watch::Receiver<usize>,
}

impl<S: BatchStatement> Intake<S> {
    /// The next batch: at least one row, all that are queued, and more while another batch is running.
    async fn next(&mut self) -> Option<Vec<Job<S>>> {
        let first = match self.held.pop_front() {
            Some(job) => job,
            None => self.receiver.recv().await?,
        };
        let mut batch = Batch {
            jobs: Vec::new(),
            seen: HashSet::new(),
            bytes: 0,
        };
        let mut waiting = std::mem::take(&mut self.held);
        waiting.push_front(first);
        while !batch.is_full()
            && let Some(job) = waiting.pop_front()
        {
            self.held.extend(batch.add(job).err());
        }
        self.fill(&mut batch);
        if timeout(MAX_WAIT, self.gather(&mut batch)).await.is_ok() {
            self.fill(&mut batch);
        }
        self.held.append(&mut waiting);
        Some(batch.jobs)
    }

    /// Adds what is queued.
    fn fill(&mut self, batch: &mut Batch<S>) {
        // Further conflicting rows stay in the queue, which refuses new rows once it is full.
        while !batch.is_full()
            && self.held.len() < MAX_HELD
            && let Ok(job) = self.receiver.try_recv()
        {
            self.held.extend(batch.add(job).err());
        }
    }

    /// Waits until the batch is worth a statement, or none is running.
    async fn gather(&mut self, batch: &mut Batch<S>) {
        let Self {
            receiver,
            held,
            running,
        } = self;
        while !batch.is_worthwhile() && held.len() < MAX_HELD {
            tokio::select! {
                biased;
                _ = running.wait_for(|count| *count == 0) => return,
                job = receiver.recv() => match job {
                    Some(job) => held.extend(batch.add(job).err()),
                    None => return,
                },
            }
        }
    }
}

fn count_of(rows: usize) -> f64 {
    u32::try_from(rows).map_or(f64::INFINITY, f64::from)
}

async fn run_batch<S: BatchStatement>(
    statement: &S,
    pool: &Pool,
    measures: &Measures,
    batch: Vec<Job<S>>,
) {
    let (rows, replies): (Vec<_>, Vec<_>) = batch
        .into_iter()
        // The permits are held until every row is answered.
        .map(|job| (job.row, (job.reply, job.permit)))
        .unzip();
    let (replies, _permits): (Vec<_>, Vec<_>) = replies.into_iter().unzip();
    let outcome = match attempt(statement, pool, &rows).await {
        Err(Failure::Statement(error)) => match classify(&error) {
            // Even a single row is tried again: what it conflicted with is committed now, and visible.
            Class::Data => {
                measures.retried.increment();
                for (row, reply) in rows.iter().zip(replies) {
                    let outcome = attempt(statement, pool, std::slice::from_ref(row)).await;
                    answer(S::NAME, measures, [reply], outcome);
                }
                return;
            }
            Class::Conflict | Class::Lost => {
                measures.retried.increment();
                tracing::debug!(statement = S::NAME, %error, rows = rows.len(), "a batch is retried");
                attempt(statement, &pool.after(&error), &rows).await
            }
            Class::Other => Err(Failure::Statement(error)),
        },
        outcome => outcome,
    };
    answer(S::NAME, measures, replies, outcome);
}

enum Failure {
    /// Logged by the pool, or below.
    Store(StoreError),
    Statement(sqlx::Error),
}

async fn attempt<S: BatchStatement>(
    statement: &S,
    pool: &Pool,
    rows: &[S::Row],
) -> Result<Vec<S::Fact>, Failure> {
    let lease = pool.lease(S::tenant_scope(rows)).await;
    let mut lease = lease.map_err(Failure::Store)?;
    let connection = lease.connection().map_err(Failure::Statement)?;
    let facts = pool.within(statement.run(connection, rows)).await;
    let facts = lease.settle(facts).map_err(Failure::Statement)?;
    if facts.len() == rows.len() {
        return Ok(facts);
    }
    let error = "a statement answered for another number of rows than it was given";
    tracing::error!(statement = S::NAME, "{error}");
    Err(Failure::Store(StoreError::Fault(error.into())))
}

/// Hands each row its answer; a caller that has gone away does not want it.
fn answer<F>(
    statement: &str,
    measures: &Measures,
    replies: impl IntoIterator<Item = Reply<F>>,
    outcome: Result<Vec<F>, Failure>,
) {
    let error = match outcome {
        Ok(facts) => {
            for (reply, fact) in replies.into_iter().zip(facts) {
                drop(reply.send(Ok(fact)));
            }
            return;
        }
        Err(Failure::Store(error)) => error,
        Err(Failure::Statement(error)) => {
            tracing::warn!(statement, %error, "a batch failed");
            error.into()
        }
    };
    measures.failed.increment();
    for reply in replies {
        drop(reply.send(Err(error.clone())));
    }
}
