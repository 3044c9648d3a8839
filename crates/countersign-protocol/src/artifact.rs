//! The body of `artifact.submit`: sealed if it has the member `ciphertext`, else open. The
//! submitted text itself is stored, so that it can be forwarded byte for byte.

use super::canonical::{Sha256Hex, canonical_without};
use super::envelope::IncomingEnvelope;
use super::error::{Error, Result};
use super::extensions::check_extensions;
use super::id::{RequestId, TextId, is_uuid_or_ulid};
use super::json::JsonNode;
use super::reader::{InvalidMember, MemberReader, ReadResult};
use super::routing::{RoutingMetadata, RoutingTarget};
use super::timestamp::Timestamp;
use super::words::words;

pub const ARTIFACT_TYPES: [&str; 5] = [
    "plan.review",
    "task.review",
    "patch.review",
    "command.review",
    "checkpoint.review",
];

/// Longest artifact type and repository reference, so that rows and lists stay small.
pub const MAX_WORD_CHARS: usize = 1_024;

words! {
    /// Whether the gateway can read an artifact.
    Form {
        Sealed = "sealed",
        Open = "open",
    }
}

#[derive(Debug, Clone)]
pub struct ArtifactRules {
    /// Largest payload, in bytes of its text.
    pub max_payload: usize,
    /// Key of the extension that lists the requested actions.
    pub requested_actions: String,
    pub latest_created: Timestamp,
    pub latest_expiry: Timestamp,
}

#[derive(Debug, Clone)]
pub struct Submission {
    pub request_id: RequestId,
    pub form: Form,
    pub artifact_type: String,
    /// Verified if open, as claimed if sealed.
    pub artifact_hash: Sha256Hex,
    /// Known of open artifacts only.
    pub repo_ref: Option<String>,
    pub expires_at: Timestamp,
    pub route: RoutingTarget,
    /// The open artifact verbatim, or the sealed members without routing.
    pub stored: String,
    pub trace: Option<String>,
}

pub fn is_sealed(body: &JsonNode<'_>) -> bool {
    body.as_object()
        .is_some_and(|object| object.get("ciphertext").is_some())
}

pub fn parse(envelope: &IncomingEnvelope<'_, '_>, rules: &ArtifactRules) -> Result<Submission> {
    let submission = if is_sealed(envelope.body) {
        parse_sealed(envelope, rules)?
    } else {
        parse_open(envelope, rules)?
    };
    envelope.expect_expiry(submission.expires_at)?;
    Ok(submission)
}

fn parse_sealed(envelope: &IncomingEnvelope<'_, '_>, rules: &ArtifactRules) -> Result<Submission> {
    let mut body = MemberReader::new(envelope.body, "/body")?;
    let artifact_type = body.bounded_str("artifactType", 1, MAX_WORD_CHARS)?;
    let artifact_hash = body.hash("artifactHash")?;
    let expires_at = body.timestamp("expiresAt")?;
    let ciphertext = body.inner("ciphertext")?;
    let metadata = body.optional_nested("metadata")?;
    if envelope.about_itself {
        body.id::<RequestId>("requestId")?;
    }
    let object = body.object();
    body.finish()?;

    if check_ciphertext(ciphertext)?.len() > rules.max_payload {
        return Err(Error::PayloadTooLarge {
            pointer: "/body/ciphertext/data",
            limit: rules.max_payload,
        });
    }
    check_lifetime(expires_at, rules)?;

    let metadata = metadata.map(|node| RoutingMetadata::parse(node, "/body/metadata"));
    let metadata = metadata.transpose()?.unwrap_or_default();
    let kept = ["artifactType", "artifactHash", "ciphertext", "expiresAt"];
    let kept = kept
        .into_iter()
        .filter_map(|name| Some((name, object.get(name)?.raw)));
    let forwarded = metadata.forwarded.as_deref().map(|rest| ("metadata", rest));
    let stored = object_text(&kept.chain(forwarded).collect::<Vec<_>>());
    Ok(Submission {
        request_id: envelope.request_id.clone(),
        form: Form::Sealed,
        artifact_type: artifact_type.to_owned(),
        artifact_hash,
        repo_ref: None,
        expires_at,
        route: metadata.route(envelope.recipient.approver_id.clone()),
        stored,
        trace: envelope.trace.map(str::to_owned),
    })
}

