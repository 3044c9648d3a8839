//! External tokens: chooses how each is verified, and makes a caller of its claims. Every refusal
//! reads the same to the caller; the log has the reason, never the token.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;

use crate::config::{Auth, Secret};
use crate::gateway::channels::channel::ChannelService;
use crate::gateway::context::GatewayContext;
use crate::gateway::error::{Error, Result};
use crate::gateway::identity::authenticate::introspection::TokenIntrospection;
use crate::gateway::identity::authenticate::jwt::JwtVerifier;
use crate::gateway::identity::authenticate::revocations::RevokedTokens;
use crate::gateway::identity::authenticate::tenants::TenantCache;
use crate::gateway::identity::authenticate::token_quota::TokenQuota;
use crate::gateway::identity::caller::{Caller, CallerIdentity};
use crate::outbound::OutboundClient;
use crate::protocol::credential::{CredentialProfile, RoleName};
use crate::protocol::timestamp::Timestamp;
use crate::protocol::token::{ClaimNames, TokenClaims, TokenError, looks_signed};
use crate::short_lock::ShortLock;
use crate::telemetry::trace;

/// Tokens of live channels that are rechecked at once: few, as it is not urgent.
const RECHECKED_AT_ONCE: usize = 8;

pub(in crate::gateway) struct TokenVerifier {
    context: Arc<GatewayContext>,
    channels: Arc<ChannelService>,
    jwt: Option<JwtVerifier>,
    introspection: Option<Arc<TokenIntrospection>>,
    /// When the opaque tokens of live channels were last found valid.
    confirmed: ShortLock<HashMap<Secret, Timestamp>>,
    tenants: TenantCache,
    revoked: RevokedTokens,
}

/// The client that asks issuers. It fails if the system's certificates cannot be read.
pub(in crate::gateway) fn outbound(config: &Auth) -> std::io::Result<OutboundClient> {
    let urls = [&config.jwt_jwks_url, &config.introspection_url];
    let outbound = OutboundClient::new(urls.iter().any(|url| url.starts_with("https:")))?;
    Ok(outbound.traced(trace::context))
}

impl TokenVerifier {
    pub fn new(
        context: &Arc<GatewayContext>,
        channels: &Arc<ChannelService>,
        outbound: &OutboundClient,
    ) -> Self {
        let (config, clock) = (&context.config.auth, &context.clock);
        let names = ClaimNames {
            tenant: config.jwt_tenant_claim.clone(),
            role: config.jwt_role_claim.clone(),
            id: config.jwt_id_claim.clone(),
        };
        let quota = TokenQuota::new(&context.config);
        let introspection = TokenIntrospection::new(config, &names, outbound, clock, quota);
        let store = &context.store.credentials;
        Self {
            jwt: JwtVerifier::new(config, &names, outbound, clock, &context.draining),
            introspection: introspection.map(Arc::new),
            confirmed: ShortLock::default(),
            tenants: TenantCache::new(store, channels),
            revoked: RevokedTokens::new(store, channels),
            context: Arc::clone(context),
            channels: Arc::clone(channels),
        }
    }

    /// Reads which tenants and tokens changed. If one fails, the other is read all the same.
    pub async fn refresh(&self) -> Result<()> {
        let tenants = self.tenants.refresh().await;
        if self.jwt.is_none() && self.introspection.is_none() {
            return tenants;
        }
        tenants.and(self.revoked.refresh().await)
    }

    /// The caller of a token that the gateway did not issue.
    pub async fn caller(&self, token: &str, from: Option<IpAddr>) -> Result<Caller> {
        let plausible = !token.is_empty()
            && token.len() <= self.context.config.auth.jwt_max_bytes
            && token.bytes().all(|byte| byte.is_ascii_graphic());
        if !plausible {
            return Err(TokenError::Text.into());
        }
        match (&self.jwt, &self.introspection) {
            (Some(jwt), _) if looks_signed(token) => {
                let claims = jwt.judge(token, &self.context.tasks).await?;
                self.stand_for(&claims, "jwt", None, from).await
            }
            (_, Some(introspection)) => {
                let claims = introspection
                    .judge(token, from, &self.context.tasks)
                    .await?;
                let token = Some(Secret::from(token));
                self.stand_for(&claims, "oauth", token, from).await
            }
            (_, None) => Err(TokenError::Shape.into()),
        }
    }

