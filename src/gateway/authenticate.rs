//! Verifies credentials. They are cached, and every node asks every 2 s what changed, so that a revocation takes effect
//! everywhere within 5 s; a cache that could not ask is not used. `tokens` verifies external tokens.

mod api_key;
mod failures;
mod introspection;
mod jwks;
mod jwt;
mod revocations;
mod tenants;
mod token_quota;
mod tokens;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quick_cache::unsync::Cache;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::time::Instant;

pub use self::api_key::{FreshKey, random, random_text};
use self::failures::{AuthFailure, AuthFailures};
use self::tenants::TENANT_LIFETIME;
pub(super) use self::tokens::{TokenVerifier, recheck_every};
use super::ChannelService;
use super::caller::{Caller, CallerIdentity, Operator};
use super::context::GatewayContext;
use super::error::{Error, Result};
use crate::config::Secret;
use crate::protocol::credential::{ApiKey, KEY_PREFIX, UserPassword};
use crate::protocol::id::CredentialId;
use crate::protocol::timestamp::Timestamp;
use crate::store::CredentialStore;
use crate::store::credential::{ChangedCredential, Credential};

pub(super) const REFRESH_INTERVAL: Duration = Duration::from_secs(2);
/// How far back before the last refresh one asks: much longer than a change takes to become visible.
const RECENT_CHANGE_LIFETIME: Duration = Duration::from_secs(60);
/// Most cached credentials.
const MAX_CACHED: usize = 100_000;

#[derive(Default)]
pub(super) struct Credentials {
    /// Held for a few instructions, never across an await.
    state: Mutex<CacheState>,
}

struct CacheState {
    known: Cache<CredentialId, Arc<Credential>>,
    /// The credentials of certificates. Whether one is valid is looked up in `known`.
    certificates: Cache<[u8; 32], CredentialId>,
    uses: HashMap<CredentialId, Timestamp>,
    refreshed: Option<Instant>,
    /// Counts refreshes, so that a row read before one is not cached after it.
    generation: u64,
}

impl Default for CacheState {
    fn default() -> Self {
        Self {
            known: Cache::new(MAX_CACHED),
            certificates: Cache::new(MAX_CACHED),
            uses: HashMap::new(),
            refreshed: None,
            generation: 0,
        }
    }
}

impl Credentials {
    fn state(&self) -> MutexGuard<'_, CacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fresh(&self, id: &CredentialId) -> Option<Arc<Credential>> {
        let state = self.state();
        state
            .refreshed
            .filter(|at| at.elapsed() < TENANT_LIFETIME)?;
        state.known.get(id).cloned()
    }

    /// The time since the last refresh. Channels stay open without one, so that their credentials may have ended since.
    fn refreshed_ago(&self) -> Duration {
        let refreshed = self.state().refreshed;
        refreshed.map_or(Duration::ZERO, |at| at.elapsed())
    }

    fn generation(&self) -> u64 {
        self.state().generation
    }

    fn remember(&self, credential: &Arc<Credential>, generation: u64) {
        let mut state = self.state();
        if state.generation == generation {
            let id = credential.id.clone();
            state.known.insert(id, Arc::clone(credential));
        }
    }

    fn of_certificate(&self, thumbprint: &[u8; 32]) -> Option<CredentialId> {
        self.state().certificates.get(thumbprint).cloned()
    }

    fn remember_certificate(&self, thumbprint: [u8; 32], id: &CredentialId) {
        self.state().certificates.insert(thumbprint, id.clone());
    }

    fn note_use(&self, id: &CredentialId, at: Timestamp) {
        self.state().uses.insert(id.clone(), at);
    }

    fn refresh(&self, changed: &[ChangedCredential], asked: Instant) {
        let mut state = self.state();
        let missed = state
            .refreshed
            .is_none_or(|at| at.elapsed() > RECENT_CHANGE_LIFETIME / 2);
        if missed {
            state.known.clear();
        }
        for credential in changed {
            state.known.remove(&credential.id);
        }
        // The time of the question: the answer may be as old as that.
        state.refreshed = Some(asked);
        state.generation += 1;
    }

    fn take_uses(&self) -> Vec<(CredentialId, Timestamp)> {
        self.state().uses.drain().collect()
    }
}

