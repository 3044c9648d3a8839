//! Ed25519 with strict verification: no small-order keys, no malleable signatures. Texts are
//! base64url.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::VerifyingKey;

use super::lenient::BASE64URL;

/// A well-formed public key that is not of small order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let key = VerifyingKey::from_bytes(bytes.try_into().ok()?).ok()?;
        (!key.is_weak()).then_some(Self(key))
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::from_bytes(&BASE64URL.decode(text).ok()?)
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    pub fn to_text(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.as_bytes())
    }

    pub fn verifies(&self, message: &[u8], signature: &Signature) -> bool {
        self.0.verify_strict(message, &signature.0).is_ok()
    }
}

/// 64 bytes that may be a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature(ed25519_dalek::Signature);

impl Signature {
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 64] = bytes.try_into().ok()?;
        Some(Self(ed25519_dalek::Signature::from_bytes(bytes)))
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::from_bytes(&BASE64URL.decode(text).ok()?)
    }

    pub fn to_bytes(&self) -> [u8; 64] {
        self.0.to_bytes()
    }

    /// Without padding, so that each signature has one spelling.
    pub fn to_text(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0.to_bytes())
    }
}
