//! `[auth]`: ways to authenticate besides API keys. An incomplete or ambiguous configuration is an
//! error: a shared secret is never combined with public keys, and tokens and keys are never sent
//! unencrypted.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::error::ConfigError;
use super::require::{require, require_encrypted, require_length};
use super::secret::Secret;
use crate::protocol::token::Algorithm;

/// Revocations of tokens are kept for at least as long as a token lives.
const MAX_LIFETIME_SECONDS: u64 = 365 * 24 * 3_600;

/// Longest time that an introspection response may be cached.
const MAX_CACHE_SECONDS: u64 = 60;

section! {
    Auth {
        /// The `iss` that tokens must have.
        jwt_issuer: String = String::new(),
        /// The audience that their `aud` must contain.
        jwt_audience: String = String::new(),
        jwt_jwks_file: Option<PathBuf> = None,
        jwt_jwks_url: String = String::new(),
        /// A secret shared with the issuer, for HS256.
        jwt_secret: Secret = Secret::default(),
        jwt_secret_file: Option<PathBuf> = None,
        jwt_algorithms: Vec<Algorithm> = vec![Algorithm::Rs256, Algorithm::Es256, Algorithm::EdDsa],
        /// Allowed difference between the issuer's clock and ours.
        jwt_leeway_seconds: u64 = 60,
        /// How long a token may be valid, from its issue to its expiry.
        jwt_max_lifetime_seconds: u64 = 24 * 3_600,
        jwt_tenant_claim: String = "tenant".into(),
        jwt_role_claim: String = "role".into(),
        /// The claim that names the one id the token may act as.
        jwt_id_claim: String = "countersign_id".into(),
        /// Whether a token without that claim is accepted, and then acts as any id of its role.
        jwt_allow_unbound: bool = false,
        introspection_url: String = String::new(),
        introspection_client_id: String = String::new(),
        introspection_client_secret: Secret = Secret::default(),
        introspection_client_secret_file: Option<PathBuf> = None,
        /// The audience that the `aud` of an introspected token must contain; not checked if empty.
        introspection_audience: String = String::new(),
        /// Whether an introspected token without the id claim is accepted, and then acts as any id
        /// of its role.
        introspection_allow_unbound: bool = false,
        introspection_cache_seconds: u64 = 60,
        /// Whether `Authorization: Basic` with a credential's id and secret is accepted.
        basic: bool = false,
    }
    constants {
        /// How often, at least, the issuer's keys are read again.
        jwt_jwks_refresh_seconds: u64 = 300,
        jwt_max_bytes: usize = 8 << 10,
        introspection_cache_entries: usize = 10_000,
        /// How long a response may take before the caller gets 503.
        introspection_timeout_ms: u64 = 2_000,
        /// How long channels stay open without a response about their token.
        introspection_grace_seconds: u64 = 300,
    }
}

impl Auth {
    pub fn jwt(&self) -> bool {
        !self.jwt_issuer.is_empty()
    }

    pub fn introspection(&self) -> bool {
        !self.introspection_url.is_empty()
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        for (key, name) in [
            ("auth.jwt_tenant_claim", &self.jwt_tenant_claim),
            ("auth.jwt_role_claim", &self.jwt_role_claim),
            ("auth.jwt_id_claim", &self.jwt_id_claim),
        ] {
            require(!name.is_empty(), key, "must name a claim")?;
        }
        self.validate_jwt()?;
        self.validate_introspection()
    }

    fn validate_jwt(&self) -> Result<(), ConfigError> {
        let sources = [
            self.jwt_jwks_file.is_some(),
            !self.jwt_jwks_url.is_empty(),
            !self.jwt_secret.is_empty(),
        ];
        let sources = sources.into_iter().filter(|given| *given).count();
        if !self.jwt() && self.jwt_audience.is_empty() && sources == 0 {
            return Ok(());
        }
        require(self.jwt(), "auth.jwt_issuer", "is needed for JWT")?;
        require(
            !self.jwt_audience.is_empty(),
            "auth.jwt_audience",
            "is needed for JWT",
        )?;
        require(
            sources == 1,
            "auth.jwt_jwks_url",
            "set exactly one of auth.jwt_jwks_url, auth.jwt_jwks_file and auth.jwt_secret",
        )?;
        if !self.jwt_jwks_url.is_empty() {
            require_encrypted("auth.jwt_jwks_url", &self.jwt_jwks_url)?;
        }
        require_length("auth.jwt_secret", &self.jwt_secret)?;
        // A public key must never be used as a shared secret, nor the reverse.
        let shared = !self.jwt_secret.is_empty();
        let fitting = |algorithm: &Algorithm| (*algorithm == Algorithm::Hs256) == shared;
        require(
            !self.jwt_algorithms.is_empty() && self.jwt_algorithms.iter().all(fitting),
            "auth.jwt_algorithms",
            "must be [\"HS256\"] with auth.jwt_secret, and anything but HS256 without",
        )?;
        require(
            self.jwt_leeway_seconds <= 300,
            "auth.jwt_leeway_seconds",
            "must be at most 300",
        )?;
        require(
            (1..=MAX_LIFETIME_SECONDS).contains(&self.jwt_max_lifetime_seconds),
            "auth.jwt_max_lifetime_seconds",
            "must lie between 1 and 31536000",
        )
    }

    fn validate_introspection(&self) -> Result<(), ConfigError> {
        let named = !self.introspection_client_id.is_empty();
        let secret = !self.introspection_client_secret.is_empty();
        if !self.introspection() && !named && !secret && self.introspection_audience.is_empty() {
            return Ok(());
        }
        require(
            self.introspection(),
            "auth.introspection_url",
            "is needed for introspection",
        )?;
        require_encrypted("auth.introspection_url", &self.introspection_url)?;
        require(
            named && secret,
            "auth.introspection_client_id",
            "this and auth.introspection_client_secret are needed for introspection",
        )?;
        require(
            self.introspection_cache_seconds <= MAX_CACHE_SECONDS,
            "auth.introspection_cache_seconds",
            "must be at most 60",
        )
    }
}
