//! What a credential is worth. Known ones are cached, and every node asks every 2 s what changed, so that a revocation
//! works everywhere within 5 s; a cache that could not ask is not believed.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::time::Instant;

use super::Gateway;
use super::caller::{Admin, Approver, Caller, Enforcer, Operator, Origin};
use super::error::Error;
use crate::config::Secret;
use crate::protocol::id::{CredentialId, TextId};
use crate::protocol::timestamp::Timestamp;
use crate::store::credential::{Credential, RoleName};

/// How often a node asks what changed.
pub(super) const REFRESH_EVERY: Duration = Duration::from_secs(2);
/// How long the cache is believed after the last answer: within the 5 s that a revocation may take.
const BELIEVED_FOR: Duration = Duration::from_secs(4);
/// How far back a node asks: far more than a change needs to become visible.
const CHANGED_WITHIN: Duration = Duration::from_secs(60);
/// Most cached credentials; past this the cache starts over.
const MAX_CACHED: usize = 100_000;
/// What every API key begins with.
const KEY_PREFIX: &str = "csk_";

/// An API key, split. The secret is never printed.
pub struct ApiKey<'a> {
    id: CredentialId,
    secret: &'a str,
}

impl<'a> ApiKey<'a> {
    /// Splits `csk_<id>_<secret>`. The secret may hold underscores, the id does not.
    fn parse(text: &'a str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(KEY_PREFIX)?.split_once('_')?;
        Some(Self {
            id: CredentialId::parse(id)?,
            secret,
        })
    }
}

/// A fresh API key: shown once, of which the hash is stored.
pub struct FreshKey {
    /// The credential's id.
    pub id: CredentialId,
    /// The whole key.
    pub key: String,
    /// SHA-256 of its secret.
    pub hash: [u8; 32],
}

/// Random bytes in base64url.
pub fn random_text<const N: usize>() -> Result<String, Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| {
        tracing::error!(%error, "the system gave no randomness");
        Error::Internal
    })?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

impl FreshKey {
    /// Makes a key for the credential `id`.
    pub fn generate(id: CredentialId) -> Result<Self, Error> {
        let secret = random_text::<32>()?;
        Ok(Self {
            key: format!("{KEY_PREFIX}{id}_{secret}"),
            hash: Sha256::digest(&secret).into(),
            id,
        })
    }
}

/// Credentials this node has seen.
#[derive(Default)]
pub(super) struct Credentials {
    /// Held for a few instructions, never across an await.
    state: Mutex<CacheState>,
}

/// What the cache holds.
#[derive(Default)]
struct CacheState {
    known: HashMap<CredentialId, Arc<Credential>>,
    /// Whose certificates are. What the credential is worth is asked of `known`.
    certificates: HashMap<[u8; 32], CredentialId>,
    uses: HashMap<CredentialId, Timestamp>,
    /// When the node last learned what changed.
    refreshed: Option<Instant>,
    /// Counts refreshes, so that a row read before one is not cached after it.
    generation: u64,
}

impl Credentials {
    fn state(&self) -> MutexGuard<'_, CacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A credential the cache can vouch for.
    fn fresh(&self, id: &CredentialId) -> Option<Arc<Credential>> {
        let state = self.state();
        state.refreshed.filter(|at| at.elapsed() < BELIEVED_FOR)?;
        state.known.get(id).cloned()
    }

    fn generation(&self) -> u64 {
        self.state().generation
    }

    fn remember(&self, credential: &Arc<Credential>, generation: u64) {
        let mut state = self.state();
        if state.generation != generation {
            return;
        }
        if state.known.len() >= MAX_CACHED {
            state.known.clear();
        }
        state
            .known
            .insert(credential.id.clone(), Arc::clone(credential));
    }

    /// The credential that a certificate was last seen to be.
    fn of_certificate(&self, thumbprint: &[u8; 32]) -> Option<CredentialId> {
        self.state().certificates.get(thumbprint).cloned()
    }

    fn remember_certificate(&self, thumbprint: [u8; 32], id: &CredentialId) {
        let mut state = self.state();
        if state.certificates.len() >= MAX_CACHED {
            state.certificates.clear();
        }
        state.certificates.insert(thumbprint, id.clone());
    }

    fn note_use(&self, id: &CredentialId, at: Timestamp) {
        self.state().uses.insert(id.clone(), at);
    }

    /// Forgets what changed.
    fn refresh(&self, changed: &[CredentialId], asked: Instant) {
        let mut state = self.state();
        let missed = state
            .refreshed
            .is_none_or(|at| at.elapsed() > CHANGED_WITHIN / 2);
        if missed {
            state.known.clear();
        }
        for id in changed {
            state.known.remove(id);
        }
        // When it was asked, not when the answer came: what it says may be as old as that.
        state.refreshed = Some(asked);
        state.generation += 1;
    }

    /// Takes the uses noted since the last time.
    fn take_uses(&self) -> Vec<(CredentialId, Timestamp)> {
        self.state().uses.drain().collect()
    }
}

