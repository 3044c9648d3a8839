//! Checks of values that several sections need.

use std::net::IpAddr;

use http::Uri;

use super::error::ConfigError;
use super::secret::Secret;

/// For HS256 as long as the hash, as RFC 7518 requires.
const MIN_SECRET_BYTES: usize = 32;

/// Fails with `problem` unless `holds`.
pub(super) fn require(holds: bool, key: &'static str, problem: &str) -> Result<(), ConfigError> {
    if holds {
        return Ok(());
    }
    Err(ConfigError::invalid(key, problem))
}

/// Fails if a secret is set but too short.
pub(super) fn require_length(key: &'static str, secret: &Secret) -> Result<(), ConfigError> {
    let long = secret.is_empty() || secret.expose().len() >= MIN_SECRET_BYTES;
    require(long, key, "must have at least 32 characters")
}

/// Rejects a URL over which keys or tokens would be sent unencrypted.
pub(super) fn require_encrypted(key: &'static str, url: &str) -> Result<(), ConfigError> {
    let safe = url.parse::<Uri>().is_ok_and(|url| {
        let host = url.host().unwrap_or_default();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let here = bare == "localhost"
            || bare
                .parse::<IpAddr>()
                .is_ok_and(|address| address.is_loopback());
        let plain_here = url.scheme_str() == Some("http") && here;
        // User and password before an @ would end up in logs.
        let authority = url.authority();
        let bare_authority = authority.is_some_and(|name| !name.as_str().contains('@'));
        bare_authority && !host.is_empty() && (url.scheme_str() == Some("https") || plain_here)
    });
    require(
        safe,
        key,
        "must be an https URL without user and password (http on loopback only)",
    )
}
