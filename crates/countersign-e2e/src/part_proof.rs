//! A part of a receipt, and the checks that are about it alone.

use super::accept::{DECISION, DecisionMembers, SignedVerdict};
use super::artifact::PlainArtifact;
use super::encoding::parse;
use super::error::{Error, Result};
use super::hints::{ArtifactHints, HintsContext};
use super::proof_gap::ProofGap;
use super::receipt::{Receipt, ReceiptPart};
use super::rule::ArtifactRule;
use super::votes::ApproverVote;
use countersign_protocol::decision::Verdict;

type Proof<T = ()> = Result<T, ProofGap>;

/// A part with the results of its own checks.
pub(super) struct PartProof<'r> {
    pub(super) part: &'r ReceiptPart,
    /// The part's artifact, if the file has one and the decision is about it.
    pub(super) artifact: Option<PlainArtifact>,
    pub(super) verdict: Option<SignedVerdict>,
    pub(super) hints: Option<ArtifactHints>,
    /// Whether an approval for a team names states of it.
    pub(super) has_heads: bool,
    pub(super) is_anchored: bool,
    /// Whether the signer knows that the enforcer of the rule sealed the artifact.
    pub(super) is_voucher: bool,
}

impl PartProof<'_> {
    pub(super) fn check_decision(
        &mut self,
        whole: Option<&PlainArtifact>,
        is_first: bool,
    ) -> Proof {
        let part = self.part;
        let other = |what| Error::OtherSubject { what };
        let node = parse(DECISION, part.decision.as_bytes())?;
        let claimed = DecisionMembers::signed_by(&part.device, &node)?;
        if claimed.request_id != part.request_id {
            return Err(other("request").into());
        }
        // On the seat of a team, somebody can stand in.
        let rule = whole.and_then(PlainArtifact::rule);
        if !part.is_own() && !rule.is_none_or(ArtifactRule::names_team) {
            return Err(other("seat").into());
        }
        let artifact = match whole {
            Some(whole) if whole.rule().is_some() => {
                let own = whole.for_part(&part.request_id, part.seat.as_ref())?;
                if is_first && own != *whole {
                    return Err(other("artifact").into());
                }
                Some(own)
            }
            Some(_) if part.seat.is_some() => return Err(other("seat").into()),
            whole => whole.cloned(),
        };
        if let Some(artifact) = &artifact {
            claimed.check_artifact(artifact)?;
        }
        self.is_voucher = claimed.vouches();
        self.verdict = Some(claimed.verdict());
        self.artifact = artifact;
        Ok(())
    }

    pub(super) fn check_hints(&self, receipt: &Receipt) -> Proof<ArtifactHints> {
        let (part, verdict) = (self.part, self.verdict.ok_or(ProofGap::Absent)?);
        let node = parse(DECISION, part.decision.as_bytes())?;
        let claimed = DecisionMembers::signed_by(&part.device, &node)?;
        let Some(hints) = claimed.hints else {
            return Ok(ArtifactHints::default());
        };
        let context = HintsContext {
            request_id: &claimed.request_id,
            artifact_hash: claimed.artifact_hash,
            enforcer_id: &receipt.enforcer,
            device: part.device.id(),
        };
        match ArtifactHints::open_with(hints, &context, part.hints_key.as_ref()) {
            Ok(Some(read)) => Ok(read.hints),
            Ok(None) => Err(ProofGap::Absent),
            // A rejection stands without them.
            Err(_) if verdict.verdict == Verdict::Reject && part.hints_key.is_none() => {
                Err(ProofGap::Absent)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The vote, without regard to the device.
    pub(super) fn vote(&self) -> Option<ApproverVote> {
        let verdict = self.verdict?.verdict;
        let has_rule = self.artifact.as_ref()?.rule().is_some();
        // Approvals with hints that cannot be read may approve different things.
        let is_known = self.hints.is_some() && self.has_heads;
        if verdict == Verdict::Approve && has_rule && !is_known {
            return None;
        }
        let hints = self.hints.clone().unwrap_or_default();
        Some(ApproverVote::new(self.part.voter(), verdict, &hints))
    }
}
