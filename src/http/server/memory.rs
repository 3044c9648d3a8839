//! Limits the memory for bodies, messages and answers in flight and for pages of channels. It is
//! charged to a tenant and an identity. The more is in use, the less each of them may have.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::metered::ConnectionMeter;
use crate::config;
use crate::gateway::identity::caller::CallerIdentity;
use crate::telemetry::Metrics;

/// Bytes in flight on a connection without a permit: about as many as its buffers take.
pub const FREE_BYTES: usize = 8 << 10;
/// Acquired at a time for what arrives in pieces.
const STEP: usize = 16 << 10;
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(2);

/// Whom memory is charged to. Hashes with a random key, so that charging copies no names, and
/// nobody can choose a name that collides with another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryAccount {
    tenant: u64,
    identity: u64,
}

pub struct MemoryBudget {
    total: usize,
    /// A tenant or an identity may always have this much, if the total allows: the largest answer,
    /// or nobody would get it.
    least: usize,
    hashes: RandomState,
    /// Held for a few instructions, never across an await.
    usage: Mutex<MemoryUsage>,
    released: Notify,
    metrics: Arc<Metrics>,
}

/// The party that has no room for more, as the metric names it.
type FullParty = &'static str;

#[derive(Default)]
struct MemoryUsage {
    all: usize,
    tenants: HashMap<u64, usize>,
    identities: HashMap<u64, usize>,
}

impl MemoryBudget {
    pub fn new(limits: &config::Limits, metrics: &Arc<Metrics>) -> Self {
        Self {
            total: limits.body_memory_bytes,
            least: limits.largest_answer(),
            hashes: RandomState::new(),
            usage: Mutex::default(),
            released: Notify::new(),
            metrics: Arc::clone(metrics),
        }
    }

    fn usage(&self) -> MutexGuard<'_, MemoryUsage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn account(&self, origin: &CallerIdentity) -> MemoryAccount {
        MemoryAccount {
            tenant: self.hashes.hash_one(&origin.tenant),
            identity: self.hashes.hash_one((&origin.tenant, &origin.principal)),
        }
    }

    pub fn used(&self) -> usize {
        self.usage().all
    }

    /// The reserve for an answer of at most so many bytes while it is put together: rows and text.
    pub fn to_build(&self, bytes: usize) -> usize {
        bytes.saturating_mul(2).min(self.least)
    }

    /// Counts what is refused.
    fn allowed(&self, checked: Result<(), FullParty>) -> bool {
        if let Err(full) = checked {
            let refused = &self.metrics.memory_refused;
            refused.of([full]).increment();
        }
        checked.is_ok()
    }

    /// A tenant may have as much as it leaves free, an identity half of that: half and a third of
    /// everything while no other is there, and less beside others. So something is always left for
    /// those who come next.
    fn check(
        &self,
        usage: &MemoryUsage,
        account: MemoryAccount,
        more: usize,
    ) -> Result<(), FullParty> {
        let of = |held: &HashMap<u64, usize>, key| held.get(&key).copied().unwrap_or_default();
        let free = self.total.checked_sub(usage.all.saturating_add(more));
        let free = free.ok_or("node")?;
        if of(&usage.tenants, account.tenant) + more > free.max(self.least) {
            return Err("tenant");
        }
        if of(&usage.identities, account.identity) + more > (free / 2).max(self.least) {
            return Err("identity");
        }
        Ok(())
    }

    fn release(&self, account: MemoryAccount, bytes: usize) {
        let mut usage = self.usage();
        usage.all = usage.all.saturating_sub(bytes);
        lower(&mut usage.tenants, &account.tenant, bytes);
        lower(&mut usage.identities, &account.identity, bytes);
        drop(usage);
        self.released.notify_waiters();
    }
}

/// Lowers a count, and removes it at zero.
pub fn lower<K: Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K, by: usize) {
    if let Some(count) = counts.get_mut(key) {
        *count = count.saturating_sub(by);
        if *count == 0 {
            counts.remove(key);
        }
    }
}

impl MemoryUsage {
    fn add(&mut self, account: MemoryAccount, bytes: usize) {
        self.all += bytes;
        *self.tenants.entry(account.tenant).or_default() += bytes;
        *self.identities.entry(account.identity).or_default() += bytes;
    }
}

