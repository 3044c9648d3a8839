//! Which tenants named by tokens exist and are enabled. A disabled tenant is refused within 5 s,
//! and its channels are closed.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::time::Instant;

use crate::gateway::channels::channel::ChannelService;
use crate::gateway::error::Result;
use crate::gateway::identity::authenticate::cache::RefreshedCache;
use crate::protocol::id::TenantId;
use crate::store::CredentialStore;

/// Most tenants cached.
const CAPACITY: usize = 10_000;

pub(in crate::gateway) struct TenantCache {
    store: Arc<CredentialStore>,
    channels: Arc<ChannelService>,
    /// Whether each exists and is enabled.
    known: RefreshedCache<TenantId, bool>,
}

impl TenantCache {
    pub fn new(store: &Arc<CredentialStore>, channels: &Arc<ChannelService>) -> Self {
        Self {
            store: Arc::clone(store),
            channels: Arc::clone(channels),
            known: RefreshedCache::new(CAPACITY),
        }
    }

    /// Whether a tenant exists and is enabled.
    pub async fn is_active(&self, tenant: &TenantId) -> Result<bool> {
        let read = async { Ok(Some(self.store.tenants.run(tenant.clone()).await?)) };
        let active = self.known.get_or_read(tenant, read).await?;
        Ok(active.unwrap_or_default())
    }

    /// Reads which tenants are still active, and closes the channels of those that are not.
    pub async fn refresh(&self) -> Result<()> {
        let asked = Instant::now();
        let with_channels = self.channels.registry.tenants();
        let mut ids = with_channels.clone();
        ids.extend(self.known.keys());
        let active = if ids.is_empty() {
            HashSet::new()
        } else {
            self.store.active_tenants(&ids).await?
        };
        self.known.refresh(asked, |known, _| {
            // Those that changed, or were added meanwhile, are read when next used.
            known.retain(|tenant, was| ids.contains(tenant) && *was == active.contains(tenant));
        });
        let ended: HashSet<_> = with_channels.difference(&active).collect();
        if !ended.is_empty() {
            let registry = &self.channels.registry;
            registry.close_ended(|channel| ended.contains(channel.key.tenant()));
        }
        Ok(())
    }
}
