//! Credentials as they are presented: an API key whole, or in the two halves of `Basic`. What they are worth is not judged
//! here.

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

use super::id::{CredentialId, TextId as _};

pub const KEY_PREFIX: &str = "csk_";

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RoleName {
    Enforcer,
    Approver,
    Admin,
}

impl RoleName {
    pub const ALL: [Self; 3] = [Self::Enforcer, Self::Approver, Self::Admin];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enforcer => "enforcer",
            Self::Approver => "approver",
            Self::Admin => "admin",
        }
    }

    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == word)
    }
}

/// base64 that tolerates missing padding, as clients differ in it.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// An API key, `csk_<id>_<secret>`, split. The secret is never printed.
pub struct ApiKey<'a> {
    pub id: CredentialId,
    pub secret: &'a str,
}

impl<'a> ApiKey<'a> {
    /// Splits a key. The secret may hold underscores, the id does not.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(KEY_PREFIX)?.split_once('_')?;
        Some(Self {
            id: CredentialId::parse(id)?,
            secret,
        })
    }
}

/// What stands behind `Basic`, decoded: a credential's id and its secret, or its whole key in place of the secret.
pub struct UserPassword(String);

impl UserPassword {
    #[must_use]
    pub fn decode(encoded: &str) -> Option<Self> {
        let bytes = LENIENT.decode(encoded).ok()?;
        String::from_utf8(bytes).ok().map(Self)
    }

    #[must_use]
    pub fn key(&self) -> Option<ApiKey<'_>> {
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
