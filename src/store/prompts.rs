//! Prompts: queued, acknowledged, expired.

use std::sync::Arc;

use tokio_util::task::TaskTracker;

use super::batch::Batcher;
use super::database::Database;
use super::error::Result;
use super::prompt::{PromptRow, TakePrompts};
use super::prompt_status::{PromptAckRow, TakePromptAcks};
use super::seconds;
use crate::config;
use crate::protocol::id::EnforcerId;
use crate::protocol::prompt::{AckFact, PromptFact};

pub struct PromptStore {
    pub(super) database: Arc<Database>,
    prompts: Batcher<TakePrompts>,
    acks: Batcher<TakePromptAcks>,
}

impl PromptStore {
    pub(super) fn new(
        database: &Arc<Database>,
        idempotency: &config::Idempotency,
        tasks: &TaskTracker,
    ) -> Self {
        let clock = || database.clock.clone();
        let take_prompts = TakePrompts {
            clock: clock(),
            key_lifetime: seconds(idempotency.lifetime_seconds),
        };
        Self {
            prompts: database.batch(take_prompts, tasks),
            acks: database.batch(TakePromptAcks { clock: clock() }, tasks),
            database: Arc::clone(database),
        }
    }

    pub async fn take_prompt(&self, row: PromptRow) -> Result<PromptFact> {
        self.prompts.run(row).await
    }

    pub async fn take_prompt_ack(
        &self,
        row: PromptAckRow,
    ) -> Result<Option<(EnforcerId, AckFact)>> {
        self.acks.run(row).await
    }
}
