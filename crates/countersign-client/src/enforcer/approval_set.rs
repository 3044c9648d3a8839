//! Asking several people about one call. Each has an exchange of their own, unless the first
//! decision settles it; this enforcer counts their decisions by the rule. The call is allowed only
//! once the open requests are withdrawn, the counted decisions have passed every check again, and
//! the outcome is signed.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::approval_request::{ApprovalDenial, ApprovalRequest};
use super::role::Enforcer;
use super::set_count::{
    count_part, count_parts, denial_of, refuse_shared_devices, still_needed, too_few,
};
use super::set_part::SetPart;
use crate::error::{ClientError, Result};
use crate::random::random;
use countersign_e2e::{
    ApprovalRule, DenialCause, OutcomeEffect, OutcomeKey, OutcomeStatement, OwnRequest,
    PlainArtifact, RuleTerms, SetId, VerifiedApproval, VerifiedDecision, VoteChoice, VoteCount,
    VoteState,
};
use countersign_protocol::id::{ApproverId, RequestId, TextId as _};

const MAX_SUBMISSIONS: usize = 8;

/// A set of requests that is ready to be sent, or was.
pub struct PendingSet<'e> {
    pub(super) enforcer: &'e mut Enforcer,
    set: SetId,
    terms: RuleTerms,
    outcome_key: OutcomeKey,
    pub(super) parts: Vec<SetPart>,
    /// The signed outcome, once there is one.
    pub(super) outcome: Option<String>,
    until: Instant,
}

/// Approvals by as many people as the rule demands. All have passed every check.
#[derive(Debug, Clone)]
pub struct AcceptedSet {
    pub approvals: Vec<VerifiedApproval>,
    /// The one that all of them made.
    pub choice: VoteChoice,
}

impl Enforcer {
    /// Prepares a request for each person that the rule names. Denies at once if too few of them
    /// can be asked.
    pub async fn prepare_set(
        &mut self,
        request: ApprovalRequest,
        terms: RuleTerms,
    ) -> Result<PendingSet<'_>, ApprovalDenial> {
        if request.approver.is_some() {
            let problem = "a rule says who is asked, so no approver can be named beside it";
            return Err(ClientError::Choice(problem).into());
        }
        let begun = Instant::now();
        let until = begun + request.timeout;
        let submit_until = until.min(begun + request.submit_timeout);
        self.reload()?;
        let people = terms.people().into_iter();
        let people = people.filter(|id| !terms.not_by.contains(id));
        let people = people.filter(|id| self.approver(id.as_str()).is_some());
        let people: Vec<_> = people.map(ToString::to_string).collect();
        check_people(&terms, people.iter().map(String::as_str))?;
        let devices = self.devices_of(&people, true, submit_until).await?;
        let devices: Vec<_> = (devices.into_iter())
            .filter(|trust| !trust.in_force().is_empty())
            .collect();
        check_people(&terms, devices.iter().map(|it| it.approver().as_str()))?;
        if let Some(pause) = self.pause_of(&request, submit_until).await {
            return Err(ApprovalDenial::Paused(pause));
        }
        let (set, outcome_key) = (
            SetId::generate(&mut random)?,
            OutcomeKey::generate(&mut random)?,
        );
        let is_joint = devices.len() > 1
            && terms.takes_first_decision()
            && self.gateway_names_several(submit_until).await;
        let seats: Vec<_> = if is_joint {
            vec![devices.clone()]
        } else {
            devices.iter().map(|trust| vec![trust.clone()]).collect()
        };
        let mut first: Option<PlainArtifact> = None;
        let mut parts = Vec::new();
        for trusts in seats {
            let people: Vec<_> = trusts.iter().map(|it| it.approver().clone()).collect();
            let seat = people.first().filter(|_| !is_joint).cloned();
            let artifact = if let Some(first) = &first {
                let id = RequestId::parse(&self.access.clock.operation_id().to_string());
                let id = id.ok_or_else(|| ClientError::answer("the id of a request"))?;
                first.for_part(&id, seat.as_ref())?
            } else {
                let rule = ApprovalRule {
                    enforcer: self.id.clone(),
                    set,
                    seat: seat.clone(),
                    terms: terms.clone(),
                };
                let mut request = request.clone();
                rule.name_in(&mut request.members);
                let artifact = self.artifact(request, &devices, &outcome_key, until)?;
                first.insert(artifact).clone()
            };
            let after = people
                .iter()
                .map(|person| terms.seconds_until_asked(person));
            let after = Duration::from_secs(u64::from(after.max().unwrap_or_default()));
            let is_later = !after.is_zero();
            parts.push(SetPart {
                ask_at: begun + after,
                enforcer: self.another(),
                own: OwnRequest::of(&artifact, self.id.clone()),
                submission: self.sealed(&artifact, &trusts)?,
                outcome_key: outcome_key.clone(),
                decision: None,
                loss: None,
                is_sent: false,
                is_submitted: false,
                is_named: false,
                seat,
                people,
                artifact,
                devices: trusts,
                submit_until: if is_later { until } else { submit_until },
                until,
            });
        }
        Ok(PendingSet {
            enforcer: self,
            set,
            terms,
            outcome_key,
            parts,
            outcome: None,
            until,
        })
    }
}

