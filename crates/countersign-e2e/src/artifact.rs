//! Artifacts in plain: completed and sealed by an enforcer, opened by a device. The hash is
//! recomputed on both sides.

use std::fmt;

use serde_json::json;
use zeroize::Zeroizing;

use super::device_id::DeviceId;
use super::encoding::{self, agree, hash_without, parse, parse_canonical, with_hash, with_members};
use super::error::{Error, Result};
use super::extensions::{NamedDevices, read_devices, read_outcome_key, read_repository};
use super::keys::{DeviceKeys, EncryptionKey, EnforcerKeys};
use super::pairing::PinnedEnforcer;
use super::random::RandomSource;
use super::rule::{ArtifactRule, RULE};
use super::seal::{self, Ciphertext, SealPurpose};
use super::trust::DeviceTrust;
use countersign_protocol::artifact::{ARTIFACT_TYPES, MAX_WORD_CHARS};
use countersign_protocol::canonical::Sha256Hex;
use countersign_protocol::id::{ApproverId, EnforcerId, RequestId, is_uuid_or_ulid};
use countersign_protocol::json::JsonNode;
use countersign_protocol::reader::{MemberReader, ReadResult};
use countersign_protocol::signature::PublicKey;
use countersign_protocol::timestamp::Timestamp;

const ARTIFACT: &str = "the artifact";

/// A complete artifact in canonical form, whose hash is right.
#[derive(Clone, PartialEq, Eq)]
pub struct PlainArtifact {
    request_id: RequestId,
    artifact_type: &'static str,
    repo_ref: String,
    repository: Option<String>,
    devices: NamedDevices,
    outcome_key: Option<PublicKey>,
    rule: Option<ArtifactRule>,
    expires_at: Timestamp,
    /// As spelled: the associated data holds the text.
    expires_at_text: String,
    hash: Sha256Hex,
    text: Zeroizing<String>,
}

impl PlainArtifact {
    /// From the artifact's JSON without `artifactHash`, in any spelling. Adds the salt and the
    /// hash.
    pub fn complete(text: &str, random: &mut impl RandomSource) -> Result<Self> {
        Self::parse(encoding::complete(ARTIFACT, text, "artifactHash", random)?.as_bytes())
    }

    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let node = parse_canonical(ARTIFACT, bytes)?;
        let artifact = Self::read(&node)?;
        if hash_without(ARTIFACT, &node, "artifactHash")? == artifact.hash {
            Ok(artifact)
        } else {
            Err(Error::ContentHash)
        }
    }

    fn read(node: &JsonNode<'_>) -> ReadResult<Self> {
        let mut body = MemberReader::named(ARTIFACT, node)?;
        let request_id: RequestId = body.id("requestId")?;
        let session_id = body.optional_str("sessionId")?;
        if !is_uuid_or_ulid(request_id.as_str()) || !session_id.is_none_or(is_uuid_or_ulid) {
            return Err(body.refusal("requestId", "a UUID or ULID, as /sessionId"));
        }
        body.optional_str("baseRevision")?;
        body.timestamp("createdAt")?;
        body.nested("payload")?;
        body.constant("artifactHashAlg", "SHA-256")?;
        body.optional_nested("metadata")?;
        let mut extensions = body.optional_inner("extensions")?;
        let repo_ref = body.bounded_str("repoRef", 0, MAX_WORD_CHARS)?.to_owned();
        let artifact = Self {
            request_id,
            artifact_type: body.one_of("artifactType", &ARTIFACT_TYPES)?,
            repository: read_repository(&mut extensions, &repo_ref)?
                .map_err(|expected| body.refusal("repoRef", expected))?,
            devices: read_devices(&mut extensions)?,
            outcome_key: read_outcome_key(&mut extensions)?,
            rule: ArtifactRule::read(&mut extensions)?,
            repo_ref,
            expires_at: body.timestamp("expiresAt")?,
            expires_at_text: body.str("expiresAt")?.to_owned(),
            hash: body.hash("artifactHash")?,
            text: Zeroizing::new(node.raw.to_owned()),
        };
        body.finish()?;
        Ok(artifact)
    }

    getters! {
        pub ref request_id: RequestId;
        pub copy artifact_type: &'static str;
        /// As decisions repeat it, in plain.
        pub ref repo_ref: str;
    }

    /// Where the agent works, as people and grants name it: the text behind `repoRef`, or that
    /// itself if it hides none.
    pub fn repository(&self) -> &str {
        self.repository.as_deref().unwrap_or(&self.repo_ref)
    }

    /// The devices of an approver that the enforcer obeys, as far as it says.
    pub fn devices_of(&self, approver: &ApproverId) -> impl Iterator<Item = DeviceId> {
        self.devices.get(approver).into_iter().flatten().copied()
    }

    /// The approvers whose devices the enforcer named.
    pub fn named_approvers(&self) -> impl Iterator<Item = &ApproverId> {
        self.devices.keys()
    }

    /// The key that the enforcer made for the outcome of this request.
    pub fn outcome_key(&self) -> Option<&PublicKey> {
        self.outcome_key.as_ref()
    }

    /// The rule by which the call is approved. Without one, the first decision settles it.
    pub fn rule(&self) -> Option<&ArtifactRule> {
        self.rule.as_ref()
    }

    /// The artifact of another part of the same set: it differs in `requestId`, in the seat of its
    /// rule, and in its hash.
    pub fn for_part(&self, request_id: &RequestId, seat: Option<&ApproverId>) -> Result<Self> {
        let node = parse(ARTIFACT, self.text.as_bytes())?;
        let mut body = MemberReader::named(ARTIFACT, &node)?;
        let mut extensions = body.inner("extensions")?;
        let rule = extensions.inner(RULE)?.object();
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let seat = seat.map(|seat| quoted(seat.as_str()));
        let rule = with_members(rule, &[("seat", seat)]);
        let extensions = with_members(extensions.object(), &[(RULE, Some(rule))]);
        let changed = [
            ("extensions", Some(extensions)),
            ("requestId", Some(quoted(request_id.as_str()))),
        ];
        let text = Zeroizing::new(with_members(body.object(), &changed));
        Self::parse(with_hash(ARTIFACT, &text, "artifactHash")?.as_bytes())
    }

    getters! {
        pub copy expires_at: Timestamp;
        pub copy hash: Sha256Hex;
        /// The canonical text, hash included.
        pub ref text: str;
    }

    /// The members that travel beside the ciphertext.
    pub fn context(&self, enforcer_id: EnforcerId) -> ArtifactContext {
        ArtifactContext {
            request_id: self.request_id.clone(),
            artifact_type: self.artifact_type.to_owned(),
            artifact_hash: self.hash,
            expires_at: self.expires_at_text.clone(),
            enforcer_id,
        }
    }
}

