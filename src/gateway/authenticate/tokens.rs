//! External tokens: chooses how each is verified, and makes a caller of its claims. Every refusal reads the same to the
//! caller; the log has the reason, never the token.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio_util::sync::CancellationToken;

use super::Authenticator;
use super::introspection::TokenIntrospection;
use super::jwt::JwtVerifier;
use super::revocations::RevokedTokens;
use super::tenants::TenantCache;
use super::token_quota::TokenQuota;
use crate::clock::Clock;
use crate::config::{Auth, Config, Secret};
use crate::gateway::caller::{Caller, CallerIdentity};
use crate::gateway::error::{Error, Result};
use crate::outbound::OutboundClient;
use crate::protocol::credential::RoleName;
use crate::protocol::timestamp::Timestamp;
use crate::protocol::token::{ClaimNames, TokenClaims, TokenError, looks_signed};
use crate::telemetry::trace;

/// Tokens of live channels that are rechecked at once: few, as it is not urgent.
const RECHECKED_AT_ONCE: usize = 8;

pub(in crate::gateway) struct TokenVerifier {
    jwt: Option<JwtVerifier>,
    introspection: Option<Arc<TokenIntrospection>>,
    /// When the opaque tokens of live channels were last found valid.
    confirmed: Mutex<HashMap<Secret, Timestamp>>,
    pub(super) tenants: TenantCache,
    pub(super) revoked: RevokedTokens,
}

impl TokenVerifier {
    pub(in crate::gateway) fn new(
        config: &Config,
        clock: &Clock,
        stop: &CancellationToken,
    ) -> std::io::Result<Self> {
        let quota = TokenQuota::new(config);
        let config = &config.auth;
        let urls = [&config.jwt_jwks_url, &config.introspection_url];
        let outbound = OutboundClient::new(urls.iter().any(|url| url.starts_with("https:")))?;
        let outbound = outbound.traced(trace::context);
        let names = ClaimNames {
            tenant: config.jwt_tenant_claim.clone(),
            role: config.jwt_role_claim.clone(),
            id: config.jwt_id_claim.clone(),
        };
        Ok(Self {
            jwt: JwtVerifier::new(config, &names, &outbound, clock, stop),
            introspection: TokenIntrospection::new(config, &names, &outbound, clock, quota)
                .map(Arc::new),
            confirmed: Mutex::default(),
            tenants: TenantCache::default(),
            revoked: RevokedTokens::default(),
        })
    }

    /// Whether tokens of others are accepted at all.
    pub(super) fn any(&self) -> bool {
        self.jwt.is_some() || self.introspection.is_some()
    }
}

impl Authenticator {
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

    /// The caller of a token that the gateway did not issue.
    pub(super) async fn by_foreign_token(
        &self,
        token: &str,
        from: Option<IpAddr>,
    ) -> Result<Caller> {
        let plausible = !token.is_empty()
            && token.len() <= self.context.config.auth.jwt_max_bytes
            && token.bytes().all(|byte| byte.is_ascii_graphic());
        if !plausible {
            return Err(TokenError::Text.into());
        }
        match (&self.tokens.jwt, &self.tokens.introspection) {
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

    /// The caller that claims identify. Its principal contains a colon, which no credential's id does, so they never clash.
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
        if !self.tenant_is_active(&claims.tenant).await? {
            return Err(TokenError::Tenant.into());
        }
        if self.is_revoked(&claims.tenant, &claims.identity).await? {
            return Err(TokenError::Revoked.into());
        }
        let origin = CallerIdentity {
            tenant: claims.tenant.clone(),
            principal: format!("{kind}:{}", claims.subject),
            issuer: claims.issuer.clone(),
            expires_at: claims.expires_at,
            recheck,
            token: Some(Arc::new(claims.identity.clone())),
            from,
        };
        Caller::in_role(role, origin, claims.id.as_deref())
    }

    pub(in crate::gateway) async fn refresh_issuer_keys(&self) -> Result<()> {
        if let Some(jwt) = &self.tokens.jwt {
            jwt.refresh().await;
        }
        Ok(())
    }

    /// Rechecks the opaque tokens of live channels, and closes the channels whose token is no longer valid, or was last found
    /// valid too long ago.
    pub(in crate::gateway) async fn recheck_channels(&self) -> Result<()> {
        let Some(introspection) = &self.tokens.introspection else {
            return Ok(());
        };
        let tokens = self.channels.channel_tokens();
        // A new token was found valid when its channel was opened.
        let before = std::mem::take(&mut *self.confirmed());
        let now = self.context.clock.now();
        self.confirmed().extend(tokens.iter().map(|token| {
            let at = before.get(token).copied().unwrap_or(now);
            (token.clone(), at)
        }));
        let tasks = &self.context.tasks;
        futures_util::stream::iter(tokens)
            .for_each_concurrent(RECHECKED_AT_ONCE, async |token| {
                let judged = introspection.judge(token.expose(), None, tasks);
                match judged.await {
                    Ok(_) => {
                        self.confirmed().insert(token, self.context.clock.now());
                    }
                    Err(Error::InvalidToken) => self.channels.close_channels_by(&token),
                    // A token that cannot be checked now keeps its channel for a grace period.
                    Err(_) if self.is_unconfirmed(&token) => {
                        self.channels.close_channels_by(&token);
                    }
                    Err(_) => {}
                }
            })
            .await;
        Ok(())
    }

    fn confirmed(&self) -> MutexGuard<'_, HashMap<Secret, Timestamp>> {
        let confirmed = &self.tokens.confirmed;
        confirmed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_unconfirmed(&self, token: &Secret) -> bool {
        let grace = Duration::from_secs(self.context.config.auth.introspection_grace_seconds);
        let at = self.confirmed().get(token).copied();
        at.is_some_and(|at| self.context.clock.now().inner() - at.inner() > grace)
    }
}

/// How often the tokens of live channels are rechecked. Half the cache's lifetime, since cached answers age as well.
pub(in crate::gateway) fn recheck_every(config: &Auth) -> Duration {
    Duration::from_secs((config.introspection_cache_seconds / 2).max(1))
}
