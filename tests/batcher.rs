//! How calls share a statement: what may be in one batch, and what becomes of the neighbours when
//! one row fails.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::store::database::batch::StatementBatcher;
use countersign::store::database::batch_gate::BatchGate;
use countersign::store::database::batch_statement::{BatchResult, BatchStatement};
use countersign::store::database::busy::RowLock;
use countersign::store::database::pool::ConnectionPool;
use countersign::store::database::tenant_scope::TenantScope;
use countersign::store::error::StoreError;
use countersign::telemetry::Metrics;
use futures_util::FutureExt as _;
use futures_util::future::{join, join_all};
use sqlx::{Executor as _, PgConnection};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::support::cluster::{config, metrics};
use crate::support::database::Database;
use crate::support::scrape::{read, whole};

/// A row of the work below: its conflict keys, its size, and what goes wrong when it is run.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    conflict_keys: Vec<String>,
    bytes: usize,
    weight: usize,
    sql: &'static str,
}

fn row(twin: &str) -> Row {
    Row {
        conflict_keys: vec![twin.to_owned()],
        bytes: 1,
        weight: 1,
        sql: "select 1",
    }
}

/// Work that notes its batches, and begins each only when it may.
struct Noted {
    batches: Arc<Mutex<Vec<Vec<Row>>>>,
    gate: Arc<Semaphore>,
}

impl BatchStatement for Noted {
    const NAME: &'static str = "noted";
    type Row = Row;
    type Fact = Row;

    fn tenant_scope(_: &[Row]) -> TenantScope<'_> {
        TenantScope::All
    }

    fn conflict_keys(row: &Row) -> Vec<String> {
        row.conflict_keys.clone()
    }

    fn bytes(row: &Row) -> usize {
        row.bytes
    }

    fn weight(row: &Row) -> usize {
        row.weight
    }

    async fn run(
        &self,
        connection: &mut PgConnection,
        rows: &[Row],
    ) -> Result<Vec<Row>, sqlx::Error> {
        self.batches.lock().unwrap().push(rows.to_vec());
        self.gate.acquire().await.expect("open").forget();
        for row in rows {
            connection.execute(row.sql).await?;
        }
        Ok(rows.to_vec())
    }
}

/// A batcher of one worker, held up by a first row while `rows` gather; then all are let go.
/// Returns the batches after the first row's, and what each row was told.
async fn gathered(rows: Vec<Row>) -> (Vec<Vec<Row>>, Vec<Result<Row, StoreError>>) {
    measured(rows, &metrics()).await
}

