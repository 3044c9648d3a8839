//! JSON Web Tokens: verifies the signature by the issuer's keys or a shared secret, then the
//! claims.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::config::Auth;
use crate::gateway::error::{Error, Result};
use crate::gateway::identity::authenticate::jwks::{Jwks, KeySource};
use crate::outbound::OutboundClient;
use crate::protocol::token::{
    Algorithm, ClaimNames, SharedSecret, SignedToken, TokenClaims, TokenError, TokenRules,
    judge_claims,
};

/// One or the other, so that a public key is never used as a secret.
enum JwtKeys {
    Shared(SharedSecret),
    Issuer(Arc<Jwks>),
}

pub(in crate::gateway) struct JwtVerifier {
    algorithms: Vec<Algorithm>,
    rules: TokenRules,
    keys: JwtKeys,
    clock: Clock,
}

impl JwtVerifier {
    /// None if JWTs are not configured.
    pub(in crate::gateway) fn new(
        config: &Auth,
        names: &ClaimNames,
        outbound: &OutboundClient,
        clock: &Clock,
        stop: &CancellationToken,
    ) -> Option<Self> {
        if !config.jwt() {
            return None;
        }
        let keys = if config.jwt_secret.is_empty() {
            let source = match &config.jwt_jwks_file {
                Some(path) => KeySource::File(path.clone()),
                None => KeySource::Url(config.jwt_jwks_url.parse().ok()?),
            };
            let (outbound, clock, stop) = (outbound.clone(), clock.clone(), stop.clone());
            JwtKeys::Issuer(Arc::new(Jwks::new(source, outbound, clock, stop)))
        } else {
            JwtKeys::Shared(SharedSecret::new(config.jwt_secret.expose().as_bytes()))
        };
        Some(Self {
            algorithms: config.jwt_algorithms.clone(),
            rules: TokenRules {
                issuer: config.jwt_issuer.clone(),
                audience: config.jwt_audience.clone(),
                leeway: Duration::from_secs(config.jwt_leeway_seconds),
                max_lifetime: Duration::from_secs(config.jwt_max_lifetime_seconds),
                names: names.clone(),
            },
            keys,
            clock: clock.clone(),
        })
    }

    pub(in crate::gateway) async fn judge(
        &self,
        token: &str,
        tasks: &TaskTracker,
    ) -> Result<TokenClaims> {
        let token = SignedToken::parse(token)?;
        if !self.algorithms.contains(&token.header.algorithm) {
            return Err(TokenError::Algorithm.into());
        }
        match &self.keys {
            JwtKeys::Shared(secret) => secret.check(&token)?,
            JwtKeys::Issuer(keys) => check(keys, &token, tasks).await?,
        }
        Ok(judge_claims(
            token.payload(),
            &self.rules,
            self.clock.now(),
        )?)
    }

    pub(in crate::gateway) async fn refresh(&self) {
        if let JwtKeys::Issuer(keys) = &self.keys {
            keys.refresh().await;
        }
    }
}

/// Checks a token with the issuer's keys. They are read again if the token's key is missing.
async fn check(keys: &Arc<Jwks>, token: &SignedToken<'_>, tasks: &TaskTracker) -> Result<()> {
    if let Some(judged) = keys.check(token) {
        return Ok(judged?);
    }
    // A task of its own, so that the read completes even if this caller disconnects.
    let asking = Arc::clone(keys);
    let asked = tasks.spawn(async move { asking.ask().await }).await;
    asked.map_err(|_| Error::Unavailable)?;
    match keys.check(token) {
        Some(judged) => Ok(judged?),
        None => Err(keys.not_found()),
    }
}