impl fmt::Debug for PlainArtifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PlainArtifact({}, redacted)", self.request_id)
    }
}

/// The plain members of an `approval.request` about a sealed artifact. They are believed only if
/// the content agrees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactContext {
    pub request_id: RequestId,
    pub artifact_type: String,
    pub artifact_hash: Sha256Hex,
    /// As spelled.
    pub expires_at: String,
    pub enforcer_id: EnforcerId,
}

impl ArtifactContext {
    fn to_json(&self) -> serde_json::Value {
        json!({
            "v": 1,
            "requestId": self.request_id.as_str(),
            "artifactType": self.artifact_type,
            "artifactHash": self.artifact_hash.to_string(),
            "expiresAt": self.expires_at,
            "enforcerId": self.enforcer_id.as_str(),
        })
    }
}

/// Encrypts an artifact to every device in force of the approvers that are asked.
pub fn seal_artifact(
    keys: &EnforcerKeys,
    enforcer_id: &EnforcerId,
    artifact: &PlainArtifact,
    approvers: &[&DeviceTrust],
    random: &mut impl RandomSource,
) -> Result<Ciphertext> {
    let mut recipients: Vec<(DeviceId, EncryptionKey)> = Vec::new();
    for device in approvers.iter().flat_map(|trust| trust.in_force()) {
        let (id, key) = (device.id(), *device.bundle().encryption_key());
        match recipients.iter().find(|(other, _)| *other == id) {
            // One device may act for two of the approvers.
            Some((_, same)) if *same == key => {}
            Some(_) => return Err(Error::DeviceIdTaken(id)),
            None => recipients.push((id, key)),
        }
    }
    let recipients = recipients.iter().map(|(id, key)| (id.to_string(), *key));
    let recipients: Vec<_> = recipients.collect();
    seal::seal(
        (SealPurpose::Artifact, None),
        keys.decryption(),
        &recipients,
        &artifact.context(enforcer_id.clone()).to_json(),
        artifact.text().as_bytes(),
        random,
    )
}

/// An artifact that the paired enforcer sealed for this device, and that agrees with everything
/// said about it in plain.
#[derive(Debug, Clone)]
pub struct OpenedArtifact {
    artifact: PlainArtifact,
    enforcer: PinnedEnforcer,
}

impl OpenedArtifact {
    getters! {
        pub ref artifact: PlainArtifact;
        pub ref enforcer: PinnedEnforcer;
    }
}

pub fn open_artifact(
    keys: &DeviceKeys,
    enforcer: &PinnedEnforcer,
    context: &ArtifactContext,
    ciphertext: &Ciphertext,
) -> Result<OpenedArtifact> {
    agree(context.enforcer_id == *enforcer.id(), "enforcerId")?;
    let content = seal::open(
        ciphertext,
        &keys.id().to_string(),
        keys.decryption(),
        enforcer.encryption_key(),
        &context.to_json(),
    )?;
    let artifact = PlainArtifact::parse(&content)?;
    if artifact.hash != context.artifact_hash {
        return Err(Error::ContentHash);
    }
    agree(artifact.request_id == context.request_id, "requestId")?;
    agree(
        artifact.artifact_type == context.artifact_type,
        "artifactType",
    )?;
    agree(artifact.expires_at_text == context.expires_at, "expiresAt")?;
    Ok(OpenedArtifact {
        artifact,
        enforcer: enforcer.clone(),
    })
}
