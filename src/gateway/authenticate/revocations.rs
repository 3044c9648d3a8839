//! The tokens that a tenant has revoked. Every node asks every 2 s which tenants have revoked something, so that a revocation
//! takes effect everywhere within 5 s, and closes the channels of the tokens.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quick_cache::unsync::Cache;
use tokio::time::Instant;

use super::tenants::TENANT_LIFETIME;
use super::{Authenticator, RECENT_CHANGE_LIFETIME};
use crate::gateway::error::Result;
use crate::protocol::id::TenantId;
use crate::protocol::token::{TokenIdentity, TokenRevocations};

/// Most tenants cached.
const CAPACITY: usize = 1_000;

#[derive(Default)]
pub(super) struct RevokedTokens {
    /// Held for a few instructions, never across an await.
    state: Mutex<RevokedState>,
}

struct RevokedState {
    known: Cache<TenantId, Arc<TokenRevocations>>,
    refreshed: Option<Instant>,
    /// Counts refreshes, so that what was read before one is not cached after it.
    generation: u64,
}

impl Default for RevokedState {
    fn default() -> Self {
        Self {
            known: Cache::new(CAPACITY),
            refreshed: None,
            generation: 0,
        }
    }
}

impl RevokedTokens {
    fn state(&self) -> MutexGuard<'_, RevokedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Authenticator {
    pub(super) async fn is_revoked(
        &self,
        tenant: &TenantId,
        token: &TokenIdentity,
    ) -> Result<bool> {
        Ok(self.revocations(tenant).await?.include(token))
    }

    async fn revocations(&self, tenant: &TenantId) -> Result<Arc<TokenRevocations>> {
        let revoked = &self.tokens.revoked;
        let generation = {
            let state = revoked.state();
            let fresh = state
                .refreshed
                .is_some_and(|at| at.elapsed() < TENANT_LIFETIME);
            if let Some(known) = state.known.get(tenant).filter(|_| fresh) {
                return Ok(Arc::clone(known));
            }
            state.generation
        };
        let read = Arc::new(self.store.revocations.run(tenant.clone()).await?);
        let mut state = revoked.state();
        if state.generation == generation {
            state.known.insert(tenant.clone(), Arc::clone(&read));
        }
        Ok(read)
    }

    /// Reads which tenants have revoked tokens, and closes the channels of those.
    pub(super) async fn refresh_revocations(&self) -> Result<()> {
        if !self.tokens.any() {
            return Ok(());
        }
        let asked = Instant::now();
        let ago = self.tokens.revoked.state().refreshed;
        let ago = ago.map_or(Duration::ZERO, |at| at.elapsed());
        let within = (ago + RECENT_CHANGE_LIFETIME).as_secs_f64();
        let changed = self.store.changed_revocations(within).await?;
        let changed: HashSet<TenantId> = changed.into_iter().collect();
        {
            let mut state = self.tokens.revoked.state();
            // What was cached while nobody asked may have changed longer ago than was asked for.
            let missed = state
                .refreshed
                .is_none_or(|at| at.elapsed() > RECENT_CHANGE_LIFETIME / 2);
            state
                .known
                .retain(|tenant, _| !missed && !changed.contains(tenant));
            state.refreshed = Some(asked);
            state.generation += 1;
        }
        // Those that changed a while ago too: a channel may have been opening then.
        let with_channels = self.channels.tenants_with_channels();
        for tenant in with_channels.intersection(&changed) {
            let revocations = self.revocations(tenant).await?;
            self.channels.close_revoked_tokens(tenant, &revocations);
        }
        Ok(())
    }
}
