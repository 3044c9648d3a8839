//! The checks of an enforcer before it acts on a decision. A decision that is not accepted denies.

use super::artifact::PlainArtifact;
use super::bundle::DeviceBundle;
use super::device_id::DeviceId;
use super::error::{Error, Result};
use super::grant::{Grant, GrantOutcome, judge_grant};
use super::hints::{ArtifactHints, HintsContext, HintsKey, ReadHints};
use super::keys::EnforcerKeys;
use super::trust::{DeviceTrust, TrustedDevice};
use countersign_protocol::canonical::{Sha256Hex, canonical_without};
use countersign_protocol::decision::{DecisionScope, MAX_NONCE_CHARS, Verdict};
use countersign_protocol::id::{ApproverId, EnforcerId, RequestId};
use countersign_protocol::json::JsonNode;
use countersign_protocol::reader::{MemberReader, ReadResult};
use countersign_protocol::signature::Signature;
use countersign_protocol::timestamp::Timestamp;

pub(super) const DECISION: &str = "the decision";

/// The enforcer's own record of its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnRequest {
    pub request_id: RequestId,
    pub artifact_hash: Sha256Hex,
    pub repo_ref: String,
    pub expires_at: Timestamp,
    pub enforcer_id: EnforcerId,
}

impl OwnRequest {
    pub fn of(artifact: &PlainArtifact, enforcer_id: EnforcerId) -> Self {
        Self {
            request_id: artifact.request_id().clone(),
            artifact_hash: artifact.hash(),
            repo_ref: artifact.repo_ref().to_owned(),
            expires_at: artifact.expires_at(),
            enforcer_id,
        }
    }

    fn hints_context(&self, device: DeviceId) -> HintsContext<'_> {
        HintsContext {
            request_id: &self.request_id,
            artifact_hash: self.artifact_hash,
            enforcer_id: &self.enforcer_id,
            device,
        }
    }
}

/// A decision that passed every check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerifiedDecision {
    Approved(VerifiedApproval),
    Rejected(VerifiedRejection),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedApproval {
    pub approver: ApproverId,
    pub device: DeviceId,
    pub hints: ArtifactHints,
    pub grant: GrantOutcome,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedRejection {
    pub approver: ApproverId,
    pub device: DeviceId,
    /// Empty if they could not be read: a rejection stands without them.
    pub hints: ArtifactHints,
}

/// A decision's members, read and nothing more.
pub(super) struct DecisionMembers<'n, 'a> {
    pub(super) request_id: RequestId,
    pub(super) artifact_hash: Sha256Hex,
    repo_ref: String,
    verdict: Verdict,
    scope: DecisionScope,
    expires_at: Timestamp,
    signer: &'n str,
    signature: Signature,
    pub(super) hints: Option<&'n JsonNode<'a>>,
    signable: String,
}

impl<'n, 'a> DecisionMembers<'n, 'a> {
    fn read(node: &'n JsonNode<'a>) -> ReadResult<Self> {
        let mut body = MemberReader::named(DECISION, node)?;
        body.constant("artifactHashAlg", "SHA-256")?;
        body.constant("sigAlg", "Ed25519")?;
        body.bounded_str("nonce", 1, MAX_NONCE_CHARS)?;
        let signature = body.signature("signature")?;
        let claimed = Self {
            request_id: body.id("requestId")?,
            artifact_hash: body.hash("artifactHash")?,
            repo_ref: body.str("repoRef")?.to_owned(),
            verdict: body.word("decision")?,
            scope: body.word("scope")?,
            expires_at: body.timestamp("expiresAt")?,
            signer: body.str("signerKeyId")?,
            signature,
            hints: body.optional_nested("policyHints")?,
            signable: canonical_without(body.object(), "signature"),
        };
        body.finish()?;
        Ok(claimed)
    }
}

/// Judges the body of a decision about `request`, at `now` by the enforcer's own clock.
pub fn accept(
    decision: &JsonNode<'_>,
    request: &OwnRequest,
    keys: &EnforcerKeys,
    asked: &[&DeviceTrust],
    now: Timestamp,
) -> Result<VerifiedDecision> {
    judge(decision, request, keys, asked, now, now)
}

/// Judges a stored decision once more, before its grant is used: the device must still be in force.
/// The request itself has expired by now, as it may.
pub fn accept_again(
    decision: &JsonNode<'_>,
    request: &OwnRequest,
    keys: &EnforcerKeys,
    asked: &[&DeviceTrust],
    (accepted_at, now): (Timestamp, Timestamp),
) -> Result<Grant> {
    match judge(decision, request, keys, asked, accepted_at, now)? {
        VerifiedDecision::Rejected(_) => Err(Error::NoGrant("it is a rejection")),
        VerifiedDecision::Approved(approval) => match approval.grant {
            GrantOutcome::NotGiven(reason) => Err(Error::NoGrant(reason)),
            GrantOutcome::Given(grant) if grant.until <= now => Err(Error::DecisionExpired),
            GrantOutcome::Given(grant) => Ok(grant),
        },
    }
}

fn judge(
    decision: &JsonNode<'_>,
    request: &OwnRequest,
    keys: &EnforcerKeys,
    asked: &[&DeviceTrust],
    accepted_at: Timestamp,
    now: Timestamp,
) -> Result<VerifiedDecision> {
    let object = decision.as_object();
    if object.is_some_and(|object| object.get("sigAlg").is_none()) {
        return Err(Error::CompactDecision);
    }
    let claimed = DecisionMembers::read(decision)?;
    let (trust, signer) = find_signer(DeviceId::parse(claimed.signer)?, asked)?;
    let message = claimed.signable.as_bytes();
    let key = signer.bundle().signing_key();
    if !key.verifies(message, &claimed.signature) {
        return Err(Error::DecisionSignature);
    }
    let subject = (
        &request.request_id,
        request.artifact_hash,
        request.repo_ref.as_str(),
    );
    check_subject(&claimed, subject)?;
    if claimed.expires_at <= now {
        return Err(Error::DecisionExpired);
    }
    if request.expires_at <= accepted_at {
        return Err(Error::RequestExpired);
    }
    let context = request.hints_context(signer.id());
    let sender = signer.bundle().encryption_key();
    let hints = match claimed.hints {
        Some(node) => ArtifactHints::open(node, &context, keys, sender),
        None => Ok(ReadHints::default()),
    };
    let (approver, device) = (trust.approver().clone(), signer.id());
    if claimed.verdict == Verdict::Reject {
        let hints = hints.unwrap_or_default().hints;
        return Ok(VerifiedDecision::Rejected(VerifiedRejection {
            approver,
            device,
            hints,
        }));
    }
    let read = hints.map_err(|error| Error::Hints(Box::new(error)))?;
    let grant = judge_grant(claimed.scope, read.grant, claimed.expires_at, accepted_at);
    Ok(VerifiedDecision::Approved(VerifiedApproval {
        approver,
        device,
        hints: read.hints,
        grant,
    }))
}

/// The signature of a device about an artifact, independent of the enforcer that asked and of the
/// time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignedVerdict {
    pub verdict: Verdict,
    pub scope: DecisionScope,
    pub expires_at: Timestamp,
}

