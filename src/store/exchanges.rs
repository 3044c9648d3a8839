//! Exchanges: submission, decision, acknowledgement, reading. Inboxes, endings and listings are in files of their own.

use std::sync::Arc;

use tokio_util::task::TaskTracker;

use super::ack::{AckRow, Acked, TakeAcks};
use super::batch::Batcher;
use super::database::Database;
use super::decide::{Decide, DecisionOutcome, DecisionRow};
use super::error::{Result, StoreError};
use super::exchange::{Exchange, ReadExchanges, ReadFact, ReadRow};
use super::seconds;
use super::submit::{SubmissionOutcome, SubmissionRow, Submit};
use crate::config::Config;
use crate::protocol::id::{RequestId, TenantId};

pub struct ExchangeStore {
    pub(super) database: Arc<Database>,
    submissions: Batcher<Submit>,
    decisions: Batcher<Decide>,
    acks: Batcher<TakeAcks>,
    reads: Batcher<ReadExchanges>,
}

impl ExchangeStore {
    pub(super) fn new(database: &Arc<Database>, config: &Config, tasks: &TaskTracker) -> Self {
        let (clock, node) = (|| database.clock.clone(), || database.node.clone());
        let traced = config.telemetry.exports();
        let submit = Submit {
            clock: clock(),
            node: node(),
            instance: database.instance,
            max_pending: i64::from(config.limits.pending_per_approver),
            key_lifetime: seconds(config.idempotency.lifetime_seconds),
        };
        let decide = Decide {
            clock: clock(),
            node: node(),
            traced,
        };
        let take_acks = TakeAcks {
            clock: clock(),
            node: node(),
            traced,
        };
        Self {
            submissions: database.batch(submit, tasks),
            decisions: database.batch(decide, tasks),
            acks: database.batch(take_acks, tasks),
            reads: database.batch(ReadExchanges { clock: clock() }, tasks),
            database: Arc::clone(database),
        }
    }

    pub async fn submit(&self, row: SubmissionRow) -> Result<SubmissionOutcome> {
        self.submissions.run(row).await
    }

    pub async fn decide(&self, row: DecisionRow) -> Result<DecisionOutcome> {
        self.decisions.run(row).await
    }

    /// Writes an ack; `None` if there is no such message for this recipient.
    pub async fn ack(&self, row: AckRow) -> Result<Option<Acked>> {
        self.acks.run(row).await
    }

    pub async fn exchange(
        &self,
        tenant: &TenantId,
        request: &RequestId,
    ) -> Result<Option<Exchange>> {
        let row = ReadRow {
            tenant: tenant.clone(),
            request_id: request.clone(),
        };
        match self.reads.run(row).await? {
            ReadFact::Found(exchange) => Ok(Some(*exchange)),
            ReadFact::Missing => Ok(None),
            ReadFact::Busy => Err(StoreError::Unavailable(
                "the exchange is just being ended".into(),
            )),
        }
    }
}
