//! Secrets in a profile, as text.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::error::ProfileError;

/// A secret that is wiped when dropped, and never printed.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    pub fn expose(&self) -> &str {
        &self.0
    }

    pub(super) fn of_key(key: &[u8; 32]) -> Self {
        Self::new(URL_SAFE_NO_PAD.encode(key))
    }

    pub(super) fn key(&self, member: &'static str) -> Result<Zeroizing<[u8; 32]>, ProfileError> {
        let mut key = Zeroizing::new([0; 32]);
        match URL_SAFE_NO_PAD.decode_slice(self.expose(), key.as_mut_slice()) {
            Ok(32) => Ok(key),
            _ => Err(ProfileError::Damaged(member)),
        }
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(redacted)")
    }
}