/// The memory of one body, message, answer or page, released when dropped.
pub struct MemoryPermit {
    budget: Arc<MemoryBudget>,
    account: MemoryAccount,
    bytes: usize,
}

impl MemoryPermit {
    /// A permit for nothing yet.
    pub fn new(budget: &Arc<MemoryBudget>, account: MemoryAccount) -> Self {
        Self {
            budget: Arc::clone(budget),
            account,
            bytes: 0,
        }
    }

    /// Whether what is held is enough for so many bytes.
    pub fn covers(&self, bytes: usize) -> bool {
        bytes <= self.bytes
    }

    fn try_add(&mut self, more: usize) -> Result<(), FullParty> {
        let mut usage = self.budget.usage();
        self.budget.check(&usage, self.account, more)?;
        usage.add(self.account, more);
        self.bytes += more;
        Ok(())
    }

    /// Grows to so many bytes, unless that is more than the account may have.
    pub fn try_grow(&mut self, bytes: usize) -> bool {
        if self.covers(bytes) {
            return true;
        }
        let added = self.try_add(bytes - self.bytes);
        self.budget.allowed(added)
    }

    /// Grows in steps to at least so many bytes, perhaps after a moment. False if there is no
    /// memory.
    pub async fn grow(&mut self, bytes: usize) -> bool {
        if self.covers(bytes) {
            return true;
        }
        // Not beyond the largest answer, which may be all that there is memory for.
        let bytes = bytes
            .next_multiple_of(STEP)
            .min(self.budget.least)
            .max(bytes);
        let deadline = Instant::now() + ACQUIRE_TIMEOUT;
        let budget = Arc::clone(&self.budget);
        loop {
            // Registered before trying, so that a release in between is not missed.
            let mut released = std::pin::pin!(budget.released.notified());
            released.as_mut().enable();
            let added = self.try_add(bytes - self.bytes);
            if added.is_ok() || timeout_at(deadline, released).await.is_err() {
                return budget.allowed(added);
            }
        }
    }

    /// Holds exactly so many bytes, which are there already and cannot be refused.
    pub fn set(&mut self, bytes: usize) {
        if bytes > self.bytes {
            let more = bytes - self.bytes;
            self.budget.usage().add(self.account, more);
        } else if bytes < self.bytes {
            self.budget.release(self.account, self.bytes - bytes);
        }
        self.bytes = bytes;
    }

    /// Moves everything held to a permit of its own.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let mut taken = Self::new(&self.budget, self.account);
        std::mem::swap(&mut taken.bytes, &mut self.bytes);
        taken
    }
}

impl Drop for MemoryPermit {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.budget.release(self.account, self.bytes);
        }
    }
}

/// Bytes in flight on a connection: some that it has free, and a permit for the others. HTTP/2 has
/// many requests on one connection, which share what is free.
pub struct MemoryCharge {
    connection: Option<Arc<ConnectionMeter>>,
    free: usize,
    permit: MemoryPermit,
}

impl MemoryCharge {
    /// A charge for nothing yet.
    pub fn new(
        budget: &Arc<MemoryBudget>,
        account: MemoryAccount,
        connection: Option<Arc<ConnectionMeter>>,
    ) -> Self {
        Self {
            connection,
            free: 0,
            permit: MemoryPermit::new(budget, account),
        }
    }

    /// How many of so many bytes need a permit.
    fn beyond_free(&mut self, bytes: usize) -> usize {
        if bytes > self.free
            && let Some(connection) = &self.connection
        {
            self.free += connection.take_free(bytes - self.free, FREE_BYTES);
        }
        bytes.saturating_sub(self.free)
    }

    /// Grows to at least so many bytes, perhaps after a moment. False if there is no memory.
    pub async fn grow(&mut self, bytes: usize) -> bool {
        let beyond = self.beyond_free(bytes);
        self.permit.grow(beyond).await
    }

    /// The same without waiting.
    pub fn try_grow(&mut self, bytes: usize) -> bool {
        let beyond = self.beyond_free(bytes);
        self.permit.try_grow(beyond)
    }

    /// Holds so many bytes, which are counted and never refused.
    pub fn set(&mut self, bytes: usize) {
        let beyond = self.beyond_free(bytes);
        self.permit.set(beyond);
    }
}

impl Drop for MemoryCharge {
    fn drop(&mut self) {
        if let Some(connection) = &self.connection {
            connection.give_free(self.free);
        }
    }
}
