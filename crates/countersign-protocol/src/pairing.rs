//! Pairing an enforcer with an approver: the code that a person types, the nonce that identifies
//! the attempt, the token that routes submissions afterwards, and the bodies of the endpoints. None
//! of the three may appear in a log.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::id::{ApproverId, EnforcerId};
use super::json::JsonNode;
use super::reader::{MemberReader, ReadResult};
use super::redacted::redacted;

pub const MAX_LABEL_CHARS: usize = 1_024;
/// Enough for a public key of any kind, too little for a document.
pub const MAX_KEY_CHARS: usize = 8_192;
const MAX_TEAM_CHARS: usize = 64;
const CODE_CHARS: usize = 8;
const BITS: u32 = 5;
/// Crockford's base32: no two characters look alike.
const ALPHABET: &str = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

redacted! {
    PairingCode = "PairingCode(redacted)",
    Nonce = "Nonce(redacted)",
    RoutingToken = "RoutingToken(redacted)",
}

/// A pairing code of 40 bits, which a person reads from one screen and types into another.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PairingCode([u8; 5]);

impl PairingCode {
    pub fn from_bytes(bytes: [u8; 5]) -> Self {
        Self(bytes)
    }

    pub fn as_bytes(&self) -> &[u8; 5] {
        &self.0
    }

    /// Reads a typed code, ignoring case and dashes, with O read as 0, I and L as 1.
    pub fn parse(text: &str) -> Option<Self> {
        let (mut bits, mut count) = (0_u64, 0);
        for typed in text.chars().filter(|typed| *typed != '-') {
            let meant = match typed.to_ascii_uppercase() {
                'O' => '0',
                'I' | 'L' => '1',
                other => other,
            };
            let value = ALPHABET.find(meant)?;
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

impl fmt::Display for PairingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.iter();
        let bits = bytes.fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        let characters = (0..CODE_CHARS).rev().map(|place| {
            let shifted = bits >> (BITS * u32::try_from(place).unwrap_or_default());
            let value = usize::try_from(shifted % 32).unwrap_or_default();
            ALPHABET.chars().nth(value).unwrap_or('0')
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

/// Identifies one attempt at pairing: 256 random bits, known to its two sides alone.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Nonce(String);

impl Nonce {
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(URL_SAFE_NO_PAD.encode(bytes))
    }

    pub fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        (bytes.len() == 32).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Represents a pairing in a submission. Only its hash is stored; any text may be presented as one.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct RoutingToken(String);

impl RoutingToken {
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(&self.0).into()
    }
}

#[derive(Debug)]
pub struct InitiatePairing {
    pub enforcer: EnforcerId,
    pub label: Option<String>,
    pub workspace: Option<String>,
    pub public_key: Option<String>,
}

impl InitiatePairing {
    pub fn parse(node: &JsonNode<'_>) -> ReadResult<Self> {
        let mut reader = MemberReader::new(node, "")?;
        let initiate = Self {
            enforcer: reader.id("enforcerId")?,
            label: reader.optional_label("enforcerLabel", MAX_LABEL_CHARS)?,
            workspace: reader.optional_label("workspaceName", MAX_LABEL_CHARS)?,
            public_key: reader.optional_bounded_str("publicKey", MAX_KEY_CHARS)?,
        };
        reader.finish()?;
        Ok(initiate)
    }
}

#[derive(Debug)]
pub struct CompletePairing {
    /// None if the text cannot be a nonce.
    pub nonce: Option<Nonce>,
    pub approver: ApproverId,
    pub public_key: Option<String>,
    /// An answer for the enforcer alone, in another dialect; not interpreted here.
    pub response: Option<String>,
    /// The team that the enforcer is to be paired with, in place of the approver alone.
    pub team: Option<String>,
}

impl CompletePairing {
    pub fn parse(node: &JsonNode<'_>) -> ReadResult<Self> {
        let mut reader = MemberReader::new(node, "")?;
        let complete = Self {
            nonce: Nonce::parse(reader.str("nonce")?),
            approver: reader.id("approverId")?,
            public_key: reader.optional_bounded_str("publicKey", MAX_KEY_CHARS)?,
            response: None,
            team: reader.optional_bounded_str("teamId", MAX_TEAM_CHARS)?,
        };
        reader.finish()?;
        Ok(complete)
    }
}

pub fn parse_revoke(node: &JsonNode<'_>) -> ReadResult<RoutingToken> {
    let mut reader = MemberReader::new(node, "")?;
    let token = RoutingToken::new(reader.str("routingToken")?);
    reader.finish()?;
    Ok(token)
}
