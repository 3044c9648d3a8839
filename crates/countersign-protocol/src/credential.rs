//! Parses API keys, whole or as the user and password of `Basic`, and the codes that bind
//! certificates. Verification is in `gateway`.

use base64::Engine as _;

use super::id::{CredentialId, TextId as _};
use super::lenient::BASE64;
use super::words::words;

pub const KEY_PREFIX: &str = "csk_";
pub const CODE_PREFIX: &str = "csc_";

words! {
    RoleName {
        Enforcer = "enforcer",
        Approver = "approver",
        Admin = "admin",
    }
    CredentialKind {
        ApiKey = "apiKey",
        /// A client certificate, which its holder binds.
        Certificate = "certificate",
    }
    /// How the messages of a credential's holder are read and answered.
    CredentialProfile {
        /// By the protocol. Always, unless a credential was created otherwise.
        Strict = "strict",
        /// In the older dialect of published client libraries too.
        Compat = "compat",
    }
}

impl CredentialProfile {
    pub fn is_strict(&self) -> bool {
        matches!(self, Self::Strict)
    }

    pub fn is_compat(self) -> bool {
        matches!(self, Self::Compat)
    }
}

/// Length of every secret: 32 bytes in base64url.
const SECRET_CHARS: usize = 43;

/// An API key, `csk_<id>_<secret>`. The secret must not be printed.
pub struct ApiKey<'a> {
    pub id: CredentialId,
    pub secret: &'a str,
}

impl<'a> ApiKey<'a> {
    pub fn parse(text: &'a str) -> Option<Self> {
        let (id, secret) = id_and_secret(text, KEY_PREFIX)?;
        Some(Self { id, secret })
    }

    /// Whether the secret has the right length; one that was copied in part has not.
    pub fn is_complete(&self) -> bool {
        self.secret.len() == SECRET_CHARS
    }
}

/// A code that binds a client certificate once, `csc_<id>_<secret>`. The secret must not be
/// printed.
pub struct BindingCode<'a> {
    pub id: CredentialId,
    pub secret: &'a str,
}

impl<'a> BindingCode<'a> {
    pub fn parse(text: &'a str) -> Option<Self> {
        let (id, secret) = id_and_secret(text, CODE_PREFIX)?;
        Some(Self { id, secret })
    }
}

/// The parts behind the prefix. The secret may contain underscores, the id does not.
fn id_and_secret<'a>(text: &'a str, prefix: &str) -> Option<(CredentialId, &'a str)> {
    let (id, secret) = text.strip_prefix(prefix)?.split_once('_')?;
    Some((CredentialId::parse(id)?, secret))
}

/// The decoded `Basic` credentials: a credential's id and its secret, or the whole key in place of
/// the secret.
pub struct UserPassword(String);

impl UserPassword {
    pub fn decode(encoded: &str) -> Option<Self> {
        let bytes = BASE64.decode(encoded).ok()?;
        String::from_utf8(bytes).ok().map(Self)
    }

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
