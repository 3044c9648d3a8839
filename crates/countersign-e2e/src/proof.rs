//! Verifies a receipt: which of its claims are proven, and why the others are not. It trusts nothing
//! but the anchors. An approval is counted only if everything about it is proven.

use std::collections::BTreeSet;

use super::accept::{DECISION, SignedVerdict};
use super::anchors::ReceiptAnchors;
use super::artifact::PlainArtifact;
use super::comment_duty::CommentDuty;
use super::encoding::parse;
use super::error::{Error, Result};
use super::hints::ArtifactHints;
use super::outcome::{OutcomeStatement, claimed_time, open_outcome};
use super::part_count::PartCount;
use super::part_proof::PartProof;
use super::proof_gap::ProofGap;
use super::receipt::Receipt;
use super::receipt_teams::ReceiptTeams;
use super::rule::{ArtifactRule, RuleAsk, RuleTerms};
use super::rule_refusal::RuleRefusal;
use super::statement::{SIGNED, SignedStatement};
use super::votes::VoteState;
use countersign_protocol::id::ApproverId;
use countersign_protocol::timestamp::Timestamp;
use countersign_protocol::words;

words! {
    /// A claim of a receipt.
    ReceiptFact {
        /// The artifact is in the file, and its hash is right.
        Artifact = "artifact",
        /// The states in the file are those of the teams that the rule names. Only of a rule with
        /// teams.
        Teams = "teams",
        /// The part's device signed its decision, about the artifact with the part's request and
        /// seat.
        Decision = "decision",
        /// That device speaks for the part's approver, and for the seat.
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
        /// The device is still on its seat, in later states that the verifier knows, and the time of a
        /// stand-in is not over. Only if there are such states, or it is over.
        Current = "current",
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

impl Receipt {
    /// Verifies everything that the file and the anchors allow.
    pub fn verify(&self, anchors: &ReceiptAnchors) -> ReceiptReport {
        let at = self.outcome.as_ref().and_then(|text| claimed_time(text));
        let report = self.verify_at(anchors, at);
        // Whether somebody stood in depends on the time, for which the outcome vouches.
        let is_deputized = self.parts.iter().any(|part| !part.is_own());
        if at.is_none() || report.outcome.is_some() || !is_deputized {
            return report;
        }
        self.verify_at(anchors, None)
    }

    fn verify_at(&self, anchors: &ReceiptAnchors, at: Option<Timestamp>) -> ReceiptReport {
        let mut checks = CheckList(Vec::new());
        let artifact = self.artifact.as_ref().ok_or(ProofGap::Absent);
        let artifact = artifact.and_then(|text| Ok(PlainArtifact::parse(text.as_bytes())?));
        let artifact = checks.note(ReceiptFact::Artifact, None, artifact);
        let seats = match artifact.as_ref().and_then(PlainArtifact::rule) {
            Some(ArtifactRule::Known(rule)) if rule.terms.teams().next().is_some() => {
                let teams = ReceiptTeams::prove(self, &rule.terms, anchors);
                let teams = checks.note(ReceiptFact::Teams, None, teams);
                Some(teams.ok_or(ProofGap::Absent))
            }
            Some(ArtifactRule::Known(_) | ArtifactRule::Unknown) | None => None,
        };
        let statements = self.devices.iter().filter_map(|text| {
            // A statement that cannot be read proves nothing, and changes nothing.
            SignedStatement::parse(&parse(SIGNED, text.as_bytes()).ok()?).ok()
        });
        let statements: Vec<_> = statements.collect();
        let mut parts = Vec::new();
        for (place, part) in self.parts.iter().enumerate() {
            let own = Some(place);
            let mut proof = PartProof {
                part,
                artifact: None,
                verdict: None,
                hints: None,
                has_heads: true,
                is_anchored: false,
                is_voucher: false,
            };
            let decision = proof.check_decision(artifact.as_ref(), place == 0);
            checks.note(ReceiptFact::Decision, own, decision);
            let device = match &seats {
                // Without the artifact, nobody can tell whose seat it was.
                None if artifact.is_none() && !part.is_own() => Err(ProofGap::Absent),
                None => anchors.check_device(self, part, &statements),
                Some(Err(gap)) => Err(gap.clone()),
                Some(Ok(teams)) => {
                    let verdict = proof.verdict.map(|it| it.verdict);
                    let known = (anchors, statements.as_slice());
                    teams.check_device(self, (part, verdict), known, at)
                }
            };
            proof.is_anchored = checks.note(ReceiptFact::Device, own, device).is_some();
            let hints = proof.check_hints(self);
            proof.hints = checks.note(ReceiptFact::Hints, own, hints);
            if let (Some(Ok(teams)), Some(hints)) = (&seats, &proof.hints) {
                proof.has_heads = teams.are_named(part, hints);
            }
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
        let (votes, count) = match self.terms(artifact.as_ref(), seats.as_ref()) {
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
        if let Some(Ok(teams)) = &seats {
            for (place, part) in self.parts.iter().enumerate() {
                if let Some(current) = teams.check_current(part, anchors) {
                    checks.note(ReceiptFact::Current, Some(place), current);
                }
            }
        }
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
    fn terms(
        &self,
        artifact: Option<&PlainArtifact>,
        seats: Option<&Proof<ReceiptTeams>>,
    ) -> Proof<RuleTerms> {
        if let Some(teams) = seats {
            return Ok(teams.as_ref().map_err(Clone::clone)?.terms.clone());
        }
        match artifact.ok_or(ProofGap::Absent)?.rule() {
            Some(ArtifactRule::Known(rule)) => Ok(rule.terms.clone()),
            Some(ArtifactRule::Unknown) => Err(Error::Rule(RuleRefusal::UnknownVersion).into()),
            None => {
                let from = self.parts.iter().map(|part| part.approver.clone());
                Ok(RuleTerms {
                    asks: vec![RuleAsk {
                        approvals: 1,
                        from: from.collect(),
                        team: None,
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