/// Denies if these people are too few, whatever they decide.
fn check_people<'p>(
    terms: &RuleTerms,
    people: impl Iterator<Item = &'p str>,
) -> Result<(), ApprovalDenial> {
    let asked: BTreeSet<_> = people.collect();
    let mut count = VoteCount::new(terms.clone());
    for person in terms.people() {
        if !asked.contains(person.as_str()) {
            count.drop_out(person);
        }
    }
    match count.state() {
        VoteState::Open(_) => Ok(()),
        VoteState::Impossible(gaps) => Err(too_few(&gaps, terms, &[])),
        VoteState::Satisfied(_) | VoteState::Rejected(_) => Err(too_few(&[], terms, &[])),
    }
}

impl PendingSet<'_> {
    /// The people who are asked.
    pub fn asked(&self) -> impl Iterator<Item = &ApproverId> {
        self.parts.iter().flat_map(|part| &part.people)
    }

    /// The ids of the requests, in the order of the people.
    pub fn request_ids(&self) -> impl Iterator<Item = &RequestId> {
        (self.parts.iter()).flat_map(|part| part.people.iter().map(|_| &part.own.request_id))
    }

    /// The end of the waiting.
    pub fn until(&self) -> Instant {
        self.until
    }

    /// Sends the requests, and waits until the rule is satisfied or cannot be any more.
    pub async fn decision(&mut self) -> Result<AcceptedSet, ApprovalDenial> {
        Box::pin(self.decision_if(|_| (), async || Ok(()))).await
    }

    /// Like `decision`, for a subject that can change: `still_holds` is asked once there are enough
    /// approvals, and its error is the reason of the denial. `report` is told what is still needed.
    pub async fn decision_if(
        &mut self,
        report: impl FnMut(String),
        still_holds: impl AsyncFnOnce() -> Result<(), String>,
    ) -> Result<AcceptedSet, ApprovalDenial> {
        let first = Box::pin(self.collect(report)).await;
        let last = match first {
            VoteState::Satisfied(_) => Box::pin(self.settle()).await,
            state => Ok(state),
        };
        let (denial, cause) = match last {
            Ok(VoteState::Satisfied(choice)) => match still_holds().await {
                Ok(()) => match self.conclude(OutcomeEffect::Allowed).await {
                    Ok(()) => {
                        self.send_outcome().await;
                        self.still_counts()?;
                        return Ok(self.accepted(choice));
                    }
                    Err(error) => (error, DenialCause::Interrupted),
                },
                Err(change) => (ApprovalDenial::Changed(change), DenialCause::Changed),
            },
            Ok(state) => denial_of(&state, &self.terms, &self.parts),
            Err(error) => (error, DenialCause::Interrupted),
        };
        self.give_up("the call was denied", cause).await;
        Err(denial)
    }

    /// Asks everyone at the same time. Somebody who cannot be asked holds up nobody else.
    async fn collect(&mut self, mut report: impl FnMut(String)) -> VoteState {
        let mut count = count_parts(&self.terms, &self.parts);
        let mut decided = Vec::new();
        let permits = Semaphore::new(MAX_SUBMISSIONS);
        let asking = self.parts.iter_mut().map(|part| part.ask(&permits));
        let mut asking: FuturesUnordered<_> = asking.collect();
        while let VoteState::Open(gaps) = count.state() {
            report(still_needed(&gaps, &decided));
            match asking.next().await {
                Some((people, vote)) => {
                    decided.extend(vote.clone());
                    count_part(&mut count, &people, vote);
                }
                None => break,
            }
        }
        count.state()
    }

    /// Withdraws the open requests, counts the decisions that had come before, and judges all again
    /// by device lists that are read now: somebody may have lost their device since.
    async fn settle(&mut self) -> Result<VoteState, ApprovalDenial> {
        self.close("enough people have decided").await?;
        let state = count_parts(&self.terms, &self.parts).state();
        if !matches!(state, VoteState::Satisfied(_)) {
            return Ok(state);
        }
        let judged = join_all(self.parts.iter_mut().map(SetPart::judge_again)).await;
        judged.into_iter().collect::<Result<(), _>>()?;
        refuse_shared_devices(&mut self.parts);
        Ok(count_parts(&self.terms, &self.parts).state())
    }

    /// Whether the approvals still count, after time was spent on something else.
    pub fn still_counts(&self) -> Result<(), ApprovalDenial> {
        if self.until <= Instant::now() {
            return Err(ApprovalDenial::TimedOut);
        }
        self.parts.iter().try_for_each(SetPart::still_counts)
    }

    /// The approvals of this choice. Others approve something else, and did not count.
    fn accepted(&self, choice: VoteChoice) -> AcceptedSet {
        let counted = count_parts(&self.terms, &self.parts).approvers();
        let verified = self.parts.iter().filter_map(SetPart::verified);
        let approvals = verified.filter_map(|decision| match decision {
            VerifiedDecision::Approved(approval) if counted.contains(&approval.approver) => {
                Some(approval.clone())
            }
            VerifiedDecision::Approved(_) | VerifiedDecision::Rejected(_) => None,
        });
        AcceptedSet {
            approvals: approvals.collect(),
            choice,
        }
    }

    /// Signs the outcome and keeps the receipt. Before that, there is no outcome that could be sent.
    async fn conclude(&mut self, effect: OutcomeEffect) -> Result<(), ApprovalDenial> {
        if let Some(outcome) = self.signed_outcome(effect)? {
            self.keep_receipt(&outcome, effect).await?;
            self.outcome = Some(outcome);
        }
        Ok(())
    }

    /// The outcome about the decided parts. Of an allowed call, a decision that failed a check is not
    /// among them. Without any decision there is nothing to sign.
    fn signed_outcome(&mut self, effect: OutcomeEffect) -> Result<Option<String>, ApprovalDenial> {
        let (mut subjects, mut decisions) = (Vec::new(), Vec::new());
        for part in &mut self.parts {
            let counts = effect != OutcomeEffect::Allowed || part.verified().is_some();
            let decision = part.decision.as_ref().filter(|_| counts);
            let digest = decision.and_then(|decision| decision.message.digest);
            part.is_named = digest.is_some();
            if let Some(digest) = digest {
                subjects.push(part.subject());
                decisions.push(digest);
            }
        }
        let Some((own, further)) = subjects.split_first() else {
            return Ok(None);
        };
        let statement = OutcomeStatement {
            request_id: own.request_id.clone(),
            artifact_hash: own.artifact_hash,
            tenant: self.enforcer.tenant.clone(),
            enforcer: self.enforcer.id.clone(),
            effect,
            decisions,
            at: self.enforcer.access.now(),
        };
        let signed = self.outcome_key.sign_set(&statement, self.set, further)?;
        Ok(Some(signed))
    }

    /// Sends the outcome with the acknowledgements of the decided parts. The answer to the agent
    /// does not depend on it.
    async fn send_outcome(&mut self) {
        let outcome = self.outcome.as_deref();
        let sending = self.parts.iter_mut().map(|part| part.send_outcome(outcome));
        join_all(sending).await;
    }

    /// Withdraws all requests that are open, and tells those who have decided.
    pub async fn interrupt(&mut self) {
        self.give_up("interrupted", DenialCause::Interrupted).await;
    }

    /// Withdraws the open requests, and takes over the decisions that had come before.
    async fn close(&mut self, reason: &str) -> Result<(), ApprovalDenial> {
        let closing = self.parts.iter_mut().map(|part| part.close(reason));
        join_all(closing).await.into_iter().collect()
    }

    async fn give_up(&mut self, reason: &str, mut cause: DenialCause) {
        let _unknown = self.close(reason).await;
        // The last approvals came too late to be waited for.
        let state = count_parts(&self.terms, &self.parts).state();
        if cause == DenialCause::Missing && matches!(state, VoteState::Satisfied(_)) {
            cause = DenialCause::Interrupted;
        }
        // An outcome that was signed before may have been sent; there is no second one. Without any,
        // they learn only that the decisions arrived.
        if self.outcome.is_none() {
            let _unsigned = self.conclude(OutcomeEffect::Denied(cause)).await;
        }
        self.send_outcome().await;
    }
}
