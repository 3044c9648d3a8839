//! How full inboxes are, approximately. Counting costs time in proportion to the inbox, so each node caches its counts and
//! asks the store for an exact one only near a limit: that of the inbox, or that of one enforcer's share of it.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use quick_cache::sync::Cache;
use tokio::time::Instant;

use super::ExchangeService;
use super::error::Result;
use crate::protocol::id::{ApproverId, EnforcerId, TenantId};
use crate::store::inbox::PendingItems;
use crate::store::submit::InboxLimits;

/// How fast other nodes may fill an inbox, per second. A count is used only while they cannot come near the limit.
const FILLED_BY: i64 = 400;
/// How near the limit an inbox is counted for every submission.
const MARGIN: i64 = 2_000;
/// Shortest and longest use of a count, in seconds.
const LIFETIME: (i64, i64) = (5, 60);
/// Most inboxes cached.
const CAPACITY: usize = 100_000;

pub(super) struct InboxLoads(Cache<(TenantId, ApproverId), Arc<InboxLoad>>);

impl Default for InboxLoads {
    fn default() -> Self {
        Self(Cache::new(CAPACITY))
    }
}

/// One inbox: the last count, and what this node has added since.
struct InboxLoad {
    counted: PendingItems,
    added: AtomicI64,
    until: Instant,
}

impl InboxLoad {
    fn new(counted: PendingItems, limits: InboxLimits) -> Self {
        let margin_in_seconds = (limits.pending - MARGIN - counted.count) / FILLED_BY;
        let seconds = margin_in_seconds.clamp(LIFETIME.0, LIFETIME.1);
        Self {
            counted,
            added: AtomicI64::new(0),
            until: Instant::now() + Duration::from_secs(seconds.unsigned_abs()),
        }
    }

    /// Whether no enforcer that had few items when they were counted can have used up its share through this node.
    fn is_usable(&self, limits: InboxLimits) -> bool {
        let added = self.added.load(Ordering::Relaxed);
        Instant::now() < self.until && added < few(limits)
    }

    /// Adds an item. Whether the inbox, or the enforcer's share of it, may be near its limit.
    fn add(&self, enforcer: &EnforcerId, limits: InboxLimits) -> bool {
        let added = self.added.fetch_add(1, Ordering::Relaxed) + 1;
        self.counted.count + added > limits.pending - MARGIN
            || self.counted.busiest.contains(enforcer)
    }
}

/// What an enforcer may have without being counted: so little that three nodes, adding as much each, do not exceed a share.
fn few(limits: InboxLimits) -> i64 {
    limits.share / 4
}

impl ExchangeService {
    /// In whose inboxes the limits may be near, so that a submission to them must be judged by an exact count.
    pub(super) async fn must_count(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        approvers: &[ApproverId],
    ) -> Result<HashSet<ApproverId>> {
        let limits = InboxLimits::of(&self.context.config.limits);
        if limits.pending <= MARGIN {
            return Ok(approvers.iter().cloned().collect());
        }
        let mut near = HashSet::new();
        let mut unknown = Vec::new();
        for approver in approvers {
            let known = self.loads.0.get(&(tenant.clone(), approver.clone()));
            match known.filter(|load| load.is_usable(limits)) {
                Some(load) if load.add(enforcer, limits) => {
                    near.insert(approver.clone());
                }
                Some(_) => {}
                None => unknown.push(approver),
            }
        }
        if !unknown.is_empty() {
            let store = &self.store;
            let counts = store.pending(tenant, &unknown, limits.pending, few(limits));
            let counts = counts.await?;
            for (approver, counted) in unknown.into_iter().zip(counts) {
                let load = Arc::new(InboxLoad::new(counted, limits));
                if load.add(enforcer, limits) {
                    near.insert(approver.clone());
                }
                self.loads
                    .0
                    .insert((tenant.clone(), approver.clone()), load);
            }
        }
        Ok(near)
    }
}
