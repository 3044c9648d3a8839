//! Channels and what is sent over them, and the presence of enforcers.

use std::sync::Arc;

use tokio_util::task::TaskTracker;

use super::approver_messages::ReadBodies;
use super::batch::StatementBatcher;
use super::channel_lifecycle::{CloseChannels, OpenChannels};
use super::claim::ClaimMessages;
use super::database::Database;
use super::presence::TakeHellos;
use super::unacked::ListUnacked;
use crate::config;

pub struct ChannelStore {
    pub(super) database: Arc<Database>,
    pub(super) openings: StatementBatcher<OpenChannels>,
    pub(super) closings: StatementBatcher<CloseChannels>,
    pub(super) hellos: StatementBatcher<TakeHellos>,
    pub lists: StatementBatcher<ListUnacked>,
    pub bodies: StatementBatcher<ReadBodies>,
    pub claims: StatementBatcher<ClaimMessages>,
}

impl ChannelStore {
    pub(super) fn new(database: &Arc<Database>, push: &config::Push, tasks: &TaskTracker) -> Self {
        let (clock, instance) = (|| database.clock.clone(), database.instance);
        let as_seconds = |seconds| f64::from(u32::try_from(seconds).unwrap_or(u32::MAX));
        let claim = ClaimMessages {
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
}