    /// The caller that claims identify. Its principal contains a colon, unlike any credential's id.
    async fn stand_for(
        &self,
        claims: &TokenClaims,
        kind: &str,
        recheck: Option<Secret>,
        from: Option<IpAddr>,
    ) -> Result<Caller> {
        // There is no role for the operator: a tenant's issuer must not appoint one.
        let role = RoleName::parse(&claims.role).ok_or(TokenError::Claim("role"))?;
        let auth = &self.context.config.auth;
        let (allowed, key) = match &recheck {
            None => (auth.jwt_allow_unbound, "auth.jwt_allow_unbound"),
            Some(_) => (
                auth.introspection_allow_unbound,
                "auth.introspection_allow_unbound",
            ),
        };
        // A misspelt claim must not make a token that may act as anybody.
        if role != RoleName::Admin && claims.id.is_none() && !allowed {
            return Err(TokenError::Unbound(key).into());
        }
        if !self.tenants.is_active(&claims.tenant).await? {
            return Err(TokenError::Tenant.into());
        }
        let revoked = self.revoked.include(&claims.tenant, &claims.identity);
        if revoked.await? {
            return Err(TokenError::Revoked.into());
        }
        let origin = CallerIdentity {
            tenant: claims.tenant.clone(),
            principal: format!("{kind}:{}", claims.subject),
            issuer: claims.issuer.clone(),
            expires_at: claims.expires_at,
            recheck,
            token: Some(Arc::new(claims.identity.clone())),
            profile: CredentialProfile::Strict,
            from,
        };
        Caller::in_role(role, origin, claims.id.as_deref())
    }

    pub async fn refresh_issuer_keys(&self) {
        if let Some(jwt) = &self.jwt {
            jwt.refresh().await;
        }
    }

    /// Rechecks the opaque tokens of live channels. Closes the channels whose token is no longer
    /// valid, or was last found valid too long ago.
    pub async fn recheck_channels(&self) {
        let Some(introspection) = &self.introspection else {
            return;
        };
        let tokens = self.channels.registry.tokens();
        // A new token was found valid when its channel was opened.
        let before = std::mem::take(&mut *self.confirmed.lock());
        let now = self.context.clock.now();
        self.confirmed.lock().extend(tokens.iter().map(|token| {
            let at = before.get(token).copied().unwrap_or(now);
            (token.clone(), at)
        }));
        let tasks = &self.context.tasks;
        futures_util::stream::iter(tokens)
            .for_each_concurrent(RECHECKED_AT_ONCE, async |token| {
                let judged = introspection.judge(token.expose(), None, tasks);
                let ended = match judged.await {
                    Ok(_) => {
                        let now = self.context.clock.now();
                        self.confirmed.lock().insert(token.clone(), now);
                        false
                    }
                    Err(Error::InvalidToken) => true,
                    // A token that cannot be checked now keeps its channel for a grace period.
                    Err(_) => self.is_unconfirmed(&token),
                };
                if ended {
                    let registry = &self.channels.registry;
                    registry.close_ended(|channel| channel.recheck.as_ref() == Some(&token));
                }
            })
            .await;
    }

    fn is_unconfirmed(&self, token: &Secret) -> bool {
        let grace = Duration::from_secs(self.context.config.auth.introspection_grace_seconds);
        let at = self.confirmed.lock().get(token).copied();
        at.is_some_and(|at| self.context.clock.now().inner() - at.inner() > grace)
    }
}

/// How often channels' tokens are rechecked: half the cache's lifetime, since cached answers age
/// too.
pub(in crate::gateway) fn recheck_every(config: &Auth) -> Duration {
    Duration::from_secs((config.introspection_cache_seconds / 2).max(1))
}
