//! Which tenants that tokens name are there and not disabled. Kept as fresh as credentials are: asked for every 2 s, so that
//! a disabled tenant stops within 5 s, open channels included.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::BELIEVED_FOR;
use crate::gateway::Gateway;
use crate::gateway::error::Error;
use crate::protocol::id::TenantId;

/// Most tenants remembered; past this the memory starts over.
const MAX_KNOWN: usize = 10_000;

#[derive(Default)]
pub(super) struct Tenants {
    /// Held for a few instructions, never across an await.
    state: Mutex<TenantState>,
}

#[derive(Default)]
struct TenantState {
    /// Whether each is there and not disabled.
    known: HashMap<TenantId, bool>,
    /// When that was last asked for.
    refreshed: Option<Instant>,
    /// Counts refreshes, so that what was read before one is not remembered after it.
    generation: u64,
}

impl Tenants {
    fn state(&self) -> MutexGuard<'_, TenantState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gateway {
    /// Whether a tenant is there and not disabled.
    pub(super) async fn tenant_is_active(&self, tenant: &TenantId) -> Result<bool, Error> {
        let tenants = &self.tokens.tenants;
        let generation = {
            let state = tenants.state();
            let fresh = state
                .refreshed
                .is_some_and(|at| at.elapsed() < BELIEVED_FOR);
            if let Some(active) = state.known.get(tenant).filter(|_| fresh) {
                return Ok(*active);
            }
            state.generation
        };
        let active = self.store.tenant_is_active(tenant).await?;
        let mut state = tenants.state();
        if state.generation == generation {
            if state.known.len() >= MAX_KNOWN {
                state.known.clear();
            }
            state.known.insert(tenant.clone(), active);
        }
        Ok(active)
    }

    /// Learns which tenants are still active, and closes the channels of those that are not.
    pub(super) async fn refresh_tenants(&self) -> Result<(), Error> {
        let asked = Instant::now();
        let with_channels = self.tenants_with_channels();
        let mut ids: HashSet<TenantId> =
            self.tokens.tenants.state().known.keys().cloned().collect();
        ids.extend(with_channels.iter().cloned());
        let active = if ids.is_empty() {
            HashSet::new()
        } else {
            self.store.active_tenants(&ids).await?
        };
        {
            let mut state = self.tokens.tenants.state();
            // Whoever came meanwhile was not asked about.
            state.known.retain(|tenant, _| ids.contains(tenant));
            for (tenant, known) in &mut state.known {
                *known = active.contains(tenant);
            }
            state.refreshed = Some(asked);
            state.generation += 1;
        }
        for tenant in with_channels.difference(&active) {
            self.close_channels_of(tenant);
        }
        Ok(())
    }
}