/// Verifies a decision long after it was made: that `device` signed it, and that it is about this
/// artifact. It says nothing about whose device that is.
pub fn verify_decision(
    decision: &JsonNode<'_>,
    artifact: &PlainArtifact,
    device: &DeviceBundle,
) -> Result<SignedVerdict> {
    let claimed = DecisionMembers::signed_by(device, decision)?;
    claimed.check_artifact(artifact)?;
    Ok(claimed.verdict())
}

impl<'n, 'a> DecisionMembers<'n, 'a> {
    /// The members of a decision that `device` signed, about whatever artifact.
    pub(super) fn signed_by(device: &DeviceBundle, decision: &'n JsonNode<'a>) -> Result<Self> {
        let claimed = Self::read(decision)?;
        let message = claimed.signable.as_bytes();
        let is_signer = DeviceId::parse(claimed.signer)? == device.id();
        if !is_signer || !device.signing_key().verifies(message, &claimed.signature) {
            return Err(Error::DecisionSignature);
        }
        Ok(claimed)
    }

    pub(super) fn check_artifact(&self, artifact: &PlainArtifact) -> Result<()> {
        let (request_id, repo_ref) = (artifact.request_id(), artifact.repo_ref());
        check_subject(self, (request_id, artifact.hash(), repo_ref))
    }

    /// Whether the signer has opened the artifact, and found that the enforcer of its rule sealed
    /// it. Devices check that before they approve; they reject whatever the gateway shows them.
    pub(super) fn vouches(&self) -> bool {
        self.verdict == Verdict::Approve
    }

    pub(super) fn verdict(&self) -> SignedVerdict {
        SignedVerdict {
            verdict: self.verdict,
            scope: self.scope,
            expires_at: self.expires_at,
        }
    }
}

/// The content key of the hints of a decision that `accept` has verified, for its receipt. `None` if
/// it has no encrypted hints.
pub fn hints_key(
    decision: &JsonNode<'_>,
    request: &OwnRequest,
    keys: &EnforcerKeys,
    device: &DeviceBundle,
) -> Result<Option<HintsKey>> {
    let Some(node) = DecisionMembers::read(decision)?.hints else {
        return Ok(None);
    };
    let context = request.hints_context(device.id());
    HintsKey::open(node, &context, keys, device.encryption_key())
}

/// The approver that the device belongs to, among those that were asked.
fn find_signer<'t>(
    id: DeviceId,
    asked: &[&'t DeviceTrust],
) -> Result<(&'t DeviceTrust, &'t TrustedDevice)> {
    let mut refusal = Error::UnknownDevice(id);
    for trust in asked {
        match trust.device(id) {
            Ok(device) => return Ok((trust, device)),
            Err(error @ Error::RevokedDevice(_)) => refusal = error,
            Err(_) => {}
        }
    }
    Err(refusal)
}

fn check_subject(
    claimed: &DecisionMembers<'_, '_>,
    (request_id, artifact_hash, repo_ref): (&RequestId, Sha256Hex, &str),
) -> Result<()> {
    let other = |what| Err(Error::OtherSubject { what });
    if claimed.request_id != *request_id {
        return other("request");
    }
    if claimed.artifact_hash != artifact_hash {
        return other("artifact");
    }
    // A device that could not open a request does not know its repository, and may still reject it.
    let unopened = claimed.verdict == Verdict::Reject && claimed.repo_ref.is_empty();
    if claimed.repo_ref != repo_ref && !unopened {
        return other("repository");
    }
    Ok(())
}
