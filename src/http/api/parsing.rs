//! Parses large bodies apart from the runtime's workers, and few at a time, so that they delay no
//! other call. One tenant's bodies do not wait for those of another.

use std::num::NonZero;
use std::thread::available_parallelism;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::task::block_in_place;

use crate::gateway::admission::KeyedSemaphore;
use crate::gateway::error::Error;
use crate::gateway::identity::caller::CallerIdentity;
use crate::gateway::limit::RateLimiter;
use crate::protocol::id::TenantId;

/// Up to this size a body is parsed where it was read: within a millisecond.
const SMALL: usize = 64 << 10;

pub struct ParseBudget {
    /// One body of each tenant at a time.
    tenants: KeyedSemaphore<TenantId>,
    /// As many as there are cores, in all.
    cores: Semaphore,
}

impl ParseBudget {
    pub fn new() -> Self {
        Self {
            tenants: KeyedSemaphore::new(1),
            cores: Semaphore::new(available_parallelism().map_or(1, NonZero::get)),
        }
    }

    /// Parses a body of so many bytes. A large one is counted by its size, and waits for its turn.
    pub async fn parse<T, E: From<Error>>(
        &self,
        limiter: &RateLimiter,
        origin: &CallerIdentity,
        bytes: usize,
        parse: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        if bytes <= SMALL {
            return parse();
        }
        limiter.admit_body(origin, bytes)?;
        let turns = self.tenants.of(&origin.tenant);
        // Neither semaphore is ever closed.
        let _turn = turns.acquire().await;
        let _core = self.cores.acquire().await;
        match Handle::current().runtime_flavor() {
            RuntimeFlavor::MultiThread => block_in_place(parse),
            _ => parse(),
        }
    }
}
