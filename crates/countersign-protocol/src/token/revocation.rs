//! Which tokens are no longer accepted although they have not expired: one by its `jti`, or all of
//! a subject or of a tenant that were issued before a time.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use crate::json::JsonNode;
use crate::reader::{InvalidMember, MemberReader, ReadResult};
use crate::text::is_longer;
use crate::timestamp::Timestamp;
use crate::words::words;

/// Longest `jti` and longest subject.
pub const MAX_NAME_CHARS: usize = 255;

/// The parts of a token that a revocation can name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenIdentity {
    /// Its `jti`.
    pub id: Option<String>,
    /// Its `sub`, else its `client_id`.
    pub subject: String,
    pub issued_at: Option<Timestamp>,
}

words! {
    RevocationKind {
        /// One token, by its `jti`.
        Token = "token",
        Subject = "subject",
        /// All tokens of the tenant.
        All = "all",
    }
}

/// A wish to revoke tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevocationRequest {
    pub kind: RevocationKind,
    /// The `jti` or the subject; empty for all.
    pub name: String,
    /// If none is given, now, and as much later as clocks may differ. Not used for one token.
    pub issued_before: Option<Timestamp>,
}

impl RevocationRequest {
    pub fn parse(node: &JsonNode<'_>) -> ReadResult<Self> {
        let mut reader = MemberReader::new(node, "")?;
        let token = reader.optional_str("tokenId")?.map(str::to_owned);
        let subject = reader.optional_str("subject")?.map(str::to_owned);
        let issued_before = reader.optional_timestamp("issuedBefore")?;
        reader.finish()?;
        Self::new(token, subject, issued_before)
    }

    pub fn new(
        token: Option<String>,
        subject: Option<String>,
        issued_before: Option<Timestamp>,
    ) -> ReadResult<Self> {
        let refuse =
            |pointer: &str, expected: &'static str| Err(InvalidMember::shape(pointer, expected));
        let (kind, pointer, name) = match (token, subject, issued_before) {
            (Some(id), None, None) => (RevocationKind::Token, "/tokenId", id),
            (None, Some(subject), _) => (RevocationKind::Subject, "/subject", subject),
            (None, None, Some(_)) => (RevocationKind::All, "", String::new()),
            (Some(_), Some(_), _) => return refuse("/subject", "none, as tokenId is there"),
            (Some(_), None, Some(_)) => {
                return refuse("/issuedBefore", "none, as tokenId is there");
            }
            (None, None, None) => {
                let expected = "tokenId, subject or issuedBefore (one is required)";
                return refuse("/tokenId", expected);
            }
        };
        if kind != RevocationKind::All && !is_name(&name) {
            let expected = "1 to 255 characters, none of them a control character";
            return refuse(pointer, expected);
        }
        Ok(Self {
            kind,
            name,
            issued_before,
        })
    }
}

/// Whether a text can be a `jti` or a subject.
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && !is_longer(text, MAX_NAME_CHARS) && !text.chars().any(char::is_control)
}

/// A revocation in force, as it is listed.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RevocationLine {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issued_before: Option<Timestamp>,
    pub revoked_at: Timestamp,
}

/// The revocations of one tenant.
#[derive(Debug, Default)]
pub struct TokenRevocations {
    tokens: HashSet<String>,
    subjects: HashMap<String, Timestamp>,
    all: Option<Timestamp>,
}

impl TokenRevocations {
    pub fn add(&mut self, line: RevocationLine) {
        match (line.token_id, line.subject, line.issued_before) {
            (Some(id), _, _) => {
                self.tokens.insert(id);
            }
            (None, Some(subject), Some(before)) => {
                self.subjects.insert(subject, before);
            }
            (None, None, Some(before)) => self.all = self.all.max(Some(before)),
            (None, _, None) => {}
        }
    }

    /// A token that does not say when it was issued counts as issued before any time.
    pub fn include(&self, token: &TokenIdentity) -> bool {
        let issued_before = |at: &Timestamp| token.issued_at.is_none_or(|issued| issued < *at);
        token.id.as_ref().is_some_and(|id| self.tokens.contains(id))
            || self.subjects.get(&token.subject).is_some_and(issued_before)
            || self.all.as_ref().is_some_and(issued_before)
    }
}
