//! Natural batching: while one batch commits, the next one fills. Nothing waits when the node is idle. A batch never holds
//! two rows that could meet each other, and every row gets its own answer.

use std::collections::{HashSet, VecDeque};
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::PgConnection;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::error::{Class, StoreError, classify};
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

/// Rows, and bytes, that make a batch worth its statement while another is under way: fewer wait for that one's end.
const WORTHWHILE_ROWS: usize = 32;
const WORTHWHILE_BYTES: usize = 1 << 20;
/// For how long at most: the other may be waiting for somebody's lock. Long enough that a busy machine's slow statements do not
/// count as stuck: every further batch under way takes another connection, each with plans of its own to make.
const PATIENCE: Duration = Duration::from_millis(40);

/// Bytes that may wait for a batch, in KiB: rows alone would let 4,096 payloads of 2 MiB pile up.
const QUEUE_KIB: usize = 256 << 10;
/// Twins that may wait for their turn outside the queue.
const MAX_HELD: usize = 512;

/// A kind of statement that takes many rows at once.
pub trait BatchStatement: Send + Sync + 'static {
    const NAME: &'static str;
    type Row: Send + Sync + 'static;
    type Fact: Send + 'static;

    fn tenant_scope(rows: &[Self::Row]) -> TenantScope<'_>;

    /// What must not occur twice in a batch, because the statement would not see one row's work for the other.
    #[must_use]
    fn conflict_keys(_: &Self::Row) -> Vec<String> {
        Vec::new()
    }

    /// Roughly how many bytes the row sends or fetches.
    #[must_use]
    fn bytes(_: &Self::Row) -> usize {
        256
    }

    /// Runs the statement; one fact per row, in order.
    fn run(
        &self,
        connection: &mut PgConnection,
        rows: &[Self::Row],
    ) -> impl Future<Output = Result<Vec<Self::Fact>, sqlx::Error>> + Send;
}

type Reply<F> = oneshot::Sender<Result<F, StoreError>>;

struct Job<W: BatchStatement> {
    row: W::Row,
    reply: Reply<W::Fact>,
    /// The room its bytes take up until it is answered.
    room: OwnedSemaphorePermit,
}

/// What is measured of one kind of statement.
struct Measures {
    rows: Arc<Histogram>,
    time: Arc<Histogram>,
    retried: Arc<Counter>,
    failed: Arc<Counter>,
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

pub struct Batcher<W: BatchStatement> {
    sender: mpsc::Sender<Job<W>>,
    room: Arc<Semaphore>,
}

impl<W: BatchStatement> Batcher<W> {
    /// Starts `workers` that share one queue; they end when the batcher is dropped.
    pub fn start(work: W, pool: &Pool, workers: usize, tasks: &TaskTracker) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let under_way = watch::Sender::new(0_usize);
        let intake = Arc::new(Mutex::new(Intake {
            receiver,
            held: VecDeque::new(),
            under_way: under_way.subscribe(),
        }));
        let work = Arc::new(work);
        let measures = Arc::new(Measures::of(pool.metrics(), W::NAME));
        for _ in 0..workers {
            let (work, pool, intake) = (Arc::clone(&work), pool.clone(), Arc::clone(&intake));
            let under_way = under_way.clone();
            let measures = Arc::clone(&measures);
            tasks.spawn(async move {
                loop {
                    let batch = {
                        let mut intake = intake.lock().await;
                        let Some(batch) = intake.next().await else {
                            return;
                        };
                        // Before the next worker looks.
                        under_way.send_modify(|count| *count += 1);
                        batch
                    };
                    let begun = Instant::now();
                    measures.rows.observe(count_of(batch.len()));
                    run_batch(&*work, &pool, &measures, batch).await;
                    measures.time.took(begun.elapsed());
                    under_way.send_modify(|count| *count -= 1);
                }
            });
        }
        Self {
            sender,
            room: Arc::new(Semaphore::new(QUEUE_KIB)),
        }
    }

    /// Puts a row into the next batch and waits for its fact.
    pub async fn run(&self, row: W::Row) -> Result<W::Fact, StoreError> {
        let overloaded =
            || StoreError::Unavailable("too many calls are waiting for the database".into());
        let kib = u32::try_from(W::bytes(&row) >> 10)
            .unwrap_or(u32::MAX)
            .saturating_add(1);
        let room = Arc::clone(&self.room)
            .try_acquire_many_owned(kib)
            .map_err(|_| overloaded())?;
        let (reply, answer) = oneshot::channel();
        self.sender
            .try_send(Job { row, reply, room })
            .map_err(|_| overloaded())?;
        answer
            .await
            .map_err(|_| StoreError::Unavailable("the node is stopping".into()))?
    }
}

/// Rows that do not meet each other.
struct Batch<W: BatchStatement> {
    jobs: Vec<Job<W>>,
    seen: HashSet<String>,
    bytes: usize,
}

