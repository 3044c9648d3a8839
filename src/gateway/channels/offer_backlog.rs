//! Decisions that a channel has sent and nobody else was offered, until their offers are written. Most are acknowledged before,
//! and are then never written: a node that dies meanwhile only has them sent once more.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use crate::protocol::id::{EnforcerId, MessageId, TenantId};
use crate::store::ChannelStore;
use crate::store::channels::write_offers::OfferRow;
use crate::store::error::Result;

/// The time that a client has to acknowledge before its offer is written.
const OFFER_DELAY: Duration = Duration::from_secs(1);

/// So many are written at once.
const MANY: usize = 256;

#[derive(Default)]
pub(in crate::gateway) struct OfferBacklog {
    messages: VecDeque<(MessageId, Instant)>,
    /// The last attempt to write them that failed.
    failed_at: Option<Instant>,
}

impl OfferBacklog {
    /// Adds one that is sent now.
    pub fn add(&mut self, message: MessageId) {
        self.messages.push_back((message, Instant::now()));
    }

    /// Whether they are to be written though there is something else to do.
    pub fn are_many(&self) -> bool {
        self.messages.len() >= MANY
    }

    pub fn contain(&self, message: MessageId) -> bool {
        self.messages.iter().any(|(sent, ..)| *sent == message)
    }

    fn due_at(&self) -> Option<Instant> {
        let (_, oldest) = self.messages.front()?;
        Some(self.failed_at.unwrap_or(*oldest) + OFFER_DELAY)
    }

    /// Waits until offers are to be written.
    pub async fn due(&self) {
        match self.due_at() {
            Some(at) => sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    /// Writes the offers if it is time; later, if that fails.
    pub async fn write_due(&mut self, store: &ChannelStore, owner: (&TenantId, &EnforcerId, Uuid)) {
        if self.due_at().is_some_and(|at| at <= Instant::now()) {
            // The batcher has logged why.
            drop(self.write(store, owner).await);
        }
    }

    pub async fn write(
        &mut self,
        store: &ChannelStore,
        (tenant, enforcer, channel): (&TenantId, &EnforcerId, Uuid),
    ) -> Result<()> {
        while !self.messages.is_empty() {
            let count = self.messages.len().min(MANY);
            let first = self.messages.iter().take(count);
            let rows = first.map(|(message, at)| OfferRow {
                tenant: tenant.clone(),
                enforcer: enforcer.clone(),
                channel,
                message: *message,
                age: at.elapsed(),
            });
            let written = join_all(rows.map(|row| store.offers.run(row))).await;
            self.failed_at = Some(Instant::now());
            written.into_iter().collect::<Result<Vec<()>>>()?;
            self.messages.drain(..count);
            self.failed_at = None;
        }
        Ok(())
    }
}
