//! A JWS in compact form: its header, and the parts that are signed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::error::TokenError;
use crate::json;
use crate::words::words;

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

/// Keys that a token embeds or points to are ignored.
#[derive(Debug)]
pub struct TokenHeader {
    pub algorithm: Algorithm,
    pub key_id: Option<String>,
}

/// A signed token whose signature has not been checked yet.
pub struct SignedToken<'a> {
    pub header: TokenHeader,
    pub(super) signed: &'a str,
    pub(super) signature: Vec<u8>,
    payload: Vec<u8>,
}

/// Whether a token has the shape of a JWS: three parts of base64url, the last of which may be
/// empty.
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
