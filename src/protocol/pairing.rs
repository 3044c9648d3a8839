//! Pairing an enforcer with an approver: the code a person types, the nonce that stands for the attempt, the token that
//! routes afterwards, and the bodies they travel in. None of the three is ever printed by a log.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::id::{ApproverId, EnforcerId};
use super::json::Node;
use super::reader::{Invalid, Reader};

/// Longest label or name.
pub const MAX_LABEL_CHARS: usize = 1_024;
/// Longest public key: keys of any kind fit, a document does not.
pub const MAX_KEY_CHARS: usize = 8_192;
const CODE_CHARS: usize = 8;
const BITS: u32 = 5;
/// Crockford's base32, in which no two characters look alike.
const ALPHABET: [char; 32] = [
    '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'J',
    'K', 'M', 'N', 'P', 'Q', 'R', 'S', 'T', 'V', 'W', 'X', 'Y', 'Z',
];

/// A pairing code: 40 bits, which a person reads from one screen and types into another.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Code([u8; 5]);

impl Code {
    #[must_use]
    pub fn from_bytes(bytes: [u8; 5]) -> Self {
        Self(bytes)
    }

    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 5] {
        &self.0
    }

    /// The code that was typed, ignoring case and dashes, with O read as 0, I and L as 1.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (mut bits, mut count) = (0_u64, 0);
        for typed in text.chars().filter(|typed| *typed != '-') {
            let meant = match typed.to_ascii_uppercase() {
                'O' => '0',
                'I' | 'L' => '1',
                other => other,
            };
            let value = ALPHABET.iter().position(|known| *known == meant)?;
            count += 1;
            if count > CODE_CHARS {
                return None;
            }
            bits = bits << BITS | u64::try_from(value).ok()?;
        }
        let [_, _, _, bytes @ ..] = bits.to_be_bytes();
        (count == CODE_CHARS).then_some(Self(bytes))
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self
            .0
            .iter()
            .fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        let characters = (0..CODE_CHARS).rev().map(|place| {
            let shifted = bits >> (BITS * u32::try_from(place).unwrap_or_default());
            let value = usize::try_from(shifted % 32).unwrap_or_default();
            ALPHABET.get(value).copied().unwrap_or('0')
        });
        for (place, character) in characters.enumerate() {
            if place == CODE_CHARS / 2 {
                f.write_str("-")?;
            }
            write!(f, "{character}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code(redacted)")
    }
}

/// What one attempt at pairing is called: 256 random bits, known to its two sides alone.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Nonce(String);

impl Nonce {
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// The nonce, if `text` can be one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        (bytes.len() == 32).then(|| Self(text.to_owned()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nonce(redacted)")
    }
}

/// What stands for a pairing in a submission. Of what is stored, only its hash; any text may be presented as one.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct RoutingToken(String);

impl RoutingToken {
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Its SHA-256.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(&self.0).into()
    }
}

impl fmt::Debug for RoutingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RoutingToken(redacted)")
    }
}

#[derive(Debug)]
pub struct Initiate {
    pub enforcer: EnforcerId,
    pub label: Option<String>,
    pub workspace: Option<String>,
    pub public_key: Option<String>,
}

impl Initiate {
    /// Reads the body of `initiate`.
    pub fn parse(node: &Node<'_>) -> Result<Self, Invalid> {
        let mut reader = Reader::new(node, "")?;
        let initiate = Self {
            enforcer: reader.id("enforcerId")?,
            label: optional_text(&mut reader, "enforcerLabel", MAX_LABEL_CHARS)?,
            workspace: optional_text(&mut reader, "workspaceName", MAX_LABEL_CHARS)?,
            public_key: optional_text(&mut reader, "publicKey", MAX_KEY_CHARS)?,
        };
        reader.finish()?;
        Ok(initiate)
    }
}

#[derive(Debug)]
pub struct Complete {
    /// The attempt; `None` where the text cannot name one.
    pub nonce: Option<Nonce>,
    pub approver: ApproverId,
    pub public_key: Option<String>,
}

impl Complete {
    /// Reads the body of `complete`.
    pub fn parse(node: &Node<'_>) -> Result<Self, Invalid> {
        let mut reader = Reader::new(node, "")?;
        let complete = Self {
            nonce: Nonce::parse(reader.str("nonce")?),
            approver: reader.id("approverId")?,
            public_key: optional_text(&mut reader, "publicKey", MAX_KEY_CHARS)?,
        };
        reader.finish()?;
        Ok(complete)
    }
}

/// Reads the body of `revoke`.
pub fn parse_revoke(node: &Node<'_>) -> Result<RoutingToken, Invalid> {
    let mut reader = Reader::new(node, "")?;
    let token = RoutingToken::new(reader.str("routingToken")?);
    reader.finish()?;
    Ok(token)
}

/// An optional string of at most `max` characters.
fn optional_text(
    reader: &mut Reader<'_, '_>,
    name: &'static str,
    max: usize,
) -> Result<Option<String>, Invalid> {
    let text = reader.optional_str(name)?;
    if text.is_some_and(|text| text.chars().nth(max).is_some()) {
        let expected = format!("a string of at most {max} characters");
        return Err(Invalid::shape(reader.at(name), expected));
    }
    Ok(text.map(str::to_owned))
}
