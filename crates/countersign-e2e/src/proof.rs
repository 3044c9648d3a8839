//! Verifies a receipt: which of its claims are proven, and why the others are not. It trusts nothing
//! but the anchors. An approval is counted only if everything about it is proven.

use std::collections::BTreeSet;

use super::accept::{DECISION, DecisionMembers, SignedVerdict};
use super::anchors::ReceiptAnchors;
use super::artifact::PlainArtifact;
use super::encoding::parse;
use super::error::{Error, Result};
use super::hints::{ArtifactHints, HintsContext};
use super::outcome::{DenialCause, OutcomeEffect, OutcomeStatement, open_outcome};
use super::proof_gap::ProofGap;
use super::receipt::{Receipt, ReceiptPart};
use super::rule::{ArtifactRule, CommentDuty, RuleAsk, RuleTerms};
use super::rule_refusal::RuleRefusal;
use super::statement::{SIGNED, SignedStatement};
use super::votes::{ApproverVote, VoteCount, VoteState};
use countersign_protocol::decision::Verdict;
use countersign_protocol::id::ApproverId;
use countersign_protocol::words;

words! {
    /// A claim of a receipt.
    ReceiptFact {
        /// The artifact is in the file, and its hash is right.
        Artifact = "artifact",
        /// The part's device signed its decision, about the artifact with the part's request and
        /// seat.
        Decision = "decision",
        /// That device speaks for the part's approver.
        Device = "device",
        /// The part's comment, choice and answers are those that were signed.
        Hints = "hints",
        /// The approved artifact names the enforcer that the file names.
        Enforcer = "enforcer",
        /// The key that the approved artifact names signed the outcome, about these decisions.
        Outcome = "outcome",
        /// The file has every decision that the outcome is about.
        Complete = "complete",
        /// The decisions, counted by the rule, lead to the outcome; without an outcome, they settle
        /// the call.
        Count = "count",
        /// An enforcer asked: the gateway's log has the decisions. Without a proof from it, an approver
        /// could have made up the request, with a rule that the own approval satisfies.
        Asked = "asked",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptCheck {
    pub fact: ReceiptFact,
    /// The place of the part that it is about, if it is about one.
    pub part: Option<usize>,
    pub result: Result<(), ProofGap>,
}

/// The contents of a part, as far as its device signed them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartReport {
    pub verdict: Option<SignedVerdict>,
    pub hints: Option<ArtifactHints>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptReport {
    pub artifact: Option<PlainArtifact>,
    /// In the order of the receipt's parts.
    pub parts: Vec<PartReport>,
    /// Of the first part, if the outcome is proven.
    pub outcome: Option<OutcomeStatement>,
    /// The count of the proven decisions, if the rule is known.
    pub votes: Option<VoteState>,
    /// The people whose proven approvals satisfy the rule. Empty if it is not satisfied.
    pub approvers: BTreeSet<ApproverId>,
    pub checks: Vec<ReceiptCheck>,
}

impl ReceiptReport {
    /// Whether every check of this kind has passed.
    pub fn is_proven(&self, fact: ReceiptFact) -> bool {
        let checks = self.checks.iter().filter(|check| check.fact == fact);
        let (passed, open): (Vec<_>, Vec<_>) = checks.partition(|check| check.result.is_ok());
        !passed.is_empty() && open.is_empty()
    }

    /// Whether nothing in the receipt is false. Something may be unproven.
    pub fn is_consistent(&self) -> bool {
        let failed = |check: &ReceiptCheck| matches!(check.result, Err(ProofGap::Failed(_)));
        !self.checks.iter().any(failed)
    }
}

type Proof<T = ()> = Result<T, ProofGap>;

struct CheckList(Vec<ReceiptCheck>);

impl CheckList {
    /// Notes the result of a check, and returns what it has proven.
    fn note<T>(&mut self, fact: ReceiptFact, part: Option<usize>, proof: Proof<T>) -> Option<T> {
        let (proven, result) = match proof {
            Ok(proven) => (Some(proven), Ok(())),
            Err(gap) => (None, Err(gap)),
        };
        self.0.push(ReceiptCheck { fact, part, result });
        proven
    }

    /// Whether a part lacks something that would prove it.
    fn has_gaps(&self) -> bool {
        let is_gap = |it: &ReceiptCheck| it.part.is_some() && it.result == Err(ProofGap::Absent);
        self.0.iter().any(is_gap)
    }
}

/// A part with the results of its own checks.
struct PartProof<'r> {
    part: &'r ReceiptPart,
    /// The part's artifact, if the file has one and the decision is about it.
    artifact: Option<PlainArtifact>,
    verdict: Option<SignedVerdict>,
    hints: Option<ArtifactHints>,
    is_anchored: bool,
    /// Whether the signer knows that the enforcer of the rule sealed the artifact.
    is_voucher: bool,
}

impl Receipt {
    /// Verifies everything that the file and the anchors allow.
    pub fn verify(&self, anchors: &ReceiptAnchors) -> ReceiptReport {
        let mut checks = CheckList(Vec::new());
        let artifact = self.artifact.as_ref().ok_or(ProofGap::Absent);
        let artifact = artifact.and_then(|text| Ok(PlainArtifact::parse(text.as_bytes())?));
        let artifact = checks.note(ReceiptFact::Artifact, None, artifact);
        let statements = self.devices.iter().filter_map(|text| {
            // A statement that cannot be read proves nothing, and changes nothing.
            SignedStatement::parse(&parse(SIGNED, text.as_bytes()).ok()?).ok()
        });
        let statements: Vec<_> = statements.collect();
        let mut parts = Vec::new();
        for (place, part) in self.parts.iter().enumerate() {
            let at = Some(place);
            let mut proof = PartProof {
                part,
                artifact: None,
                verdict: None,
                hints: None,
                is_anchored: false,
                is_voucher: false,
            };
            let decision = proof.check_decision(artifact.as_ref(), place == 0);
            checks.note(ReceiptFact::Decision, at, decision);
            let device = anchors.check_device(self, part, &statements);
            proof.is_anchored = checks.note(ReceiptFact::Device, at, device).is_some();
            let hints = proof.check_hints(self);
            proof.hints = checks.note(ReceiptFact::Hints, at, hints);
            parts.push(proof);
        }
        let is_vouched = parts.iter().any(|it| it.is_anchored && it.is_voucher);
        let vouched = artifact.as_ref().filter(|_| is_vouched);
        checks.note(ReceiptFact::Enforcer, None, self.check_enforcer(vouched));
        let outcome = self.check_outcome(vouched, &parts);
        let outcome = checks.note(ReceiptFact::Outcome, None, outcome);
        let is_complete = outcome
            .as_ref()
            .is_some_and(|it| it.part_count == parts.len());
        let complete = is_complete.then_some(()).ok_or(ProofGap::Absent);
        checks.note(ReceiptFact::Complete, None, complete);
        let statement = outcome.map(|it| it.statement);
        let effect = statement.as_ref().map(|it| it.effect);
        let mut approvers = BTreeSet::new();
        let (votes, count) = match self.terms(artifact.as_ref()) {
            Err(gap) => (None, Err(gap)),
            Ok(terms) => {
                let count = PartCount::new(&terms, &parts);
                let is_absent = effect.is_some() && !is_complete || checks.has_gaps();
                let result = if count.agrees(effect, is_complete) {
                    Ok(())
                } else if is_absent {
                    Err(ProofGap::Absent)
                } else {
                    Err(Error::OtherCount.into())
                };
                approvers = count.approvers;
                (Some(count.proven), result)
            }
        };
        checks.note(ReceiptFact::Count, None, count);
        checks.note(ReceiptFact::Asked, None, anchors.check_asked(self));
        let parts = parts.into_iter().map(|proof| PartReport {
            verdict: proof.verdict,
            hints: proof.hints,
        });
        ReceiptReport {
            parts: parts.collect(),
            artifact,
            outcome: statement,
            votes,
            approvers,
            checks: checks.0,
        }
    }

    fn check_enforcer(&self, vouched: Option<&PlainArtifact>) -> Proof {
        match vouched.and_then(PlainArtifact::rule) {
            Some(ArtifactRule::Known(rule)) if rule.enforcer == self.enforcer => Ok(()),
            Some(ArtifactRule::Known(_)) => Err(Error::Rule(RuleRefusal::OtherEnforcer).into()),
            Some(ArtifactRule::Unknown) | None => Err(ProofGap::Absent),
        }
    }

    /// An artifact that nobody vouches for could name any key.
    fn check_outcome(
        &self,
        vouched: Option<&PlainArtifact>,
        parts: &[PartProof<'_>],
    ) -> Proof<OutcomeProof> {
        let (Some(envelope), Some(artifact)) = (&self.outcome, vouched) else {
            return Err(ProofGap::Absent);
        };
        let key = artifact.outcome_key().ok_or(Error::NoOutcomeKey)?;
        let content = open_outcome(envelope, key)?;
        let about = |proof: &PartProof<'_>| {
            let what = "decision";
            let artifact = proof.artifact.as_ref();
            let artifact = artifact.ok_or(Error::OtherOutcome { what })?;
            let decision = parse(DECISION, proof.part.decision.as_bytes())?;
            content.about(artifact, &self.tenant, &self.enforcer, &decision)
        };
        let statements = parts.iter().map(about);
        let statements: Vec<_> = statements.collect::<Result<_>>()?;
        let first = statements.into_iter().next();
        Ok(OutcomeProof {
            statement: first.ok_or(ProofGap::Absent)?,
            part_count: content.part_count(),
        })
    }

    /// The terms to count by. Without a rule, one decision settles the call.
    fn terms(&self, artifact: Option<&PlainArtifact>) -> Proof<RuleTerms> {
        match artifact.ok_or(ProofGap::Absent)?.rule() {
            Some(ArtifactRule::Known(rule)) => Ok(rule.terms.clone()),
            Some(ArtifactRule::Unknown) => Err(Error::Rule(RuleRefusal::UnknownVersion).into()),
            None => {
                let from = self.parts.iter().map(|part| part.approver.clone());
                Ok(RuleTerms {
                    asks: vec![RuleAsk {
                        approvals: 1,
                        from: from.collect(),
                        escalate: Vec::new(),
                    }],
                    rejections: 1,
                    comment: CommentDuty::None,
                    not_by: BTreeSet::new(),
                })
            }
        }
    }
}

struct OutcomeProof {
    statement: OutcomeStatement,
    part_count: usize,
}

impl PartProof<'_> {
    fn check_decision(&mut self, whole: Option<&PlainArtifact>, is_first: bool) -> Proof {
        let part = self.part;
        let other = |what| Error::OtherSubject { what };
        let node = parse(DECISION, part.decision.as_bytes())?;
        let claimed = DecisionMembers::signed_by(&part.device, &node)?;
        if claimed.request_id != part.request_id {
            return Err(other("request").into());
        }
        // Nobody but the person of the seat decides on it.
        if part
            .seat
            .as_ref()
            .is_some_and(|seat| *seat != part.approver)
        {
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

    fn check_hints(&self, receipt: &Receipt) -> Proof<ArtifactHints> {
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
    fn vote(&self) -> Option<ApproverVote> {
        let verdict = self.verdict?.verdict;
        let has_rule = self.artifact.as_ref()?.rule().is_some();
        // Approvals with hints that cannot be read may approve different things.
        if verdict == Verdict::Approve && has_rule && self.hints.is_none() {
            return None;
        }
        let hints = self.hints.clone().unwrap_or_default();
        Some(ApproverVote::new(&self.part.approver, verdict, &hints))
    }
}

/// The decisions of a receipt, counted anew.
struct PartCount {
    /// By the proven decisions alone.
    proven: VoteState,
    /// The people whose proven approvals satisfy the rule.
    approvers: BTreeSet<ApproverId>,
    /// The same, with rejections by devices that are not proven.
    cautious: VoteState,
}

impl PartCount {
    fn new(terms: &RuleTerms, parts: &[PartProof<'_>]) -> Self {
        let mut proven = VoteCount::new(terms.clone());
        let mut cautious = VoteCount::new(terms.clone());
        let mut devices = BTreeSet::new();
        for part in parts {
            let Some(vote) = part.vote() else { continue };
            // The holder of a device is one person, also if two approvers have it.
            let approves = part.is_anchored && vote.verdict == Verdict::Approve;
            if approves && !devices.insert(part.part.device.id()) {
                continue;
            }
            if part.is_anchored {
                proven.count(vote.clone());
            }
            if part.is_anchored || vote.verdict == Verdict::Reject {
                cautious.count(vote);
            }
        }
        let (proven, approvers) = (proven.state(), proven.approvers());
        Self {
            proven,
            approvers,
            cautious: cautious.state(),
        }
    }

    fn agrees(&self, effect: Option<OutcomeEffect>, is_complete: bool) -> bool {
        let is_satisfied = matches!(self.cautious, VoteState::Satisfied(_));
        let is_rejected = matches!(self.proven, VoteState::Rejected(_));
        match effect {
            Some(OutcomeEffect::Allowed) => is_satisfied && is_complete,
            Some(OutcomeEffect::Denied(DenialCause::Rejected)) => is_rejected,
            Some(OutcomeEffect::Denied(DenialCause::Missing)) => !is_satisfied,
            Some(OutcomeEffect::Denied(_)) => true,
            None => is_satisfied || is_rejected,
        }
    }
}
