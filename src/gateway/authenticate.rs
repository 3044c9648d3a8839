//! What a credential is worth. Known ones are cached, and every node asks every 2 s what changed, so that a revocation
//! works everywhere within 5 s; a cache that could not ask is not believed. Tokens from elsewhere are judged next door.

mod api_key;
mod introspection;
mod jwks;
mod jwt;
mod tenants;
mod tokens;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::time::Instant;

pub use self::api_key::{FreshKey, random, random_text};
pub(super) use self::tokens::{Tokens, recheck_every};
use super::Gateway;
use super::caller::{Admin, Approver, Caller, Enforcer, Operator, Origin};
use super::error::Error;
use crate::config::Secret;
use crate::protocol::credential::{ApiKey, KEY_PREFIX, RoleName, UserPassword};
use crate::protocol::id::{CredentialId, TextId};
use crate::protocol::timestamp::Timestamp;
use crate::store::credential::{ChangedCredential, Credential};

pub(super) const REFRESH_EVERY: Duration = Duration::from_secs(2);
/// How long the cache is believed after the last answer: within the 5 s that a revocation may take.
const BELIEVED_FOR: Duration = Duration::from_secs(4);
/// How far back a node asks: far more than a change needs to become visible.
const CHANGED_WITHIN: Duration = Duration::from_secs(60);
/// Most cached credentials; past this the cache starts over.
const MAX_CACHED: usize = 100_000;

#[derive(Default)]
pub(super) struct Credentials {
    /// Held for a few instructions, never across an await.
    state: Mutex<CacheState>,
}

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

    fn refresh(&self, changed: &[ChangedCredential], asked: Instant) {
        let mut state = self.state();
        let missed = state
            .refreshed
            .is_none_or(|at| at.elapsed() > CHANGED_WITHIN / 2);
        if missed {
            state.known.clear();
        }
        for credential in changed {
            state.known.remove(&credential.id);
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
    /// What stands behind `Basic`.
    Basic(&'a str),
    /// A client certificate, by its SHA-256.
    Certificate([u8; 32]),
}

impl Gateway {
    pub async fn authenticate(
        &self,
        presented: &Presented<'_>,
        from: Option<IpAddr>,
    ) -> Result<Caller, Error> {
        match presented {
            Presented::Token(token) => self.by_token(token, from).await,
            Presented::Basic(_) if !self.config.auth.basic => Err(Error::Unauthenticated),
            Presented::Basic(encoded) => {
                let given = UserPassword::decode(encoded).ok_or(Error::Unauthenticated)?;
                let key = given.key().ok_or(Error::Unauthenticated)?;
                self.by_key(&key, from).await?.ok_or(Error::Unauthenticated)
            }
            Presented::Certificate(thumbprint) => {
                let credential = self.credential_of_certificate(thumbprint).await?;
                self.by_credential(credential, from)?
                    .ok_or(Error::Unauthenticated)
            }
        }
    }

    /// Who presents this token: the operator, an API key, or whoever a token from elsewhere stands for.
    async fn by_token(&self, token: &str, from: Option<IpAddr>) -> Result<Caller, Error> {
        if let Some(operator) = &self.operator {
            let hash: [u8; 32] = Sha256::digest(token).into();
            if bool::from(hash.ct_eq(operator)) {
                return Ok(Caller::Operator(Operator { from }));
            }
        }
        if token.starts_with(KEY_PREFIX) {
            let key = ApiKey::parse(token).ok_or(Error::InvalidToken)?;
            return self.by_key(&key, from).await?.ok_or(Error::InvalidToken);
        }
        self.by_foreign_token(token, from).await
    }

    /// Who presents this API key, if it is good.
    async fn by_key(
        &self,
        key: &ApiKey<'_>,
        from: Option<IpAddr>,
    ) -> Result<Option<Caller>, Error> {
        let found = self.credential(&key.id).await?;
        let hash: [u8; 32] = Sha256::digest(key.secret).into();
        let genuine = found.filter(|credential| {
            let stored = credential.secret_hash;
            stored.is_some_and(|stored| stored.ct_eq(&hash).into())
        });
        self.by_credential(genuine, from)
    }

    /// Who a credential stands for that the caller has proven to hold, if it is good.
    fn by_credential(
        &self,
        credential: Option<Arc<Credential>>,
        from: Option<IpAddr>,
    ) -> Result<Option<Caller>, Error> {
        let now = self.clock.now();
        let good = credential.filter(|credential| {
            !credential.revoked && credential.expires_at.is_none_or(|at| now < at)
        });
        let Some(credential) = good else {
            return Ok(None);
        };
        self.credentials.note_use(&credential.id, now);
        caller(&credential, from).map(Some)
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

    /// Learns which credentials changed, and which tenants. Neither keeps the other from being asked for.
    pub(super) async fn refresh_credentials(&self) -> Result<(), Error> {
        let learned = self.learn_changes().await;
        let tenants = self.refresh_tenants().await;
        learned.and(tenants)
    }

    /// Learns which credentials changed, and closes the channels of those that are no longer good.
    async fn learn_changes(&self) -> Result<(), Error> {
        let asked = Instant::now();
        let within = CHANGED_WITHIN.as_secs_f64();
        let changed = self.store.changed_credentials(within).await?;
        self.credentials.refresh(&changed, asked);
        self.close_revoked(&changed);
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

fn caller(credential: &Credential, from: Option<IpAddr>) -> Result<Caller, Error> {
    let origin = Origin {
        tenant: credential.tenant.clone(),
        principal: credential.id.as_str().to_owned(),
        expires_at: credential.expires_at,
        recheck: None,
        from,
    };
    in_role(credential.role, origin, credential.bound_id.as_deref())
}

fn in_role(role: RoleName, origin: Origin, bound: Option<&str>) -> Result<Caller, Error> {
    Ok(match role {
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
