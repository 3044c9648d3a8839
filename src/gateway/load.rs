//! How full inboxes are, approximately. Counting costs time in proportion to the inbox, so each node caches its counts and
//! asks the store for an exact one only near the limit.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use quick_cache::sync::Cache;
use tokio::time::Instant;

use super::Exchanges;
use super::error::Result;
use crate::protocol::id::{ApproverId, TenantId};

/// How fast other nodes may fill an inbox, per second. A count is used only while they cannot come near the limit.
const FILLED_BY: i64 = 400;
/// How near the limit an inbox is counted for every submission.
const MARGIN: i64 = 2_000;
/// Shortest and longest use of a count, in seconds.
const LIFETIME: (i64, i64) = (5, 60);
/// Most inboxes cached.
const CAPACITY: usize = 100_000;

pub(super) struct Loads(Cache<(TenantId, ApproverId), Arc<Load>>);

impl Default for Loads {
    fn default() -> Self {
        Self(Cache::new(CAPACITY))
    }
}

/// One inbox: the last count plus what this node has added since.
struct Load {
    pending: AtomicI64,
    until: Instant,
}

impl Load {
    fn counted(pending: i64, most: i64) -> Self {
        let margin_in_seconds = (most - MARGIN - pending) / FILLED_BY;
        let seconds = margin_in_seconds.clamp(LIFETIME.0, LIFETIME.1);
        Self {
            pending: AtomicI64::new(pending),
            until: Instant::now() + Duration::from_secs(seconds.unsigned_abs()),
        }
    }
}

impl Exchanges {
    /// Whose inboxes may be near their limit, so that a submission to them must be judged by an exact count.
    pub(super) async fn must_count(
        &self,
        tenant: &TenantId,
        approvers: &[ApproverId],
    ) -> Result<HashSet<ApproverId>> {
        let most = i64::from(self.context.config.limits.pending_per_approver);
        if most <= MARGIN {
            return Ok(approvers.iter().cloned().collect());
        }
        let mut near = HashSet::new();
        let mut unknown = Vec::new();
        for approver in approvers {
            let known = self.loads.0.get(&(tenant.clone(), approver.clone()));
            match known.filter(|load| Instant::now() < load.until) {
                Some(load) if load.pending.fetch_add(1, Ordering::Relaxed) + 1 > most - MARGIN => {
                    near.insert(approver.clone());
                }
                Some(_) => {}
                None => unknown.push(approver),
            }
        }
        if !unknown.is_empty() {
            let counts = self.store.pending(tenant, &unknown, most).await?;
            for (approver, pending) in unknown.into_iter().zip(counts) {
                let load = Arc::new(Load::counted(pending, most));
                self.loads
                    .0
                    .insert((tenant.clone(), approver.clone()), load);
                if pending > most - MARGIN {
                    near.insert(approver.clone());
                }
            }
        }
        Ok(near)
    }
}
