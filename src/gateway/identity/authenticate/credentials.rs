//! The credentials that the gateway issued, by id and by certificate, and when they were last used.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use quick_cache::sync::Cache;
use tokio::time::Instant;

use crate::gateway::channels::channel::ChannelService;
use crate::gateway::error::Result;
use crate::gateway::identity::authenticate::cache::RefreshedCache;
use crate::protocol::id::CredentialId;
use crate::protocol::timestamp::Timestamp;
use crate::short_lock::ShortLock;
use crate::store::CredentialStore;
use crate::store::identity::credential::Credential;

/// Most cached credentials.
const MAX_CACHED: usize = 100_000;

pub(in crate::gateway) struct CredentialCache {
    store: Arc<CredentialStore>,
    channels: Arc<ChannelService>,
    known: RefreshedCache<CredentialId, Arc<Credential>>,
    /// The credentials of certificates. Whether one is valid is looked up in `known`.
    certificates: Cache<[u8; 32], CredentialId>,
    uses: ShortLock<HashMap<CredentialId, Timestamp>>,
}

impl CredentialCache {
    pub fn new(store: &Arc<CredentialStore>, channels: &Arc<ChannelService>) -> Self {
        Self {
            store: Arc::clone(store),
            channels: Arc::clone(channels),
            known: RefreshedCache::new(MAX_CACHED),
            certificates: Cache::new(MAX_CACHED),
            uses: ShortLock::default(),
        }
    }

    pub async fn by_id(&self, id: &CredentialId) -> Result<Option<Arc<Credential>>> {
        let read = async {
            let found = self.store.credentials.run(id.clone()).await?;
            Ok(found.map(Arc::new))
        };
        self.known.get_or_read(id, read).await
    }

    /// The credential of a client certificate. TLS has verified that the client holds its key.
    pub async fn by_certificate(&self, thumbprint: &[u8; 32]) -> Result<Option<Arc<Credential>>> {
        if let Some(id) = self.certificates.get(thumbprint) {
            let found = self.by_id(&id).await?;
            let found = found.filter(|credential| credential.thumbprint == Some(*thumbprint));
            if found.is_some() {
                return Ok(found);
            }
        }
        let generation = self.known.generation();
        let found = self.store.certificates.run(*thumbprint).await?;
        let found = found.map(Arc::new);
        if let Some(credential) = &found {
            let id = &credential.id;
            self.known
                .insert(id.clone(), Arc::clone(credential), generation);
            self.certificates.insert(*thumbprint, id.clone());
        }
        Ok(found)
    }

    /// Reads which credentials changed, and closes the channels of those that were revoked.
    pub async fn refresh(&self) -> Result<()> {
        let asked = Instant::now();
        let changed = self.store.changed_credentials(self.known.seconds_to_ask());
        let changed = changed.await?;
        self.known.refresh(asked, |known, missed| {
            if missed {
                known.clear();
            }
            for credential in &changed {
                known.remove(&credential.id);
            }
        });
        let revoked = changed.iter().filter(|changed| changed.revoked);
        let revoked: HashSet<&str> = revoked.map(|changed| changed.id.as_str()).collect();
        if !revoked.is_empty() {
            let registry = &self.channels.registry;
            registry.close_ended(|channel| revoked.contains(channel.principal.as_str()));
        }
        Ok(())
    }

    pub fn note_use(&self, id: &CredentialId, at: Timestamp) {
        self.uses.lock().insert(id.clone(), at);
    }

    /// Writes when credentials were last used. If that fails, it is kept for the next time.
    pub async fn write_uses(&self) -> Result<()> {
        let uses: Vec<_> = self.uses.lock().drain().collect();
        if uses.is_empty() {
            return Ok(());
        }
        let written = self.store.note_uses(&uses).await;
        if written.is_err() {
            self.uses.lock().extend(uses);
        }
        Ok(written?)
    }
}