/// SHA-256 of the operator key, if one is configured.
pub(super) fn operator_hash(key: &Secret) -> Option<[u8; 32]> {
    (!key.is_empty()).then(|| Sha256::digest(key.expose()).into())
}

/// What a request authenticates with.
pub enum PresentedCredential<'a> {
    /// A bearer token or an API key.
    Token(&'a str),
    /// The encoded credentials of `Basic`.
    Basic(&'a str),
    Certificate(ClientCertificate),
}

/// A client certificate whose key the client has proven to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientCertificate {
    /// Its SHA-256.
    pub thumbprint: [u8; 32],
    pub expires_at: Timestamp,
}

pub struct Authenticator {
    context: Arc<GatewayContext>,
    store: Arc<CredentialStore>,
    channels: Arc<ChannelService>,
    credentials: Credentials,
    tokens: TokenVerifier,
    failures: AuthFailures,
    /// The hash of the operator's key.
    operator: Option<[u8; 32]>,
}

impl Authenticator {
    pub(super) fn new(
        context: &Arc<GatewayContext>,
        channels: &Arc<ChannelService>,
        tokens: TokenVerifier,
    ) -> Self {
        Self {
            tokens,
            operator: operator_hash(&context.config.platform.operator_key),
            credentials: Credentials::default(),
            failures: AuthFailures::new(),
            channels: Arc::clone(channels),
            context: Arc::clone(context),
            store: Arc::clone(&context.store.credentials),
        }
    }

    pub async fn authenticate(
        &self,
        presented: Option<&PresentedCredential<'_>>,
        from: Option<IpAddr>,
    ) -> Result<Caller> {
        match presented {
            None => {
                self.note_failure(AuthFailure::Missing, None, from);
                Err(Error::Unauthenticated)
            }
            Some(PresentedCredential::Token(token)) => self.by_token(token, from).await,
            Some(PresentedCredential::Basic(encoded)) => self.by_basic(encoded, from).await,
            Some(PresentedCredential::Certificate(certificate)) => {
                let found = self.credential_of_certificate(&certificate.thumbprint);
                let found = found.await?;
                if found.is_none() {
                    self.note_failure(AuthFailure::Unknown, None, from);
                }
                // It was verified when the connection was made, which may have been long ago.
                self.by_credential(found, Some(certificate.expires_at), from)?
                    .ok_or(Error::Unauthenticated)
            }
        }
    }

    fn note_failure(
        &self,
        why: AuthFailure,
        credential: Option<&CredentialId>,
        from: Option<IpAddr>,
    ) {
        self.failures.note(&self.context, why, credential, from);
    }

    /// Counts a certificate that was not bound, for want of it or of a valid code.
    pub fn note_unbound(&self, error: &Error, from: Option<IpAddr>) {
        if let Error::NoCertificate = error {
            self.note_failure(AuthFailure::Missing, None, from);
        }
        if let Error::CodeRefused = error {
            self.note_failure(AuthFailure::Code, None, from);
        }
    }

    async fn by_basic(&self, encoded: &str, from: Option<IpAddr>) -> Result<Caller> {
        let given = UserPassword::decode(encoded).filter(|_| self.context.config.auth.basic);
        let Some(key) = given.as_ref().and_then(UserPassword::key) else {
            self.note_failure(AuthFailure::Malformed, None, from);
            return Err(Error::Unauthenticated);
        };
        self.by_key(&key, from).await?.ok_or(Error::Unauthenticated)
    }

    /// The caller of a token: the operator's key, an API key, or an external token.
    async fn by_token(&self, token: &str, from: Option<IpAddr>) -> Result<Caller> {
        if let Some(operator) = &self.operator {
            let hash: [u8; 32] = Sha256::digest(token).into();
            if bool::from(hash.ct_eq(operator)) {
                return Ok(Caller::Operator(Operator { from }));
            }
        }
        if token.starts_with(KEY_PREFIX) {
            let Some(key) = ApiKey::parse(token) else {
                self.note_failure(AuthFailure::Malformed, None, from);
                return Err(Error::MalformedKey);
            };
            let caller = self.by_key(&key, from).await?;
            return caller.ok_or_else(|| {
                if key.is_complete() {
                    Error::InvalidToken
                } else {
                    Error::MalformedKey
                }
            });
        }
        let judged = self.by_foreign_token(token, from).await;
        if let Err(Error::InvalidToken) = judged {
            self.note_failure(AuthFailure::Token, None, from);
        }
        judged
    }

