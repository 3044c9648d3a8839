//! The bodies of `prompt.send` and `prompt.ack`.

use crate::artifact::{Form, check_ciphertext, is_sealed};
use crate::canonical::{Sha256Hex, canonical_without};
use crate::envelope::IncomingEnvelope;
use crate::error::{Error, Result};
use crate::extensions::check_namespaced;
use crate::id::{RequestId, SessionId, is_uuid_or_ulid};
use crate::reader::{InvalidMember, MemberReader, ReadResult, child};
use crate::timestamp::Timestamp;
use crate::words::words;

/// Where in the agent's interface a prompt may go.
pub const TARGETS: [&str; 4] = ["agentChat", "composer", "tool", "other"];
pub const MAX_REPO_CHARS: usize = 1_024;

words! {
    PromptStatus {
        /// Not yet delivered, or waiting at the enforcer.
        Queued = "queued",
        Delivered = "delivered",
        /// The enforcer will not pass it on.
        Rejected = "rejected",
        Expired = "expired",
        /// It could not be passed on.
        Error = "error",
    }
}

#[derive(Debug)]
pub struct PromptRules<'r> {
    /// Largest text, in bytes.
    pub max_text: usize,
    /// Key of the extension that sets when a prompt expires.
    pub extension: &'r str,
    pub latest_created: Timestamp,
    pub latest_expiry: Timestamp,
}

#[derive(Debug, Clone)]
pub struct Prompt {
    pub request_id: RequestId,
    pub session_id: Option<SessionId>,
    pub form: Form,
    /// Verified if open, as claimed if sealed.
    pub hash: Sha256Hex,
    pub expires_at: Option<Timestamp>,
    pub expiry_pointer: String,
    pub body: String,
    pub trace: Option<String>,
}

impl Prompt {
    pub fn parse(envelope: &IncomingEnvelope<'_, '_>, rules: &PromptRules<'_>) -> Result<Self> {
        let mut body = MemberReader::new(envelope.body, "/body")?;
        let request_id: RequestId = body.id("requestId")?;
        if !is_uuid_or_ulid(request_id.as_str()) {
            return Err(body.refusal("requestId", "a UUID or ULID").into());
        }
        envelope.expect_request(&request_id)?;
        let session_id = body.optional_id("sessionId")?;
        if body.optional_str("repoRef")?.is_some() {
            body.bounded_str("repoRef", 0, MAX_REPO_CHARS)?;
        }
        body.one_of("artifactType", &["prompt.send"])?;
        body.past_timestamp("createdAt", rules.latest_created)?;
        body.one_of("target", &TARGETS)?;
        let (form, pointer, bytes) = if is_sealed(envelope.body) {
            let data = check_ciphertext(body.inner("ciphertext")?)?;
            (Form::Sealed, "/body/ciphertext/data", data.len())
        } else {
            (Form::Open, "/body/text", body.nonempty_str("text")?.len())
        };
        body.optional_nested("metadata")?;
        body.constant("promptHashAlg", "SHA-256")?;
        let hash = body.hash("promptHash")?;
        let own_expiry = match body.optional_inner("extensions")? {
            Some(extensions) => read_expiry(&extensions, rules)?,
            None => None,
        };
        let object = body.object();
        body.finish()?;
        if let Some(at) = own_expiry {
            envelope.expect_expiry(at)?;
        }
        if bytes > rules.max_text {
            let limit = rules.max_text;
            return Err(Error::PayloadTooLarge { pointer, limit });
        }
        if form == Form::Open
            && Sha256Hex::of(canonical_without(object, "promptHash").as_bytes()) != hash
        {
            return Err(Error::PromptHash);
        }
        let expires_at = own_expiry.or(envelope.expires_at);
        let expiry_pointer = match own_expiry {
            Some(_) => child(&child("/body/extensions", rules.extension), "expiresAt"),
            None => "/expiresAt".to_owned(),
        };
        if expires_at.is_some_and(|at| at > rules.latest_expiry) {
            let expected = format!("a time not after {}", rules.latest_expiry);
            return Err(InvalidMember::timestamp(expiry_pointer, expected).into());
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

fn read_expiry(
    extensions: &MemberReader<'_, '_>,
    rules: &PromptRules<'_>,
) -> ReadResult<Option<Timestamp>> {
    check_namespaced(extensions)?;
    let pointer = extensions.at(rules.extension);
    match extensions.object().get(rules.extension) {
        Some(node) => MemberReader::new(node, pointer)?.optional_timestamp("expiresAt"),
        None => Ok(None),
    }
}

/// The body of `prompt.ack` as an enforcer sends it.
#[derive(Debug, Clone)]
pub struct SentAck {
    pub request_id: RequestId,
    pub hash: Sha256Hex,
    pub status: PromptStatus,
    pub ack_at: Timestamp,
    pub details: Option<String>,
}

impl SentAck {
    pub fn parse(envelope: &IncomingEnvelope<'_, '_>) -> ReadResult<Self> {
        let mut body = MemberReader::new(envelope.body, "/body")?;
        let request_id = body.id("requestId")?;
        envelope.expect_request(&request_id)?;
        let hash = body.hash("promptHash")?;
        let status = body.word("status")?;
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