/// The same, measured.
async fn measured(
    rows: Vec<Row>,
    metrics: &Arc<Metrics>,
) -> (Vec<Vec<Row>>, Vec<Result<Row, StoreError>>) {
    let database = Database::create().await;
    let mut config = config(&database).database;
    config.acquire_timeout_ms = 5_000;
    let pool = ConnectionPool::new("tests", metrics, &config, 2).unwrap();
    let (batches, gate) = (Arc::default(), Arc::new(Semaphore::new(0)));
    let work = Noted {
        batches: Arc::clone(&batches),
        gate: Arc::clone(&gate),
    };
    let batcher = StatementBatcher::start(work, &pool, 1, Duration::ZERO, &TaskTracker::new());
    let first = batcher.run(row("the first"));
    let begun = async {
        crate::support::until(
            "the first batch begins",
            Duration::from_secs(5),
            async || batches.lock().unwrap().len() == 1,
        )
        .await;
        // A call queues its row when it is first polled, so the gate opens behind all of them.
        let open = async { gate.add_permits(10_000) };
        join(join_all(rows.into_iter().map(|row| batcher.run(row))), open)
            .await
            .0
    };
    let (first, answers) = join(first, begun).await;
    first.expect("the first row is well");
    let batches = batches.lock().unwrap()[1..].to_vec();
    (batches, answers)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_gathers_while_a_batch_is_under_way_is_the_next_batch_and_everyone_gets_their_own_answer()
 {
    let rows: Vec<Row> = (0..100).map(|n| row(&n.to_string())).collect();
    let (batches, answers) = gathered(rows.clone()).await;
    assert_eq!(batches, std::slice::from_ref(&rows));
    let answers: Vec<Row> = answers.into_iter().map(Result::unwrap).collect();
    assert_eq!(answers, rows);
}

#[tokio::test(flavor = "multi_thread")]
async fn twins_never_share_a_batch_and_keep_their_order() {
    let mut rows = Vec::new();
    for turn in 0..5 {
        for twin in ["a", "b", "c"] {
            let mut row = row(twin);
            row.bytes = turn;
            rows.push(row);
        }
    }
    // A row with two names is the twin of either.
    rows.push(Row {
        conflict_keys: vec!["a".to_owned(), "d".to_owned()],
        ..row("")
    });
    rows.push(row("d"));
    let (batches, answers) = gathered(rows.clone()).await;
    assert!(answers.iter().all(Result::is_ok));
    let mut turns = vec![Vec::new(); 3];
    for batch in &batches {
        let mut names: Vec<&String> = batch.iter().flat_map(|row| &row.conflict_keys).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all, "{batch:?}");
        for row in batch.iter().filter(|row| row.conflict_keys.len() == 1) {
            if let Some(index) = ["a", "b", "c"]
                .iter()
                .position(|key| row.conflict_keys[0] == *key)
            {
                turns[index].push(row.bytes);
            }
        }
    }
    assert_eq!(turns, vec![vec![0, 1, 2, 3, 4]; 3]);
    assert_eq!(
        batches.iter().map(Vec::len).sum::<usize>(),
        rows.len(),
        "each once"
    );
    assert_eq!(
        batches.len(),
        6,
        "as few batches as the conflict keys allow"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_ends_at_its_most_rows_and_at_its_most_bytes() {
    let (batches, _) = gathered((0..600).map(|n| row(&n.to_string())).collect()).await;
    let sizes: Vec<usize> = batches.iter().map(Vec::len).collect();
    assert_eq!(sizes, [256, 256, 88]);

    let large = |n: i32| Row {
        bytes: 3 << 20,
        ..row(&n.to_string())
    };
    let (batches, _) = gathered((0..7).map(large).collect()).await;
    let sizes: Vec<usize> = batches.iter().map(Vec::len).collect();
    assert_eq!(sizes, [3, 3, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_writes_many_counts_as_many() {
    let mut rows: Vec<Row> = (0..300).map(|n| row(&n.to_string())).collect();
    for heavy in [10, 20] {
        rows[heavy].weight = 200;
    }
    let (batches, answers) = gathered(rows).await;
    assert!(answers.iter().all(Result::is_ok));
    let weights: Vec<usize> = batches
        .iter()
        .map(|batch| batch.iter().map(|row| row.weight).sum())
        .collect();
    assert_eq!(batches[0].len(), 21, "both are in the first");
    assert_eq!(weights, [419, 256, 23]);
}

/// Work whose rows are locked by their names, and which notes its batches.
#[derive(Clone, Default)]
struct Locking {
    locked: Arc<Mutex<HashSet<&'static str>>>,
    batches: Arc<Mutex<Vec<Vec<&'static str>>>>,
}

impl BatchStatement for Locking {
    const NAME: &'static str = "locking";
    type Row = &'static str;
    type Fact = RowLock<&'static str>;

    fn tenant_scope<'r>(_: &'r [&'static str]) -> TenantScope<'r> {
        TenantScope::All
    }

    fn conflict_keys(row: &&'static str) -> Vec<String> {
        vec![(*row).to_owned()]
    }

    fn is_busy(fact: &Self::Fact) -> bool {
        fact.is_busy()
    }

    async fn run(&self, _: &mut PgConnection, rows: &[&'static str]) -> BatchResult<Self> {
        self.batches.lock().unwrap().push(rows.to_vec());
        let locked = self.locked.lock().unwrap();
        let facts = rows.iter().map(|row| {
            if locked.contains(row) {
                RowLock::Busy
            } else {
                RowLock::Locked(*row)
            }
        });
        Ok(facts.collect())
    }
}

impl Locking {
    /// Starts it, with this much patience.
    async fn start(&self, patience: Duration) -> StatementBatcher<Self> {
        let database = Database::create().await;
        let mut config = config(&database).database;
        config.acquire_timeout_ms = 5_000;
        let pool = ConnectionPool::new("tests", &metrics(), &config, 2).unwrap();
        StatementBatcher::start(self.clone(), &pool, 2, patience, &TaskTracker::new())
    }

    /// How often a row was tried.
    fn tries(&self, row: &str) -> usize {
        let batches = self.batches.lock().unwrap();
        batches.iter().flatten().filter(|one| **one == row).count()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_row_is_tried_again_until_it_is_free_and_holds_up_no_other() {
    let work = Locking::default();
    work.locked.lock().unwrap().insert("locked");
    let batcher = work.start(Duration::from_secs(60)).await;
    let others = async {
        crate::support::until("it is busy", Duration::from_secs(5), async || {
            work.tries("locked") > 0
        })
        .await;
        for _ in 0..100 {
            batcher.run("free").await.unwrap().locked().unwrap();
        }
        work.locked.lock().unwrap().clear();
    };
    let (row, ()) = join(batcher.run("locked"), others).await;
    assert_eq!(row.unwrap().locked().unwrap(), "locked");
    assert!(work.tries("locked") > 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_stays_busy_is_given_up_and_many_cost_as_little_as_one() {
    let work = Locking::default();
    work.locked.lock().unwrap().insert("locked");
    let batcher = work.start(Duration::from_millis(400)).await;
    let alone = batcher.run("locked").await.unwrap();
    assert!(alone.is_busy());
    assert!(matches!(alone.locked(), Err(StoreError::Unavailable(_))));
    let tries = work.tries("locked");
    let many = join_all((0..1_000).map(|_| batcher.run("locked"))).await;
    assert!(many.into_iter().all(|fact| fact.unwrap().is_busy()));
    // Each at its end once more, to learn what is to be told.
    let tries = (tries, work.tries("locked") - tries);
    assert!(tries.1 <= 1_000 + 10 * tries.0, "{tries:?}");
}

/// How many batches were counted as tried again, and as given up.
fn trouble(metrics: &Metrics) -> (u64, u64) {
    let read = read(metrics);
    let count = |outcome| {
        let labels = [("statement", "noted"), ("outcome", outcome)];
        whole(read.value("countersign_batch_trouble_total", &labels))
    };
    (count("retried"), count("failed"))
}

/// Ten rows, the seventh of which fails like this.
fn with_one_that(sql: &'static str) -> Vec<Row> {
    let mut rows: Vec<Row> = (0..10).map(|n| row(&n.to_string())).collect();
    rows[6].sql = sql;
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_with_a_data_error_fails_alone() {
    let metrics = metrics();
    let (batches, answers) = measured(with_one_that("select 1 / 0"), &metrics).await;
    assert_eq!(trouble(&metrics), (1, 1), "the batch, then the one row");
    for (n, answer) in answers.iter().enumerate() {
        assert_eq!(answer.is_err(), n == 6, "{n}: {answer:?}");
    }
    assert!(matches!(answers[6], Err(StoreError::Fault(_))));
    let sizes: Vec<usize> = batches.iter().map(Vec::len).collect();
    assert_eq!(sizes, [10, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], "then one by one");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_met_another_transaction_is_tried_once_more_and_whole() {
    for sql in [
        "do $$ begin raise exception 'a deadlock' using errcode = '40P01'; end $$",
        "do $$ begin raise exception 'a conflict' using errcode = '40001'; end $$",
        "select pg_terminate_backend(pg_backend_pid())",
    ] {
        let metrics = metrics();
        let (batches, answers) = measured(with_one_that(sql), &metrics).await;
        assert_eq!(trouble(&metrics), (1, 1), "{sql}");
        let sizes: Vec<usize> = batches.iter().map(Vec::len).collect();
        assert_eq!(sizes, [10, 10], "{sql}");
        assert!(
            answers
                .iter()
                .all(|answer| matches!(answer, Err(StoreError::Unavailable(_)))),
            "{sql}: {answers:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_took_too_long_is_not_tried_again() {
    let slow = "set local statement_timeout = '50ms'; select pg_sleep(5)";
    let metrics = metrics();
    let (batches, answers) = measured(with_one_that(slow), &metrics).await;
    assert_eq!(trouble(&metrics), (0, 1));
    assert_eq!(batches.len(), 1, "trying again would multiply the overload");
    assert!(
        answers
            .iter()
            .all(|answer| matches!(answer, Err(StoreError::Unavailable(_)))),
        "{answers:?}"
    );
}

#[tokio::test]
async fn a_lone_node_has_two_turns_and_one_of_several_has_one() {
    let gate = BatchGate::default();
    let enter = || gate.enter().now_or_never().flatten();

    let first = enter().expect("the gate is free");
    assert!(enter().is_none(), "there may be other nodes");
    drop(first);

    gate.set_alone(true);
    let (first, second) = (enter().expect("the first"), enter().expect("the second"));
    assert!(enter().is_none(), "both are taken");

    gate.set_alone(false);
    drop(first);
    assert!(enter().is_none(), "beside other nodes one is enough");
    drop(second);
    assert!(enter().is_some(), "the gate is free again");
}
