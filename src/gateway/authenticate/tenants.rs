//! Which tenants named by tokens exist and are enabled. Refreshed every 2 s, so that a disabled tenant is refused within
//! 5 s and its channels are closed.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quick_cache::unsync::Cache;
use tokio::time::Instant;

use super::Authenticator;
use crate::gateway::error::Result;
use crate::protocol::id::TenantId;

/// How long the caches of tenants and credentials may be used after the last refresh: less than the 5 s that a revocation
/// may take.
pub(super) const TENANT_LIFETIME: Duration = Duration::from_secs(4);
/// Most tenants cached.
const CAPACITY: usize = 10_000;

#[derive(Default)]
pub(super) struct TenantCache {
    /// Held for a few instructions, never across an await.
    state: Mutex<TenantState>,
}

struct TenantState {
    /// Whether each exists and is enabled.
    known: Cache<TenantId, bool>,
    refreshed: Option<Instant>,
    /// Counts refreshes, so that what was read before one is not cached after it.
    generation: u64,
}

impl Default for TenantState {
    fn default() -> Self {
        Self {
            known: Cache::new(CAPACITY),
            refreshed: None,
            generation: 0,
        }
    }
}

impl TenantCache {
    fn state(&self) -> MutexGuard<'_, TenantState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Authenticator {
    /// Whether a tenant exists and is enabled.
    pub(super) async fn tenant_is_active(&self, tenant: &TenantId) -> Result<bool> {
        let tenants = &self.tokens.tenants;
        let generation = {
            let state = tenants.state();
            let fresh = state
                .refreshed
                .is_some_and(|at| at.elapsed() < TENANT_LIFETIME);
            if let Some(active) = state.known.get(tenant).filter(|_| fresh) {
                return Ok(*active);
            }
            state.generation
        };
        let active = self.store.tenants.run(tenant.clone()).await?;
        let mut state = tenants.state();
        if state.generation == generation {
            state.known.insert(tenant.clone(), active);
        }
        Ok(active)
    }

    /// Reads which tenants are still active, and closes the channels of those that are not.
    pub(super) async fn refresh_tenants(&self) -> Result<()> {
        let asked = Instant::now();
        let with_channels = self.channels.tenants_with_channels();
        let mut ids = with_channels.clone();
        let known = |state: &TenantState| state.known.iter().map(|(id, _)| id.clone()).collect();
        let known: Vec<TenantId> = known(&self.tokens.tenants.state());
        ids.extend(known);
        let active = if ids.is_empty() {
            HashSet::new()
        } else {
            self.store.active_tenants(&ids).await?
        };
        {
            let mut state = self.tokens.tenants.state();
            // Those that changed, or were added meanwhile, are read when next used.
            state
                .known
                .retain(|tenant, known| ids.contains(tenant) && *known == active.contains(tenant));
            state.refreshed = Some(asked);
            state.generation += 1;
        }
        for tenant in with_channels.difference(&active) {
            self.channels.close_channels_of(tenant);
        }
        Ok(())
    }
}
