//! `Authorization: Basic`: an API key in two halves, for clients that can do nothing else. Off unless configured.

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

use super::ApiKey;
use crate::protocol::id::{CredentialId, TextId as _};

/// base64 that tolerates missing padding, as clients differ in it.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What stands behind `Basic`, decoded: a credential's id and its secret, or its whole key in place of the secret.
pub(super) struct UserPassword(String);

impl UserPassword {
    pub(super) fn decode(encoded: &str) -> Option<Self> {
        let bytes = LENIENT.decode(encoded).ok()?;
        String::from_utf8(bytes).ok().map(Self)
    }

    /// The API key it amounts to.
    pub(super) fn key(&self) -> Option<ApiKey<'_>> {
        let (user, password) = self.0.split_once(':')?;
        let id = CredentialId::parse(user)?;
        match ApiKey::parse(password) {
            Some(whole) if whole.id == id => Some(whole),
            _ => Some(ApiKey {
                id,
                secret: password,
            }),
        }
    }
}
