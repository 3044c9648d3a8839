//! How many notifications are under way, in all and per tenant.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::gateway::admission::{
    CountLimit, CounterPermit, KeyedCounter, KeyedSemaphore, TurnPermit, turn_of_each,
};
use crate::protocol::id::TenantId;

/// Turns of a node, and of one tenant.
const MAX_TURNS: usize = 256;
const MAX_TURNS_PER_TENANT: usize = 32;
/// Claimed and not yet done: in all, of one tenant, and of one tenant's targets that failed the
/// last time.
const MAX_CLAIMED: usize = 2_048;
const MAX_CLAIMED_PER_TENANT: usize = 256;
const MAX_FAILING_PER_TENANT: usize = 32;
/// A claim is counted in any case: the statement that made it left out tenants that were full.
const COUNTED: CountLimit = CountLimit {
    per_key: usize::MAX,
    total: usize::MAX,
};

pub struct DeliveryLoad {
    claimed: Arc<KeyedCounter<TenantId>>,
    failing: Arc<KeyedCounter<TenantId>>,
    turns: Arc<Semaphore>,
    tenant_turns: KeyedSemaphore<TenantId>,
}

/// The targets that a claim may take.
pub struct ClaimRoom {
    pub targets: usize,
    /// Tenants that have enough under way, and those whose failing targets have.
    pub busy: Vec<TenantId>,
    pub failing: Vec<TenantId>,
}

/// A claim that is under way, until it is dropped.
pub struct DeliveryPermit {
    _claimed: Option<CounterPermit<TenantId>>,
    _failing: Option<CounterPermit<TenantId>>,
    tenant_turns: Arc<Semaphore>,
    turns: Arc<Semaphore>,
}

impl Default for DeliveryLoad {
    fn default() -> Self {
        Self {
            claimed: Arc::default(),
            failing: Arc::default(),
            turns: Arc::new(Semaphore::new(MAX_TURNS)),
            tenant_turns: KeyedSemaphore::new(MAX_TURNS_PER_TENANT),
        }
    }
}

impl DeliveryLoad {
    pub fn room(&self) -> ClaimRoom {
        ClaimRoom {
            targets: MAX_CLAIMED.saturating_sub(self.claimed.total()),
            busy: self.claimed.with_at_least(MAX_CLAIMED_PER_TENANT),
            failing: self.failing.with_at_least(MAX_FAILING_PER_TENANT),
        }
    }

    /// Counts a claim until it is done. `failing` says whether its target failed the last time.
    pub fn enter(&self, tenant: &TenantId, failing: bool) -> DeliveryPermit {
        let counted = |counter: &Arc<KeyedCounter<_>>| counter.enter(tenant.clone(), 1, COUNTED);
        DeliveryPermit {
            _claimed: counted(&self.claimed),
            _failing: failing.then(|| counted(&self.failing)).flatten(),
            tenant_turns: self.tenant_turns.of(tenant),
            turns: Arc::clone(&self.turns),
        }
    }
}

impl DeliveryPermit {
    /// Waits for a turn of the tenant, then for one of the node. `None` at the deadline.
    pub async fn turn(&self, deadline: Instant) -> Option<TurnPermit> {
        let turns = [&self.tenant_turns, &self.turns];
        turn_of_each(turns.map(Arc::clone), deadline).await
    }
}
