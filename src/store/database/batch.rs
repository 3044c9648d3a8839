//! Batches calls of one kind into shared statements: while one batch commits, the next one fills,
//! and nothing waits when the node is idle. A batch never holds two conflicting rows, and every row
//! gets its own answer. A row that another transaction has locked returns to the queue after a
//! pause; its neighbours are answered at once.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, Semaphore, mpsc, oneshot, watch};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::store::database::batch_gate::PERMIT_LIFETIME;
use crate::store::database::batch_statement::BatchStatement;
use crate::store::database::intake::{BatchIntake, PausedRows, QueuedRow, RowCaller};
use crate::store::database::pool::ConnectionPool;
use crate::store::error::{ErrorClass, Result, StoreError, classify};
use crate::telemetry::Metrics;
use crate::telemetry::instrument::{Counter, Histogram};

/// Rows that may wait for a batch; more means the database does not keep up.
const QUEUE: usize = 4_096;
/// Bytes that may wait for a batch, in KiB: rows alone would let 4,096 payloads of 2 MiB pile up.
const QUEUE_KIB: usize = 256 << 10;

struct BatchMetrics {
    rows: Histogram,
    time: Histogram,
    retried: Counter,
    failed: Counter,
    busy: Counter,
}

impl BatchMetrics {
    fn of(metrics: &Metrics, statement: &'static str) -> Self {
        Self {
            rows: metrics.batch_rows.of([statement]),
            time: metrics.batch_time.of([statement]),
            retried: metrics.batch_trouble.of([statement, "retried"]),
            failed: metrics.batch_trouble.of([statement, "failed"]),
            busy: metrics.busy_rows.of([statement]),
        }
    }
}

pub struct StatementBatcher<S: BatchStatement> {
    sender: mpsc::Sender<QueuedRow<S>>,
    /// KiB that the queue still takes.
    queue_kib: Arc<Semaphore>,
}

impl<S: BatchStatement> StatementBatcher<S> {
    /// Starts `workers` that share one queue; they end when the batcher is dropped.
    pub fn start(
        statement: S,
        pool: &ConnectionPool,
        workers: usize,
        lock_timeout: Duration,
        tasks: &TaskTracker,
    ) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let running = watch::Sender::new(0_usize);
        let paused = Arc::new(PausedRows::new(&sender, lock_timeout, tasks));
        let gates = pool.gates();
        let gate = if S::IS_READ {
            &gates.reads
        } else {
            &gates.writes
        };
        let intake = BatchIntake::new(receiver, running.subscribe(), gate.clone(), &paused);
        let intake = Arc::new(Mutex::new(intake));
        let statement = Arc::new(statement);
        let measures = Arc::new(BatchMetrics::of(pool.metrics(), S::NAME));
        for _ in 0..workers {
            let (statement, pool) = (Arc::clone(&statement), pool.clone());
            let intake = Arc::clone(&intake);
            let running = running.clone();
            let (measures, paused) = (Arc::clone(&measures), Arc::clone(&paused));
            tasks.spawn(async move {
                loop {
                    let (batch, permit) = {
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
                    let mut run = pin!(run_batch(&*statement, &pool, &measures, &paused, batch));
                    let in_time = timeout(PERMIT_LIFETIME, run.as_mut()).await;
                    drop(permit);
                    if in_time.is_err() {
                        run.await;
                    }
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
        let caller = RowCaller {
            reply,
            _permit: permit,
            tries: None,
        };
        self.sender
            .try_send(QueuedRow { row, caller })
            .map_err(|_| overloaded())?;
        answer
            .await
            .map_err(|_| StoreError::Unavailable("the node is stopping".into()))?
    }
}

fn count_of(rows: usize) -> f64 {
    u32::try_from(rows).map_or(f64::INFINITY, f64::from)
}

async fn run_batch<S: BatchStatement>(
    statement: &S,
    pool: &ConnectionPool,
    measures: &BatchMetrics,
    paused: &PausedRows<S>,
    batch: Vec<QueuedRow<S>>,
) {
    let (rows, callers): (Vec<_>, Vec<_>) =
        batch.into_iter().map(|job| (job.row, job.caller)).unzip();
    let jobs = |rows: Vec<S::Row>| {
        let jobs = rows.into_iter().zip(callers);
        jobs.map(|(row, caller)| QueuedRow { row, caller })
    };
    let outcome = match attempt(statement, pool, &rows).await {
        Err(BatchFailure::Statement(error)) => match classify(&error) {
            // Even a single row is tried again: what it conflicted with is committed now, and
            // visible.
            ErrorClass::Data => {
                measures.retried.increment();
                let mut left = jobs(rows);
                while let Some(job) = left.next() {
                    let outcome = attempt(statement, pool, std::slice::from_ref(&job.row)).await;
                    // Without a connection the others would fail as well, each after waiting for
                    // one.
                    if let Err(failure @ BatchFailure::Store(_)) = outcome {
                        let left = std::iter::once(job).chain(left);
                        return answer(measures, paused, left, Err(failure));
                    }
                    answer(measures, paused, [job], outcome);
                }
                return;
            }
            ErrorClass::Conflict | ErrorClass::Lost => {
                measures.retried.increment();
                tracing::debug!(statement = S::NAME, %error, rows = rows.len(), "a batch is retried");
                attempt(statement, &pool.after(&error), &rows).await
            }
            ErrorClass::Other => Err(BatchFailure::Statement(error)),
        },
        outcome => outcome,
    };
    answer(measures, paused, jobs(rows), outcome);
}

enum BatchFailure {
    /// Logged by the pool, or below.
    Store(StoreError),
    Statement(sqlx::Error),
}

async fn attempt<S: BatchStatement>(
    statement: &S,
    pool: &ConnectionPool,
    rows: &[S::Row],
) -> Result<Vec<S::Fact>, BatchFailure> {
    let lease = pool.lease(S::tenant_scope(rows)).await;
    let mut lease = lease.map_err(BatchFailure::Store)?;
    let connection = lease.connection().map_err(BatchFailure::Statement)?;
    let facts = pool.within(statement.run(connection, rows)).await;
    let facts = lease.settle(facts).map_err(BatchFailure::Statement)?;
    if facts.len() == rows.len() {
        return Ok(facts);
    }
    let error = "a statement answered for another number of rows than it was given";
    tracing::error!(statement = S::NAME, "{error}");
    Err(BatchFailure::Store(StoreError::Fault(error.into())))
}

/// Hands each row its answer; a caller that has gone away does not want it.
fn answer<S: BatchStatement>(
    measures: &BatchMetrics,
    paused: &PausedRows<S>,
    jobs: impl IntoIterator<Item = QueuedRow<S>>,
    outcome: Result<Vec<S::Fact>, BatchFailure>,
) {
    let error = match outcome {
        Ok(facts) => {
            for (job, fact) in jobs.into_iter().zip(facts) {
                let left = if S::is_busy(&fact) {
                    measures.busy.increment();
                    paused.add_busy(job)
                } else {
                    Err(job)
                };
                if let Err(job) = left {
                    drop(job.caller.reply.send(Ok(fact)));
                }
            }
            return;
        }
        Err(BatchFailure::Store(error)) => error,
        Err(BatchFailure::Statement(error)) => {
            tracing::warn!(statement = S::NAME, %error, "a batch failed");
            error.into()
        }
    };
    measures.failed.increment();
    for job in jobs {
        drop(job.caller.reply.send(Err(error.clone())));
    }
}
