//! Asking several people about one call. Each has an exchange of their own, unless the first
//! decision settles it; this enforcer counts their decisions by the rule. The call is allowed only
//! once the open requests are withdrawn, the counted decisions have passed every check again, and
//! the outcome is signed.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::approval_request::ApprovalDenial;
use super::parked_set::KeptSet;
use super::role::Enforcer;
use super::set_count::{count_part, count_parts, denial_of, refuse_second_seats, still_needed};
use super::set_part::{PartVote, SETTLE_TIMEOUT, SetPart};
use crate::error::Result;
use countersign_e2e::{
    AskGap, DenialCause, OutcomeEffect, OutcomeKey, OutcomeStatement, RuleTerms, SetId,
    VerifiedApproval, VerifiedDecision, VoteChoice, VoteState,
};
use countersign_protocol::decision::Verdict;
use countersign_protocol::id::{ApproverId, RequestId};

const MAX_SUBMISSIONS: usize = 8;
/// Of asking everybody else at the end of a call, which must be answered soon.
const PARK_TIMEOUT: Duration = Duration::from_secs(5);

/// A set of requests that is ready to be sent, or was.
pub struct PendingSet<'e> {
    pub(super) enforcer: &'e mut Enforcer,
    pub(super) set: SetId,
    pub(super) terms: RuleTerms,
    pub(super) outcome_key: OutcomeKey,
    pub(super) parts: Vec<SetPart>,
    /// The signed outcome, once there is one.
    pub(super) outcome: Option<String>,
    /// The end of this call's waiting.
    pub(super) wait_until: Instant,
    /// The end of the requests.
    pub(super) until: Instant,
    /// Its file, if it goes on when the call has ended.
    pub(super) kept: Option<KeptSet>,
}

/// Approvals by as many people as the rule demands. All have passed every check.
#[derive(Debug, Clone)]
pub struct AcceptedSet {
    pub approvals: Vec<VerifiedApproval>,
    /// The one that all of them made.
    pub choice: VoteChoice,
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
    #[expect(clippy::misnamed_getters, reason = "the requests may end later")]
    pub fn until(&self) -> Instant {
        self.wait_until
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
            VoteState::Open(gaps) if self.kept.is_some() && Instant::now() < self.until => {
                return Err(Box::pin(self.park(&gaps)).await);
            }
            state => Ok(state),
        };
        let (denial, cause) = match last {
            Ok(VoteState::Satisfied(choice)) => match still_holds().await {
                Ok(()) => match self.take_and_conclude().await {
                    // The other call has told the approvers.
                    Err(ApprovalDenial::AlreadyUsed) => return Err(ApprovalDenial::AlreadyUsed),
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
        let (mut decided, mut signers, mut seconds) = (Vec::new(), BTreeSet::new(), Vec::new());
        let permits = Semaphore::new(MAX_SUBMISSIONS);
        let parts = self.parts.iter_mut().filter(|part| part.loss.is_none());
        let asking = parts.map(|part| part.ask(&permits));
        let mut asking: FuturesUnordered<_> = asking.collect();
        // A set that does not go on ends with its requests.
        let end = self.kept.as_ref().map(|_| self.wait_until);
        while let VoteState::Open(gaps) = count.state() {
            report(still_needed(&gaps, &decided));
            let next = match end {
                Some(end) => timeout_at(end, asking.next()).await.ok().flatten(),
                None => asking.next().await,
            };
            match next {
                Some(PartVote {
                    people,
                    vote,
                    signer,
                }) => {
                    // One person counts on one seat, also who stands in on another.
                    let is_approval =
                        (vote.as_ref()).is_some_and(|it| it.verdict == Verdict::Approve);
                    let signer = signer.filter(|_| is_approval);
                    let is_second = signer.is_some_and(|signer| !signers.insert(signer));
                    if is_second {
                        seconds.push(people.clone());
                    }
                    let vote = vote.filter(|_| !is_second);
                    decided.extend(vote.clone());
                    count_part(&mut count, &people, vote);
                }
                None => break,
            }
        }
        drop(asking);
        // The first one in time counts, also when all are judged again.
        for part in self
            .parts
            .iter_mut()
            .filter(|part| seconds.contains(&part.people))
        {
            part.refuse_second_seat();
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
        let heads: Vec<_> = self.parts.iter().flat_map(SetPart::heads).collect();
        let teams: Vec<_> = self.terms.teams().map(|head| head.team).collect();
        let deadline = Instant::now() + SETTLE_TIMEOUT;
        self.enforcer.confirm_heads(&heads, teams, deadline).await?;
        let judged = join_all(self.parts.iter_mut().map(SetPart::judge_again)).await;
        judged.into_iter().collect::<Result<(), _>>()?;
        refuse_second_seats(&mut self.parts);
        Ok(count_parts(&self.terms, &self.parts).state())
    }

    /// Leaves the set to the next call. Nobody is here later to ask those whose time has not come.
    async fn park(&mut self, gaps: &[AskGap]) -> ApprovalDenial {
        self.remember_claims();
        if let Some(kept) = &mut self.kept {
            kept.stored.is_everyone_asked = true;
            if let Err(error) = kept.write() {
                self.give_up("it cannot be kept", DenialCause::Interrupted)
                    .await;
                return error.into();
            }
        }
        let deadline = Instant::now() + PARK_TIMEOUT;
        let asking = self.parts.iter_mut().map(|part| part.ask_early(deadline));
        join_all(asking).await;
        let Some(kept) = &self.kept else {
            return ApprovalDenial::TimedOut;
        };
        ApprovalDenial::Parked {
            needed: still_needed(gaps, &[]),
            until: kept.stored.artifact.expires_at(),
        }
    }

    /// Has the next call of the enforcer know the states of teams that decisions of this one name.
    fn remember_claims(&self) {
        let claims: Vec<_> = self.parts.iter().flat_map(SetPart::heads).collect();
        let _unkept = self.enforcer.remember_claims(&claims);
    }

    /// Takes the set out of its file, for good. An error says that another call has done so.
    fn take(&mut self) -> Result<(), ApprovalDenial> {
        let Some(kept) = self.kept.take() else {
            return Ok(());
        };
        let is_first = self.enforcer.take_once(kept.stored.id())?;
        kept.place.remove()?;
        is_first.then_some(()).ok_or(ApprovalDenial::AlreadyUsed)
    }

    async fn take_and_conclude(&mut self) -> Result<(), ApprovalDenial> {
        self.take()?;
        self.conclude(OutcomeEffect::Allowed).await
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
        let is_counted =
            |part: &&SetPart| (part.vote()).is_some_and(|vote| counted.contains(&vote.approver));
        let verified = self.parts.iter().filter(is_counted);
        let approvals = verified.filter_map(|part| match part.verified()? {
            VerifiedDecision::Approved(approval) => Some(approval.clone()),
            VerifiedDecision::Rejected(_) => None,
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

    pub(super) async fn give_up(&mut self, reason: &str, mut cause: DenialCause) {
        self.remember_claims();
        let _other = self.take();
        let _unknown = self.close(reason).await;
        // Decisions that had come before may name others.
        self.remember_claims();
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
