//! Verifies credentials. They are cached, and every node asks every 2 s what changed, so that a
//! revocation takes effect everywhere within 5 s. `tokens` verifies external tokens.

mod api_key;
mod cache;
mod credentials;
mod failures;
mod introspection;
mod jwks;
mod jwt;
mod revocations;
mod tenants;
mod token_quota;
mod tokens;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;

pub use self::api_key::{FreshKey, random, random_text};
use self::credentials::CredentialCache;
use self::failures::{AuthFailure, AuthFailures};
use self::tokens::TokenVerifier;
pub(in crate::gateway) use self::tokens::{outbound, recheck_every};
use crate::gateway::ChannelService;
use crate::gateway::context::GatewayContext;
use crate::gateway::error::{Error, Result};
use crate::gateway::identity::caller::{Caller, CallerIdentity, Operator};
use crate::outbound::OutboundClient;
use crate::protocol::credential::{ApiKey, KEY_PREFIX, UserPassword};
use crate::protocol::id::CredentialId;
use crate::protocol::timestamp::Timestamp;
use crate::store::identity::credential::Credential;

pub(in crate::gateway) const REFRESH_INTERVAL: Duration = Duration::from_secs(2);

/// The credential that a request presents.
pub enum PresentedCredential<'a> {
    /// A bearer token or an API key.
    Token(&'a str),
    /// The encoded credentials of `Basic`.
    Basic(&'a str),
    /// An API key alone, in the headers of another dialect; `None` if the text is none.
    Key(Option<ApiKey<'a>>),
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
    credentials: CredentialCache,
    tokens: TokenVerifier,
    failures: AuthFailures,
    /// SHA-256 of the operator's key, if one is configured.
    operator: Option<[u8; 32]>,
}

impl Authenticator {
    pub(in crate::gateway) fn new(
        context: &Arc<GatewayContext>,
        channels: &Arc<ChannelService>,
        outbound: &OutboundClient,
    ) -> Self {
        let operator = &context.config.platform.operator_key;
        Self {
            credentials: CredentialCache::new(&context.store.credentials, channels),
            tokens: TokenVerifier::new(context, channels, outbound),
            failures: AuthFailures::new(),
            operator: (!operator.is_empty()).then(|| Sha256::digest(operator.expose()).into()),
            context: Arc::clone(context),
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
            Some(PresentedCredential::Key(Some(key))) => {
                let caller = self.by_key(key, from).await?;
                caller.ok_or(Error::InvalidToken)
            }
            Some(PresentedCredential::Key(None)) => {
                self.note_failure(AuthFailure::Malformed, None, from);
                Err(Error::Unauthenticated)
            }
            Some(PresentedCredential::Certificate(certificate)) => {
                let found = self.credentials.by_certificate(&certificate.thumbprint);
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
        let judged = self.tokens.caller(token, from).await;
        if let Err(Error::InvalidToken) = judged {
            self.note_failure(AuthFailure::Token, None, from);
        }
        judged
    }

    /// The caller of an API key, if it is valid.
    async fn by_key(&self, key: &ApiKey<'_>, from: Option<IpAddr>) -> Result<Option<Caller>> {
        let found = self.credentials.by_id(&key.id).await?;
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

    /// The caller of a credential that it has proven to hold, if that is valid. The proof may end
    /// earlier.
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

    pub fn authentication_methods(&self) -> Vec<&'static str> {
        let auth = &self.context.config.auth;
        [
            ("apiKey", true),
            ("jwt", auth.jwt()),
            ("oauth2", auth.introspection()),
            ("basic", auth.basic),
        ]
        .into_iter()
        .filter_map(|(name, on)| on.then_some(name))
        .collect()
    }

    /// Reads which credentials, tenants and tokens changed. If one fails, the others are read all
    /// the same.
    pub(in crate::gateway) async fn refresh_credentials(&self) -> Result<()> {
        let credentials = self.credentials.refresh().await;
        credentials.and(self.tokens.refresh().await)
    }

    pub(in crate::gateway) async fn write_uses(&self) -> Result<()> {
        self.credentials.write_uses().await
    }

    pub(in crate::gateway) async fn refresh_issuer_keys(&self) -> Result<()> {
        self.tokens.refresh_issuer_keys().await;
        Ok(())
    }

    pub(in crate::gateway) async fn recheck_channels(&self) -> Result<()> {
        self.tokens.recheck_channels().await;
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
        profile: credential.profile,
        from,
    };
    Caller::in_role(credential.role, origin, credential.bound_id.as_deref())
}
