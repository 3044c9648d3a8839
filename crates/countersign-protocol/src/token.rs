//! External bearer tokens: parses a JWS in compact form, checks its signature, and judges its claims. Written on ring by
//! hand because jsonwebtoken has no ring backend and no injectable clock, and does not read JSON strictly.

mod claims;
mod key;
mod revocation;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

pub use self::claims::{ClaimNames, TokenClaims, TokenRules, judge_claims, judge_introspection};
pub use self::key::{KeySet, SharedSecret};
pub use self::revocation::{
    RevocationKind, RevocationLine, RevocationRequest, TokenIdentity, TokenRevocations,
};
use super::json;
use super::words::words;

words! {
    /// How a token may be signed. There is no `none`.
    Algorithm {
        Rs256 = "RS256",
        Rs384 = "RS384",
        Rs512 = "RS512",
        Ps256 = "PS256",
        Ps384 = "PS384",
        Ps512 = "PS512",
        Es256 = "ES256",
        Es384 = "ES384",
        EdDsa = "EdDSA",
        Hs256 = "HS256",
    }
}

/// Why a token is refused. For the log alone: the caller learns only that it was. Holds nothing of the token.
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

/// Keys that a token embeds or points to are ignored.
#[derive(Debug)]
pub struct TokenHeader {
    pub algorithm: Algorithm,
    pub key_id: Option<String>,
}

/// A signed token whose signature has not been checked yet.
pub struct SignedToken<'a> {
    pub header: TokenHeader,
    signed: &'a str,
    signature: Vec<u8>,
    payload: Vec<u8>,
}

/// Whether a token has the shape of a JWS: three parts of base64url, the last of which may be empty.
pub fn looks_signed(token: &str) -> bool {
    let base64url = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let parts: Vec<&str> = token.splitn(4, '.').collect();
    let [header, payload, _] = parts.as_slice() else {
        return false;
    };
    let filled = !header.is_empty() && !payload.is_empty();
    filled && parts.iter().all(|part| part.bytes().all(base64url))
}

impl<'a> SignedToken<'a> {
    pub fn parse(token: &'a str) -> Result<Self, TokenError> {
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenError::Shape)?;
        let (header, payload) = signed.split_once('.').ok_or(TokenError::Shape)?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenError::Shape);
        Ok(Self {
            header: TokenHeader::parse(&decode(header)?)?,
            signed,
            signature: decode(signature)?,
            payload: decode(payload)?,
        })
    }

    /// The claims. Check the signature before using them.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }
}

/// RFC 9068 has `at+jwt` for access tokens; many issuers write `JWT`, or nothing.
fn check_type(kind: &str) -> Result<(), TokenError> {
    let kind = kind.to_ascii_lowercase();
    match kind.strip_prefix("application/").unwrap_or(&kind) {
        "jwt" | "at+jwt" => Ok(()),
        _ => Err(TokenError::Type),
    }
}

impl TokenHeader {
    fn parse(bytes: &[u8]) -> Result<Self, TokenError> {
        let document = json::parse(bytes).map_err(|_| TokenError::Header)?;
        let object = document.as_object().ok_or(TokenError::Header)?;
        if object.get("crit").is_some() {
            return Err(TokenError::Critical);
        }
        if let Some(kind) = object.get("typ") {
            check_type(kind.as_str().ok_or(TokenError::Header)?)?;
        }
        let name = object.get("alg").and_then(|node| node.as_str());
        let algorithm =
            Algorithm::parse(name.ok_or(TokenError::Header)?).ok_or(TokenError::Algorithm)?;
        let key_id = match object.get("kid") {
            None => None,
            Some(node) => Some(node.as_str().ok_or(TokenError::Header)?.to_owned()),
        };
        Ok(Self { algorithm, key_id })
    }
}