impl<W: BatchStatement> Batch<W> {
    /// Adds a row, unless it would meet another: then it comes back.
    fn add(&mut self, job: Job<W>) -> Result<(), Job<W>> {
        let conflict_keys = W::conflict_keys(&job.row);
        if conflict_keys.iter().any(|twin| self.seen.contains(twin)) {
            return Err(job);
        }
        self.seen.extend(conflict_keys);
        self.bytes += W::bytes(&job.row);
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

/// The queue of a batcher, and the rows deferred because they conflict with one already in the batch.
struct Intake<W: BatchStatement> {
    receiver: mpsc::Receiver<Job<W>>,
    held: VecDeque<Job<W>>,
    under_way: watch::Receiver<usize>,
}

impl<W: BatchStatement> Intake<W> {
    /// The next batch: at least one row, and whatever else is there; more if it is worth waiting for.
    async fn next(&mut self) -> Option<Vec<Job<W>>> {
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
        if timeout(PATIENCE, self.gather(&mut batch)).await.is_ok() {
            self.fill(&mut batch);
        }
        self.held.append(&mut waiting);
        Some(batch.jobs)
    }

    /// Adds what is there without waiting.
    fn fill(&mut self, batch: &mut Batch<W>) {
        // Past the bound, a flood of conflicting rows stays in the queue, where it is refused once that is full.
        while !batch.is_full()
            && self.held.len() < MAX_HELD
            && let Ok(job) = self.receiver.try_recv()
        {
            self.held.extend(batch.add(job).err());
        }
    }

    /// Waits until the batch is worth a statement, or none is under way.
    async fn gather(&mut self, batch: &mut Batch<W>) {
        let Self {
            receiver,
            held,
            under_way,
        } = self;
        while !batch.is_worthwhile() && held.len() < MAX_HELD {
            tokio::select! {
                biased;
                _ = under_way.wait_for(|count| *count == 0) => return,
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

async fn run_batch<W: BatchStatement>(
    work: &W,
    pool: &Pool,
    measures: &Measures,
    batch: Vec<Job<W>>,
) {
    let mut rooms = Vec::with_capacity(batch.len());
    let (rows, replies): (Vec<_>, Vec<_>) = batch
        .into_iter()
        .map(|job| {
            rooms.push(job.room);
            (job.row, job.reply)
        })
        .unzip();
    let error = match attempt(work, pool, &rows).await {
        Ok(facts) => return answer(replies, facts.into_iter().map(Ok)),
        Err(Failure::Statement(error)) => error,
        Err(Failure::Store(error)) => {
            measures.failed.increment();
            return answer(replies, std::iter::repeat_with(|| Err(error.clone())));
        }
    };
    match classify(&error) {
        // Alone, a row that met another's uncommitted work sees it committed: hence once more even for a single one.
        Class::Data => {
            measures.retried.increment();
            for (row, reply) in rows.iter().zip(replies) {
                let fact = attempt(work, pool, std::slice::from_ref(row)).await;
                if fact.is_err() {
                    measures.failed.increment();
                }
                answer(vec![reply], single(fact));
            }
        }
        Class::Conflict | Class::Lost => {
            measures.retried.increment();
            tracing::debug!(%error, rows = rows.len(), "a batch is tried again");
            match attempt(work, pool, &rows).await {
                Ok(facts) => answer(replies, facts.into_iter().map(Ok)),
                Err(failure) => {
                    measures.failed.increment();
                    let error = failure.logged();
                    answer(replies, std::iter::repeat_with(|| Err(error.clone())));
                }
            }
        }
        Class::Other => {
            measures.failed.increment();
            let error = Failure::Statement(error).logged();
            answer(replies, std::iter::repeat_with(|| Err(error.clone())));
        }
    }
}

enum Failure {
    /// No connection.
    Store(StoreError),
    Statement(sqlx::Error),
}

impl Failure {
    /// The error for the callers, logged once here.
    fn logged(self) -> StoreError {
        let error = match self {
            Self::Store(error) => error,
            Self::Statement(error) => error.into(),
        };
        tracing::warn!(%error, "a batch failed");
        error
    }
}

async fn attempt<W: BatchStatement>(
    work: &W,
    pool: &Pool,
    rows: &[W::Row],
) -> Result<Vec<W::Fact>, Failure> {
    let lease = pool.lease(W::tenant_scope(rows)).await;
    let mut lease = lease.map_err(Failure::Store)?;
    let connection = lease.connection().map_err(Failure::Statement)?;
    let facts = work.run(connection, rows).await;
    let facts = lease.settle(facts).map_err(Failure::Statement)?;
    if facts.len() == rows.len() {
        return Ok(facts);
    }
    Err(Failure::Store(StoreError::Fault(
        "a statement answered for fewer rows than it was given".into(),
    )))
}

fn single<F>(outcome: Result<Vec<F>, Failure>) -> impl Iterator<Item = Result<F, StoreError>> {
    let facts = match outcome {
        Ok(facts) => facts.into_iter().map(Ok).collect(),
        Err(failure) => vec![Err(failure.logged())],
    };
    facts.into_iter()
}

/// Hands each row its answer; a caller that is gone does not want it.
fn answer<F>(replies: Vec<Reply<F>>, facts: impl Iterator<Item = Result<F, StoreError>>) {
    for (reply, fact) in replies.into_iter().zip(facts) {
        drop(reply.send(fact));
    }
}
