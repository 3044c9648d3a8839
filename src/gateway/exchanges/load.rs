//! How full inboxes are, approximately. Counting costs time in proportion to the inbox, so each
//! node caches its counts. It asks the store for an exact one only near a limit: that of the inbox,
//! or that of one enforcer's share of it.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use quick_cache::sync::Cache;
use tokio::time::Instant;

use crate::gateway::context::GatewayContext;
use crate::gateway::error::Result;
use crate::protocol::id::{ApproverId, EnforcerId, TenantId};
use crate::store::ExchangeStore;
use crate::store::exchanges::inbox::PendingItems;
use crate::store::exchanges::submit::InboxLimits;

/// How fast other nodes may fill an inbox, per second. A count is used only while they cannot come
/// near the limit.
const FILLED_BY: i64 = 400;
/// How near the limit an inbox is counted for every submission.
const MARGIN: i64 = 2_000;
/// Shortest and longest use of a count, in seconds.
const MIN_COUNT_SECONDS: i64 = 5;
const MAX_COUNT_SECONDS: i64 = 60;
/// Most inboxes cached.
const CAPACITY: usize = 100_000;

pub(in crate::gateway) struct InboxLoads {
    store: Arc<ExchangeStore>,
    limits: InboxLimits,
    cache: Cache<(TenantId, ApproverId), Arc<InboxLoad>>,
}

/// One inbox: the last count, and the number of items that this node has added since.
struct InboxLoad {
    counted: PendingItems,
    added: AtomicI64,
    until: Instant,
}

impl InboxLoads {
    pub fn new(context: &GatewayContext) -> Self {
        Self {
            store: Arc::clone(&context.store.exchanges),
            limits: InboxLimits::of(&context.config.limits),
            cache: Cache::new(CAPACITY),
        }
    }

    /// Items that an enforcer may have without being counted. Three nodes that add as many each do
    /// not exceed a share.
    fn few(&self) -> i64 {
        self.limits.share / 4
    }

    fn load(&self, counted: PendingItems) -> InboxLoad {
        let margin_in_seconds = (self.limits.pending - MARGIN - counted.count) / FILLED_BY;
        let seconds = margin_in_seconds.clamp(MIN_COUNT_SECONDS, MAX_COUNT_SECONDS);
        InboxLoad {
            counted,
            added: AtomicI64::new(0),
            until: Instant::now() + Duration::from_secs(seconds.unsigned_abs()),
        }
    }

    /// Whether no enforcer that had few items when they were counted can have used up its share
    /// through this node.
    fn is_usable(&self, load: &InboxLoad) -> bool {
        Instant::now() < load.until && load.added.load(Ordering::Relaxed) < self.few()
    }

    /// Adds an item. Whether the inbox, or the enforcer's share of it, may be near its limit.
    fn add(&self, load: &InboxLoad, enforcer: &EnforcerId) -> bool {
        let added = load.added.fetch_add(1, Ordering::Relaxed) + 1;
        load.counted.count + added > self.limits.pending - MARGIN
            || load.counted.busiest.contains(enforcer)
    }

    /// The approvers whose inboxes may be near a limit, so that a submission to them must be judged
    /// by an exact count.
    pub async fn must_count(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        approvers: &[ApproverId],
    ) -> Result<HashSet<ApproverId>> {
        if self.limits.pending <= MARGIN {
            return Ok(approvers.iter().cloned().collect());
        }
        let mut near = HashSet::new();
        let mut unknown = Vec::new();
        for approver in approvers {
            let known = self.cache.get(&(tenant.clone(), approver.clone()));
            match known.filter(|load| self.is_usable(load)) {
                Some(load) if self.add(&load, enforcer) => {
                    near.insert(approver.clone());
                }
                Some(_) => {}
                None => unknown.push(approver),
            }
        }
        if !unknown.is_empty() {
            let most = self.limits.pending;
            let counts = self.store.pending(tenant, &unknown, most, self.few());
            for (approver, counted) in unknown.iter().zip(counts.await?) {
                let load = Arc::new(self.load(counted));
                if self.add(&load, enforcer) {
                    near.insert((*approver).clone());
                }
                let key = (tenant.clone(), (*approver).clone());
                self.cache.insert(key, load);
            }
        }
        Ok(near)
    }
}