/// SHA-256 of the operator key, if one is configured.
pub(super) fn operator_hash(key: &Secret) -> Option<[u8; 32]> {
    (!key.is_empty()).then(|| Sha256::digest(key.expose()).into())
}

/// What a request presents to say who it is.
pub enum Presented<'a> {
    /// A bearer token or an API key.
    Token(&'a str),
    /// A client certificate, by its SHA-256.
    Certificate([u8; 32]),
}

impl Gateway {
    /// Who presents this, calling from an address.
    pub async fn authenticate(
        &self,
        presented: &Presented<'_>,
        from: Option<IpAddr>,
    ) -> Result<Caller, Error> {
        let credential = match presented {
            Presented::Token(token) => {
                if let Some(operator) = &self.operator {
                    let hash: [u8; 32] = Sha256::digest(token).into();
                    if bool::from(hash.ct_eq(operator)) {
                        return Ok(Caller::Operator(Operator { from }));
                    }
                }
                self.credential_of_key(token).await?
            }
            Presented::Certificate(thumbprint) => {
                self.credential_of_certificate(thumbprint).await?
            }
        };
        let credential = credential.ok_or(Error::Unauthenticated)?;
        let now = self.clock.now();
        if credential.revoked || credential.expires_at.is_some_and(|at| at <= now) {
            return Err(Error::Unauthenticated);
        }
        self.credentials.note_use(&credential.id, now);
        caller(&credential, from)
    }

    /// The credential of an API key, if the key is genuine.
    async fn credential_of_key(&self, token: &str) -> Result<Option<Arc<Credential>>, Error> {
        let Some(key) = ApiKey::parse(token) else {
            return Ok(None);
        };
        let found = self.credential(&key.id).await?;
        let hash: [u8; 32] = Sha256::digest(key.secret).into();
        Ok(found.filter(|credential| {
            let stored = credential.secret_hash;
            stored.is_some_and(|stored| stored.ct_eq(&hash).into())
        }))
    }

    /// The credential of a client certificate, whose key the client has proven to hold.
    async fn credential_of_certificate(
        &self,
        thumbprint: &[u8; 32],
    ) -> Result<Option<Arc<Credential>>, Error> {
        if let Some(id) = self.credentials.of_certificate(thumbprint) {
            let found = self.credential(&id).await?;
            let found = found.filter(|credential| credential.thumbprint == Some(*thumbprint));
            if found.is_some() {
                return Ok(found);
            }
        }
        let generation = self.credentials.generation();
        let found = self.store.certificate(*thumbprint).await?.map(Arc::new);
        if let Some(credential) = &found {
            self.credentials.remember(credential, generation);
            self.credentials
                .remember_certificate(*thumbprint, &credential.id);
        }
        Ok(found)
    }

    /// A credential, from the cache or the database.
    async fn credential(&self, id: &CredentialId) -> Result<Option<Arc<Credential>>, Error> {
        if let Some(known) = self.credentials.fresh(id) {
            return Ok(Some(known));
        }
        let generation = self.credentials.generation();
        let found = self.store.credential(id).await?.map(Arc::new);
        if let Some(credential) = &found {
            self.credentials.remember(credential, generation);
        }
        Ok(found)
    }

    /// Learns which credentials changed.
    pub(super) async fn refresh_credentials(&self) -> Result<(), Error> {
        let asked = Instant::now();
        let changed = self
            .store
            .changed_credentials(CHANGED_WITHIN.as_secs_f64())
            .await?;
        self.credentials.refresh(&changed, asked);
        self.close_revoked(&changed).await?;
        Ok(())
    }

    /// Writes when credentials were last used.
    pub(super) async fn write_uses(&self) -> Result<(), Error> {
        let uses = self.credentials.take_uses();
        if uses.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.store.note_uses(&uses).await {
            for (id, at) in &uses {
                self.credentials.note_use(id, *at);
            }
            return Err(error.into());
        }
        Ok(())
    }
}

/// The caller a credential stands for.
fn caller(credential: &Credential, from: Option<IpAddr>) -> Result<Caller, Error> {
    let origin = Origin {
        tenant: credential.tenant.clone(),
        principal: credential.id.as_str().to_owned(),
        expires_at: credential.expires_at,
        from,
    };
    let bound = credential.bound_id.as_deref();
    Ok(match credential.role {
        RoleName::Enforcer => Caller::Enforcer(Enforcer {
            origin,
            bound: bound_id(bound)?,
        }),
        RoleName::Approver => Caller::Approver(Approver {
            origin,
            bound: bound_id(bound)?,
        }),
        RoleName::Admin => Caller::Admin(Admin { origin }),
    })
}

/// The id a credential is bound to. One that cannot be read must not come out as unbound.
fn bound_id<T: TextId>(bound: Option<&str>) -> Result<Option<T>, Error> {
    bound
        .map(|id| T::parse(id).ok_or(Error::Internal))
        .transpose()
}
