//! Generates API keys, and codes that bind certificates. The random secret is shown once and stored
//! only as its SHA-256.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use crate::gateway::error::{Error, Result};
use crate::protocol::credential::{CODE_PREFIX, KEY_PREFIX};
use crate::protocol::id::CredentialId;

pub struct FreshKey {
    pub id: CredentialId,
    pub key: String,
    /// SHA-256 of its secret.
    pub hash: [u8; 32],
}

/// Random bytes from the operating system.
pub fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| {
        tracing::error!(%error, "the system gave no randomness");
        Error::Internal
    })?;
    Ok(bytes)
}

/// Random bytes in base64url.
pub fn random_text<const N: usize>() -> Result<String> {
    Ok(URL_SAFE_NO_PAD.encode(random::<N>()?))
}

impl FreshKey {
    pub fn generate(id: CredentialId) -> Result<Self> {
        Self::with_prefix(KEY_PREFIX, id)
    }

    /// A code that binds a certificate to a credential.
    pub fn code(id: CredentialId) -> Result<Self> {
        Self::with_prefix(CODE_PREFIX, id)
    }

    fn with_prefix(prefix: &str, id: CredentialId) -> Result<Self> {
        let secret = random_text::<32>()?;
        Ok(Self {
            key: format!("{prefix}{id}_{secret}"),
            hash: Sha256::digest(&secret).into(),
            id,
        })
    }
}
