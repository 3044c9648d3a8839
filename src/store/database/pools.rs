//! The parts that the whole store shares: the two pools, the node's clock and how far the
//! database's is from it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use time::OffsetDateTime;
use tokio::time::sleep;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::clock::Clock;
use crate::config;
use crate::protocol::id::{NodeId, OperationId};
use crate::protocol::timestamp::Timestamp;
use crate::store::audit::AuditActor;
use crate::store::database::batch::StatementBatcher;
use crate::store::database::batch_statement::BatchStatement;
use crate::store::database::busy::{LockTries, RowLock};
use crate::store::database::pool::ConnectionPool;
use crate::store::error::Result;
use crate::telemetry::Metrics;

/// Connections that run one kind of batch at once: while one commits, the other's fills.
const WORKERS: usize = 2;

pub struct Database {
    pub(in crate::store) pool: ConnectionPool,
    /// For health checks, sweeps and administration, so that a flood of requests cannot starve
    /// them.
    pub(in crate::store) background: ConnectionPool,
    pub(in crate::store) clock: Clock,
    pub(in crate::store) node: NodeId,
    /// How long a call waits for a row that another transaction has locked.
    pub(in crate::store) lock_timeout: Duration,
    /// This run of the process: a restarted node is a new instance.
    pub(in crate::store) instance: Uuid,
    /// How many microseconds the database's clock was ahead of the node's when they were last
    /// compared.
    ahead: AtomicI64,
}

impl Database {
    pub(in crate::store) fn open(
        config: &config::Database,
        node: &NodeId,
        clock: &Clock,
        metrics: &Arc<Metrics>,
    ) -> Result<Self> {
        let open = |name, size| ConnectionPool::new(name, metrics, config, size);
        Ok(Self {
            pool: open("requests", config.pool_size)?,
            background: open("quiet", config.background_pool_size)?,
            clock: clock.clone(),
            node: node.clone(),
            // To PostgreSQL, 0 is no limit but that of the statement.
            lock_timeout: Duration::from_millis(match config.lock_timeout_ms {
                0 => config.statement_timeout_ms,
                limit => limit,
            }),
            instance: clock.operation_id().0,
            ahead: AtomicI64::default(),
        })
    }

    /// The parameter of the SQL function `audit_event` that says who acts, with an event id of its
    /// own.
    pub(in crate::store) fn audit_origin(&self, actor: &AuditActor) -> String {
        self.audit_origin_of(actor, self.clock.operation_id())
    }

    /// The same for the event of this operation.
    pub(in crate::store) fn audit_origin_of(
        &self,
        actor: &AuditActor,
        event: OperationId,
    ) -> String {
        let origin = serde_json::json!({
            "event_id": event.0.to_string(),
            "actor": actor.name,
            "principal": actor.source.principal,
            "address": actor.source.address(),
            "node": self.node.as_str(),
        });
        origin.to_string()
    }

    /// Starts the batches of a statement.
    pub(in crate::store) fn batch<S: BatchStatement>(
        &self,
        statement: S,
        tasks: &TaskTracker,
    ) -> StatementBatcher<S> {
        StatementBatcher::start(statement, &self.pool, WORKERS, self.lock_timeout, tasks)
    }

    /// Whether a statement about one row is to run again, because the row was busy; after a pause.
    pub(in crate::store) async fn is_tried_again<F>(
        &self,
        statement: &'static str,
        found: &RowLock<F>,
        tries: &mut LockTries,
    ) -> bool {
        if !found.is_busy() {
            return false;
        }
        self.metrics().busy_rows.of([statement]).increment();
        let Some(pause) = tries.next_pause() else {
            return false;
        };
        sleep(pause).await;
        true
    }

    /// The database's time, estimated from the node's clock.
    pub fn database_now(&self) -> OffsetDateTime {
        let ahead = time::Duration::microseconds(self.ahead.load(Ordering::Relaxed));
        self.clock.now().inner().saturating_add(ahead)
    }

    /// Compares a time read from the database with the node's times before and after reading it.
    pub(in crate::store) fn compare_clocks(
        &self,
        before: Timestamp,
        database: OffsetDateTime,
        after: Timestamp,
    ) {
        let middle = before.inner() + (after.inner() - before.inner()) / 2;
        let ahead: time::Duration = database - middle;
        let micros = i64::try_from(ahead.whole_microseconds()).unwrap_or(i64::MAX);
        self.ahead.store(micros, Ordering::Relaxed);
        self.metrics().clock_offset.set(ahead.as_seconds_f64());
    }

    pub fn node(&self) -> &NodeId {
        &self.node
    }

    pub fn metrics(&self) -> &Arc<Metrics> {
        self.pool.metrics()
    }

    /// Connections for requests: how many are open, and how many of them idle.
    pub fn pool_usage(&self) -> (usize, usize) {
        self.pool.usage()
    }
}
