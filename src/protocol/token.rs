//! Bearer tokens from elsewhere: a JWS in compact form, the keys that verify it, and the claims that make a caller of it.
//! All JSON is strict, so that a token means one thing only; the time comes in as a parameter.

mod claims;
mod key;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

pub use self::claims::{ClaimNames, Claims, Rules, judge_claims, judge_introspection};
pub use self::key::{KeySet, SharedSecret};
use super::json;

/// How a token may be signed. There is no `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[expect(missing_docs, reason = "each is the algorithm it is named after")]
pub enum Algorithm {
    #[serde(rename = "RS256")]
    Rs256,
    #[serde(rename = "RS384")]
    Rs384,
    #[serde(rename = "RS512")]
    Rs512,
    #[serde(rename = "PS256")]
    Ps256,
    #[serde(rename = "PS384")]
    Ps384,
    #[serde(rename = "PS512")]
    Ps512,
    #[serde(rename = "ES256")]
    Es256,
    #[serde(rename = "ES384")]
    Es384,
    #[serde(rename = "EdDSA")]
    EdDsa,
    #[serde(rename = "HS256")]
    Hs256,
}

impl Algorithm {
    pub const ALL: [Self; 10] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
        Self::Hs256,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
            Self::Hs256 => "HS256",
        }
    }

    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }
}

/// Why a token is not taken: for the log alone, since a caller is told nothing but that it was not. Holds none of the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Not a JWS in compact form.
    #[error("it is not three parts of base64url")]
    Shape,
    /// A header that is not strict JSON, or lacks what it must say.
    #[error("its header does not conform")]
    Header,
    /// Extensions that must be understood, and are not.
    #[error("its header names critical extensions")]
    Critical,
    /// An algorithm that is not on the list, or is not the key's.
    #[error("its algorithm is not taken here, or is not the key's")]
    Algorithm,
    /// A key that is not among the issuer's.
    #[error("it is signed with a key that is not among the issuer's")]
    UnknownKey,
    /// It names no key, and more than one would do.
    #[error("it names no key, and there are several")]
    AmbiguousKey,
    /// The signature is not the key's.
    #[error("its signature does not verify")]
    Signature,
    /// Claims that are not a strict JSON object.
    #[error("its claims are not a strict JSON object")]
    Claims,
    /// A claim that is missing or does not conform.
    #[error("its {0} is missing or does not conform")]
    Claim(&'static str),
    #[error("it has expired")]
    Expired,
    /// Its time has not come.
    #[error("it is not valid yet")]
    NotYet,
    /// The authorization server says it is not good.
    #[error("the authorization server says that it is not active")]
    Inactive,
    /// A tenant that does not exist, or is disabled.
    #[error("its tenant does not exist or is disabled")]
    Tenant,
    /// Longer than is looked at, or with characters that no token has.
    #[error("it is too long, or no token at all")]
    Text,
}

/// What a token says about its own signature. Keys that it brings along, or points to, are not looked at.
#[derive(Debug)]
pub struct Header {
    pub algorithm: Algorithm,
    pub key_id: Option<String>,
}

/// A signed token, taken apart and not yet believed.
pub struct Jws<'a> {
    pub header: Header,
    signed: &'a str,
    signature: Vec<u8>,
    payload: Vec<u8>,
}

/// Whether a token has the shape of a JWS: three parts of base64url, the last of which may be empty.
#[must_use]
pub fn looks_signed(token: &str) -> bool {
    let base64url = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let parts: Vec<&str> = token.splitn(4, '.').collect();
    match parts.as_slice() {
        [header, payload, signature] => {
            !header.is_empty()
                && !payload.is_empty()
                && [header, payload, signature]
                    .iter()
                    .all(|part| part.bytes().all(base64url))
        }
        _ => false,
    }
}

impl<'a> Jws<'a> {
    pub fn parse(token: &'a str) -> Result<Self, Refused> {
        let (signed, signature) = token.rsplit_once('.').ok_or(Refused::Shape)?;
        let (header, payload) = signed.split_once('.').ok_or(Refused::Shape)?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| Refused::Shape);
        Ok(Self {
            header: Header::parse(&decode(header)?)?,
            signed,
            signature: decode(signature)?,
            payload: decode(payload)?,
        })
    }

    /// The claims, for those who have checked the signature.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }
}

impl Header {
    fn parse(bytes: &[u8]) -> Result<Self, Refused> {
        let document = json::parse(bytes).map_err(|_| Refused::Header)?;
        let object = document.as_object().ok_or(Refused::Header)?;
        if object.get("crit").is_some() {
            return Err(Refused::Critical);
        }
        let name = object.get("alg").and_then(|node| node.as_str());
        let algorithm = Algorithm::parse(name.ok_or(Refused::Header)?).ok_or(Refused::Algorithm)?;
        let key_id = match object.get("kid") {
            None => None,
            Some(node) => Some(node.as_str().ok_or(Refused::Header)?.to_owned()),
        };
        Ok(Self { algorithm, key_id })
    }
}
