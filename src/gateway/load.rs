//! How full inboxes are, roughly. Counting costs as much as there is to count, so a node remembers, counts again now and
//! then, and has the store judge only where an inbox is near its limit.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Gateway;
use super::error::Error;
use crate::protocol::id::{ApproverId, TenantId};

/// How fast other nodes may fill an inbox, a second: a count is believed for as long as they cannot come near the limit.
const FILLED_BY: i64 = 400;
/// How near the limit an inbox is counted for every submission.
const MARGIN: i64 = 2_000;
/// How long a count is believed at least, and at most.
const BELIEVED_FOR: (i64, i64) = (5, 60);
/// Most inboxes remembered; past this the memory starts over.
const MAX_REMEMBERED: usize = 100_000;

#[derive(Default)]
pub(super) struct Loads {
    /// Held for a few instructions, never across an await.
    known: Mutex<HashMap<(TenantId, ApproverId), Load>>,
}

/// One inbox: what was counted, what this node added since, and how long that is believed.
struct Load {
    pending: i64,
    until: Instant,
}

impl Load {
    fn counted(pending: i64, most: i64) -> Self {
        let room = (most - MARGIN - pending) / FILLED_BY;
        let seconds = room.clamp(BELIEVED_FOR.0, BELIEVED_FOR.1);
        Self {
            pending,
            until: Instant::now() + Duration::from_secs(seconds.unsigned_abs()),
        }
    }
}

impl Gateway {
    /// Whether an inbox may be near its limit, so that a submission to it must be judged by an exact count.
    pub(super) async fn must_count(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
    ) -> Result<bool, Error> {
        let most = i64::from(self.config.limits.pending_per_approver);
        let key = (tenant.clone(), approver.clone());
        if most <= MARGIN {
            return Ok(true);
        }
        let known = {
            let mut known = self
                .loads
                .known
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            known
                .get_mut(&key)
                .filter(|load| Instant::now() < load.until)
                .map(|load| {
                    load.pending += 1;
                    load.pending
                })
        };
        let pending = if let Some(pending) = known {
            pending
        } else {
            let pending = self.store.pending(tenant, approver, most).await?;
            let mut known = self
                .loads
                .known
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if known.len() >= MAX_REMEMBERED {
                known.clear();
            }
            known.insert(key, Load::counted(pending, most));
            pending
        };
        Ok(pending > most - MARGIN)
    }
}