    /// The caller of an API key, if it is valid.
    async fn by_key(&self, key: &ApiKey<'_>, from: Option<IpAddr>) -> Result<Option<Caller>> {
        let found = self.credential(&key.id).await?;
        let hash: [u8; 32] = Sha256::digest(key.secret).into();
        let Some(credential) = found else {
            self.note_failure(AuthFailure::Unknown, None, from);
            return Ok(None);
        };
        let stored = credential.secret_hash;
        if !stored.is_some_and(|stored| stored.ct_eq(&hash).into()) {
            self.note_failure(AuthFailure::Secret, Some(&credential.id), from);
            return Ok(None);
        }
        self.by_credential(Some(credential), None, from)
    }

    /// The caller of a credential, if it is valid. The caller has proven to hold it, with something that may end earlier.
    fn by_credential(
        &self,
        credential: Option<Arc<Credential>>,
        proof_ends: Option<Timestamp>,
        from: Option<IpAddr>,
    ) -> Result<Option<Caller>> {
        let now = self.context.clock.now();
        let Some(credential) = credential else {
            return Ok(None);
        };
        let expires_at = credential.expires_at.into_iter().chain(proof_ends).min();
        let ended = if credential.revoked {
            Some(AuthFailure::Revoked)
        } else if expires_at.is_some_and(|at| at <= now) {
            Some(AuthFailure::Expired)
        } else {
            None
        };
        if let Some(ended) = ended {
            self.note_failure(ended, Some(&credential.id), from);
            return Ok(None);
        }
        self.credentials.note_use(&credential.id, now);
        caller(&credential, expires_at, from).map(Some)
    }

    /// The credential of a client certificate. TLS has verified that the client holds its key.
    async fn credential_of_certificate(
        &self,
        thumbprint: &[u8; 32],
    ) -> Result<Option<Arc<Credential>>> {
        if let Some(id) = self.credentials.of_certificate(thumbprint) {
            let found = self.credential(&id).await?;
            let found = found.filter(|credential| credential.thumbprint == Some(*thumbprint));
            if found.is_some() {
                return Ok(found);
            }
        }
        let generation = self.credentials.generation();
        let found = self.store.certificates.run(*thumbprint).await?;
        let found = found.map(Arc::new);
        if let Some(credential) = &found {
            self.credentials.remember(credential, generation);
            self.credentials
                .remember_certificate(*thumbprint, &credential.id);
        }
        Ok(found)
    }

    async fn credential(&self, id: &CredentialId) -> Result<Option<Arc<Credential>>> {
        if let Some(known) = self.credentials.fresh(id) {
            return Ok(Some(known));
        }
        let generation = self.credentials.generation();
        let found = self.store.credentials.run(id.clone()).await?.map(Arc::new);
        if let Some(credential) = &found {
            self.credentials.remember(credential, generation);
        }
        Ok(found)
    }

    /// Reads which credentials, tenants and tokens changed. If one fails, the others are read all the same.
    pub(super) async fn refresh_credentials(&self) -> Result<()> {
        let learned = self.learn_changes().await;
        let tenants = self.refresh_tenants().await;
        let revocations = self.refresh_revocations().await;
        learned.and(tenants).and(revocations)
    }

    /// Reads which credentials changed, and closes the channels of those that are no longer valid.
    async fn learn_changes(&self) -> Result<()> {
        let asked = Instant::now();
        let within = self.credentials.refreshed_ago() + RECENT_CHANGE_LIFETIME;
        let changed = self.store.changed_credentials(within.as_secs_f64()).await?;
        self.credentials.refresh(&changed, asked);
        self.channels.close_revoked(&changed);
        Ok(())
    }

    /// Writes when credentials were last used.
    pub(super) async fn write_uses(&self) -> Result<()> {
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

fn caller(
    credential: &Credential,
    expires_at: Option<Timestamp>,
    from: Option<IpAddr>,
) -> Result<Caller> {
    let origin = CallerIdentity {
        tenant: credential.tenant.clone(),
        principal: credential.id.as_str().to_owned(),
        issuer: None,
        expires_at,
        recheck: None,
        token: None,
        from,
    };
    Caller::in_role(credential.role, origin, credential.bound_id.as_deref())
}