/// The text of an object with these members, made at once: it may be large.
fn object_text(members: &[(&str, &str)]) -> String {
    let length: usize = members
        .iter()
        .map(|(name, value)| name.len() + value.len() + 4)
        .sum();
    let mut text = String::with_capacity(length + 1);
    for (name, value) in members {
        text.push(if text.is_empty() { '{' } else { ',' });
        text.extend(["\"", name, "\":", value]);
    }
    text.push('}');
    text
}

/// Checks a ciphertext and returns its data. Further members are not checked.
pub(super) fn check_ciphertext<'n>(mut sealed: MemberReader<'n, '_>) -> ReadResult<&'n str> {
    sealed.str("alg")?;
    for name in ["nonce", "tag", "aad"] {
        sealed.optional_str(name)?;
    }
    sealed.str("data")
}

fn parse_open(envelope: &IncomingEnvelope<'_, '_>, rules: &ArtifactRules) -> Result<Submission> {
    let (artifact, payload_bytes) = read_open(envelope, rules).map_err(Error::InvalidArtifact)?;
    if payload_bytes > rules.max_payload {
        return Err(Error::PayloadTooLarge {
            pointer: "/body/payload",
            limit: rules.max_payload,
        });
    }
    let object = MemberReader::new(envelope.body, "/body")?.object();
    let canonical = canonical_without(object, "artifactHash");
    if Sha256Hex::of(canonical.as_bytes()) != artifact.artifact_hash {
        return Err(Error::ArtifactHash);
    }
    if artifact.request_id != envelope.request_id {
        return Err(
            InvalidMember::shape("/body/requestId", "the requestId of the envelope").into(),
        );
    }
    Ok(artifact)
}

/// Reads an open artifact, and the size of its payload.
fn read_open(
    envelope: &IncomingEnvelope<'_, '_>,
    rules: &ArtifactRules,
) -> ReadResult<(Submission, usize)> {
    let mut body = MemberReader::new(envelope.body, "/body")?;
    if body.object().get("requestId").is_none() && body.object().get("payload").is_none() {
        // Neither form; most likely a sealed artifact without its ciphertext.
        let expected = "an object (a sealed artifact), or the members of an open one";
        return Err(body.refusal("ciphertext", expected));
    }
    let request_id = body.str("requestId")?;
    let session_id = body.optional_str("sessionId")?;
    for (name, id) in [("requestId", Some(request_id)), ("sessionId", session_id)] {
        if id.is_some_and(|id| !is_uuid_or_ulid(id)) {
            return Err(body.refusal(name, "a UUID or ULID"));
        }
    }
    let request_id =
        RequestId::parse(request_id).ok_or_else(|| body.refusal("requestId", "a UUID or ULID"))?;
    let artifact_type = body.one_of("artifactType", &ARTIFACT_TYPES)?;
    let repo_ref = body.bounded_str("repoRef", 0, MAX_WORD_CHARS)?.to_owned();
    body.optional_str("baseRevision")?;
    body.past_timestamp("createdAt", rules.latest_created)?;
    let expires_at = body.timestamp("expiresAt")?;
    check_lifetime(expires_at, rules)?;
    let payload_bytes = body.nested("payload")?.raw.len();
    body.constant("artifactHashAlg", "SHA-256")?;
    let artifact_hash = body.hash("artifactHash")?;
    body.optional_nested("metadata")?;
    if let Some(extensions) = body.optional_inner("extensions")? {
        check_extensions(&extensions, &rules.requested_actions)?;
    }
    body.finish()?;
    let approver = envelope.recipient.approver_id.clone();
    let artifact = Submission {
        request_id,
        form: Form::Open,
        artifact_type: artifact_type.to_owned(),
        artifact_hash,
        repo_ref: Some(repo_ref),
        expires_at,
        route: approver.map_or(RoutingTarget::Paired, RoutingTarget::to),
        stored: envelope.body.raw.to_owned(),
        trace: envelope.trace.map(str::to_owned),
    };
    Ok((artifact, payload_bytes))
}

fn check_lifetime(expires_at: Timestamp, rules: &ArtifactRules) -> ReadResult<()> {
    if expires_at <= rules.latest_expiry {
        return Ok(());
    }
    let expected = format!("a time not after {}", rules.latest_expiry);
    Err(InvalidMember::timestamp("/body/expiresAt", expected))
}
