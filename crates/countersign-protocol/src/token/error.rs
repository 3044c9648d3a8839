//! Why a token is refused.

use crate::error::Error;

/// Why a token is refused. For the log alone: the caller learns only that it was. Holds nothing of
/// the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("it is not three parts of base64url")]
    Shape,
    #[error("its header does not conform")]
    Header,
    #[error("its header says that it is another kind of token")]
    Type,
    #[error("its header names critical extensions")]
    Critical,
    #[error("its algorithm is not taken here, or is not the key's")]
    Algorithm,
    #[error("it is signed with a key that is not among the issuer's")]
    UnknownKey,
    #[error("it names no key, and there are several")]
    AmbiguousKey,
    #[error("its signature does not verify")]
    Signature,
    #[error("its claims are not a strict JSON object")]
    Claims,
    #[error("its {0} is missing or does not conform")]
    Claim(&'static str),
    #[error("it is an ID token, which tells a client who signed in and gives no access")]
    IdToken,
    #[error("it is valid for longer than auth.jwt_max_lifetime_seconds")]
    Lifetime,
    #[error("it does not say which id it may act as, and {0} is off")]
    Unbound(&'static str),
    #[error("it was revoked")]
    Revoked,
    #[error("it has expired")]
    Expired,
    #[error("it is not valid yet")]
    NotYet,
    #[error("the authorization server says that it is not active")]
    Inactive,
    #[error("its tenant does not exist or is disabled")]
    Tenant,
    #[error("it is too long, or no token at all")]
    Text,
}

/// The caller learns only that the token was refused; the log has the reason, never the token.
impl From<TokenError> for Error {
    fn from(why: TokenError) -> Self {
        tracing::debug!(%why, "a token was refused");
        Self::InvalidToken
    }
}
