//! Signing a decision, always in the full form. Only an opened artifact can be approved: there is
//! no function that approves anything else.

use serde_json::json;

use super::artifact::OpenedArtifact;
use super::encoding::{self, canonical_text};
use super::error::{Error, Result};
use super::hints::{ArtifactHints, HintsContext};
use super::keys::DeviceKeys;
use super::pairing::PinnedEnforcer;
use super::random::{RandomSource, draw};
use countersign_protocol::canonical::Sha256Hex;
use countersign_protocol::decision::{DecisionScope, Verdict};
use countersign_protocol::id::RequestId;
use countersign_protocol::timestamp::Timestamp;

const DECISION: &str = "the decision";

/// The decision of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionContent {
    pub verdict: Verdict,
    pub scope: DecisionScope,
    pub expires_at: Timestamp,
    pub hints: ArtifactHints,
}

/// The body of `decision.submit`, canonical and signed. An approval must meet the artifact's rule,
/// as far as that does not depend on the approver: `ArtifactRule::check_approval` checks the rest.
pub fn sign_decision(
    opened: &OpenedArtifact,
    ruling: &DecisionContent,
    keys: &DeviceKeys,
    random: &mut impl RandomSource,
) -> Result<String> {
    let artifact = opened.artifact();
    if let (Verdict::Approve, Some(rule)) = (ruling.verdict, artifact.rule()) {
        rule.check_content(opened.enforcer().id(), ruling.hints.reason.as_deref())?;
    }
    let subject = DecisionSubject {
        request_id: artifact.request_id(),
        artifact_hash: artifact.hash(),
        repo_ref: artifact.repo_ref(),
        enforcer: Some(opened.enforcer()),
    };
    sign(&subject, ruling, keys, random)
}

/// Rejects a request that could not be opened. Its repository is not known, so `repo_ref` is empty,
/// unless the artifact came unencrypted: the gateway then compares it. A reason can be encrypted
/// only to a paired enforcer.
pub fn reject_unopened(
    (request_id, repo_ref): (&RequestId, &str),
    artifact_hash: Sha256Hex,
    expires_at: Timestamp,
    hints: ArtifactHints,
    (keys, enforcer): (&DeviceKeys, Option<&PinnedEnforcer>),
    random: &mut impl RandomSource,
) -> Result<String> {
    let subject = DecisionSubject {
        request_id,
        artifact_hash,
        repo_ref,
        enforcer,
    };
    let ruling = DecisionContent {
        verdict: Verdict::Reject,
        scope: DecisionScope::Once,
        expires_at,
        hints,
    };
    sign(&subject, &ruling, keys, random)
}

struct DecisionSubject<'s> {
    request_id: &'s RequestId,
    artifact_hash: Sha256Hex,
    repo_ref: &'s str,
    enforcer: Option<&'s PinnedEnforcer>,
}

fn sign(
    subject: &DecisionSubject<'_>,
    ruling: &DecisionContent,
    keys: &DeviceKeys,
    random: &mut impl RandomSource,
) -> Result<String> {
    let device = keys.id();
    let nonce = draw::<16>(random)?;
    let mut members = json!({
        "requestId": subject.request_id.as_str(),
        "artifactHashAlg": "SHA-256",
        "artifactHash": subject.artifact_hash.to_string(),
        "repoRef": subject.repo_ref,
        "decision": ruling.verdict.as_str(),
        "scope": ruling.scope.as_str(),
        "expiresAt": ruling.expires_at.to_string(),
        "nonce": encoding::encode(nonce.as_slice()),
        "sigAlg": "Ed25519",
        "signerKeyId": device.to_string(),
    });
    if !ruling.hints.is_empty() {
        let enforcer = subject.enforcer.ok_or(Error::HintsForNobody)?;
        let context = HintsContext {
            request_id: subject.request_id,
            artifact_hash: subject.artifact_hash,
            enforcer_id: enforcer.id(),
            device,
        };
        members["policyHints"] = ruling.hints.seal(&context, keys, enforcer, random)?;
    }
    let signable = canonical_text(DECISION, &members)?;
    members["signature"] = keys.sign(signable.as_bytes())?.to_text().into();
    canonical_text(DECISION, &members)
}
