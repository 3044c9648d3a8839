//! Prompts for an agent: the bodies of `prompt.send` and `prompt.ack` as they arrive. What becomes of them is judged in
//! `life`.

mod life;

use serde::Serialize;

pub use self::life::{
    AckBody, AckFact, AckRefusal, PromptFact, PromptNotWritten, PromptRefusal, Queued, Standing,
    Taken, judge_ack, judge_prompt,
};
use super::artifact::{self, Form, is_sealed};
use super::canonical::{Sha256Hex, canonical_without};
use super::envelope::Incoming;
use super::extensions::check_namespaced;
use super::id::{RequestId, SessionId, is_uuid_or_ulid};
use super::reader::{Invalid, Reader, child};
use super::timestamp::Timestamp;

/// Where in the agent's interface a prompt may go.
pub const TARGETS: [&str; 4] = ["agentChat", "composer", "tool", "other"];
pub const MAX_REPO_CHARS: usize = 1_024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// On its way, or waiting at the enforcer.
    Queued,
    Delivered,
    /// The enforcer will not pass it on.
    Rejected,
    Expired,
    /// It could not be passed on.
    Error,
}

impl Status {
    pub const ALL: [Self; 5] = [
        Self::Queued,
        Self::Delivered,
        Self::Rejected,
        Self::Expired,
        Self::Error,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Delivered => "delivered",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Error => "error",
        }
    }

    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// What a parser of prompts needs to know of the gateway's settings.
#[derive(Debug)]
pub struct Rules<'r> {
    /// Largest text, in bytes.
    pub max_text: usize,
    /// Key of the extension that says when a prompt ends.
    pub extension: &'r str,
    /// The latest `createdAt`.
    pub latest_created: Timestamp,
    pub latest_expiry: Timestamp,
}

#[derive(Debug, Clone)]
pub struct Prompt {
    pub request_id: RequestId,
    pub session_id: Option<SessionId>,
    /// Sealed or open.
    pub form: Form,
    /// Hash of the prompt: verified if open, taken as given if sealed.
    pub hash: Sha256Hex,
    /// When it ends, if ever.
    pub expires_at: Option<Timestamp>,
    pub expiry_pointer: String,
    pub body: String,
    pub trace: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptError {
    Invalid(Invalid),
    /// It is not what its hash says.
    HashMismatch,
    TooLarge {
        pointer: &'static str,
    },
}

impl From<Invalid> for PromptError {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

impl Prompt {
    pub fn parse(envelope: &Incoming<'_, '_>, rules: &Rules<'_>) -> Result<Self, PromptError> {
        let mut body = Reader::new(envelope.body, "/body")?;
        let request_id: RequestId = body.id("requestId")?;
        if !is_uuid_or_ulid(request_id.as_str()) {
            return Err(Invalid::shape("/body/requestId", "a UUID or ULID").into());
        }
        envelope.expect_request(&request_id)?;
        let session_id = body.optional_id("sessionId")?;
        if body.optional_str("repoRef")?.is_some() {
            body.bounded_str("repoRef", 0, MAX_REPO_CHARS)?;
        }
        body.one_of("artifactType", &["prompt.send"])?;
        if body.timestamp("createdAt")? > rules.latest_created {
            let expected = "a time that is not in the future";
            return Err(Invalid::timestamp("/body/createdAt", expected).into());
        }
        body.one_of("target", &TARGETS)?;
        let (form, pointer, bytes) = if is_sealed(envelope.body) {
            let data = artifact::check_ciphertext(body.nested("ciphertext")?, "/body/ciphertext")?;
            (Form::Sealed, "/body/ciphertext/data", data.len())
        } else {
            let text = body.str("text")?;
            if text.is_empty() {
                let expected = "a string of at least 1 character";
                return Err(Invalid::shape("/body/text", expected).into());
            }
            (Form::Open, "/body/text", text.len())
        };
        body.optional_nested("metadata")?;
        body.constant("promptHashAlg", "SHA-256")?;
        let hash = body.hash("promptHash")?;
        let own_expiry = match body.optional_nested("extensions")? {
            Some(extensions) => read_expiry(&Reader::new(extensions, "/body/extensions")?, rules)?,
            None => None,
        };
        let object = body.object();
        body.finish()?;
        if let Some(at) = own_expiry {
            envelope.expect_expiry(at)?;
        }
        if bytes > rules.max_text {
            return Err(PromptError::TooLarge { pointer });
        }
        if form == Form::Open
            && Sha256Hex::of(canonical_without(object, "promptHash").as_bytes()) != hash
        {
            return Err(PromptError::HashMismatch);
        }
        let expires_at = own_expiry.or(envelope.expires_at);
        let expiry_pointer = match own_expiry {
            Some(_) => child(&child("/body/extensions", rules.extension), "expiresAt"),
            None => "/expiresAt".to_owned(),
        };
        if expires_at.is_some_and(|at| at > rules.latest_expiry) {
            let expected = format!("a time not after {}", rules.latest_expiry);
            return Err(Invalid::timestamp(expiry_pointer, expected).into());
        }
        Ok(Self {
            request_id,
            session_id,
            form,
            hash,
            expires_at,
            expiry_pointer,
            body: envelope.body.raw.to_owned(),
            trace: envelope.trace.map(str::to_owned),
        })
    }
}

/// When the extensions say that a prompt ends.
fn read_expiry(
    extensions: &Reader<'_, '_>,
    rules: &Rules<'_>,
) -> Result<Option<Timestamp>, Invalid> {
    check_namespaced(extensions)?;
    let pointer = extensions.at(rules.extension);
    match extensions.object().get(rules.extension) {
        Some(node) => Reader::new(node, pointer)?.optional_timestamp("expiresAt"),
        None => Ok(None),
    }
}

/// The body of `prompt.ack` as an enforcer sends it.
#[derive(Debug, Clone)]
pub struct SentAck {
    pub request_id: RequestId,
    pub hash: Sha256Hex,
    pub status: Status,
    /// When.
    pub ack_at: Timestamp,
    pub details: Option<String>,
}

impl SentAck {
    pub fn parse(envelope: &Incoming<'_, '_>) -> Result<Self, Invalid> {
        let mut body = Reader::new(envelope.body, "/body")?;
        let request_id = body.id("requestId")?;
        envelope.expect_request(&request_id)?;
        let hash = body.hash("promptHash")?;
        let word = body.one_of("status", &Status::ALL.map(Status::as_str))?;
        let status = Status::parse(word).unwrap_or(Status::Error);
        let ack_at = body.timestamp("ackAt")?;
        let details = body.optional_nested("details")?;
        body.finish()?;
        Ok(Self {
            request_id,
            hash,
            status,
            ack_at,
            details: details.map(|node| node.raw.to_owned()),
        })
    }
}
