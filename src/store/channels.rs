//! Channels and what is sent over them, and the presence of enforcers.

use std::sync::Arc;

use tokio_util::task::TaskTracker;

use super::approver_messages::{BodiesRow, ForApprover, ReadBodies};
use super::batch::Batcher;
use super::channel_lifecycle::{CloseChannels, OpenChannels};
use super::claim::{Claim, ClaimRow, Claimed};
use super::database::Database;
use super::error::Result;
use super::presence::TakeHellos;
use super::unacked::{ListRow, ListUnacked, Listed};
use crate::config;

pub struct ChannelStore {
    pub(super) database: Arc<Database>,
    pub(super) openings: Batcher<OpenChannels>,
    pub(super) closings: Batcher<CloseChannels>,
    pub(super) hellos: Batcher<TakeHellos>,
    lists: Batcher<ListUnacked>,
    bodies: Batcher<ReadBodies>,
    claims: Batcher<Claim>,
}

impl ChannelStore {
    pub(super) fn new(database: &Arc<Database>, push: &config::Push, tasks: &TaskTracker) -> Self {
        let (clock, instance) = (|| database.clock.clone(), database.instance);
        let as_seconds = |seconds| f64::from(u32::try_from(seconds).unwrap_or(u32::MAX));
        let claim = Claim {
            clock: clock(),
            reoffer: (
                as_seconds(push.reoffer_seconds),
                as_seconds(push.reoffer_max_seconds),
            ),
        };
        Self {
            openings: database.batch(OpenChannels { instance }, tasks),
            closings: database.batch(CloseChannels { clock: clock() }, tasks),
            hellos: database.batch(TakeHellos { clock: clock() }, tasks),
            lists: database.batch(ListUnacked { clock: clock() }, tasks),
            bodies: database.batch(ReadBodies { clock: clock() }, tasks),
            claims: database.batch(claim, tasks),
            database: Arc::clone(database),
        }
    }

    /// Lists what an approver has not acknowledged.
    pub async fn list_unacked(&self, row: ListRow) -> Result<Vec<Listed>> {
        self.lists.run(row).await
    }

    /// Reads those of the messages for an approver that are still to be sent.
    pub async fn bodies(&self, row: BodiesRow) -> Result<Vec<ForApprover>> {
        self.bodies.run(row).await
    }

    /// Claims an enforcer's messages for one of its channels.
    pub async fn claim(&self, row: ClaimRow) -> Result<Vec<Claimed>> {
        self.claims.run(row).await
    }
}
