//! The tokens that a tenant has revoked. A revocation takes effect everywhere within 5 s, and
//! closes the channels of the tokens.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::time::Instant;

use crate::gateway::channels::channel::ChannelService;
use crate::gateway::error::{Error, Result};
use crate::gateway::identity::authenticate::cache::RefreshedCache;
use crate::protocol::id::TenantId;
use crate::protocol::token::{TokenIdentity, TokenRevocations};
use crate::store::CredentialStore;

/// Most tenants cached.
const CAPACITY: usize = 1_000;

pub(in crate::gateway) struct RevokedTokens {
    store: Arc<CredentialStore>,
    channels: Arc<ChannelService>,
    known: RefreshedCache<TenantId, Arc<TokenRevocations>>,
}

impl RevokedTokens {
    pub fn new(store: &Arc<CredentialStore>, channels: &Arc<ChannelService>) -> Self {
        Self {
            store: Arc::clone(store),
            channels: Arc::clone(channels),
            known: RefreshedCache::new(CAPACITY),
        }
    }

    pub async fn include(&self, tenant: &TenantId, token: &TokenIdentity) -> Result<bool> {
        Ok(self.of(tenant).await?.include(token))
    }

    async fn of(&self, tenant: &TenantId) -> Result<Arc<TokenRevocations>> {
        let read = async {
            let read = self.store.revocations.run(tenant.clone()).await?;
            Ok(Some(Arc::new(read)))
        };
        let found = self.known.get_or_read(tenant, read).await?;
        found.ok_or(Error::Internal)
    }

    /// Reads which tenants have revoked tokens, and closes the channels of those tokens.
    pub async fn refresh(&self) -> Result<()> {
        let asked = Instant::now();
        let changed = self.store.changed_revocations(self.known.seconds_to_ask());
        let changed: HashSet<TenantId> = changed.await?.into_iter().collect();
        self.known.refresh(asked, |known, missed| {
            known.retain(|tenant, _| !missed && !changed.contains(tenant));
        });
        // Those that changed a while ago too: a channel may have been opening then.
        let registry = &self.channels.registry;
        for tenant in registry.tenants().intersection(&changed) {
            let revoked = self.of(tenant).await?;
            registry.close_ended(|channel| {
                let token = channel.token.as_deref();
                channel.key.tenant() == tenant && token.is_some_and(|token| revoked.include(token))
            });
        }
        Ok(())
    }
}
