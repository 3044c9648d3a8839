//! One part of a set: the exchange that asks one person, or all where one decision suffices. Its
//! decision is judged against the devices of these people alone.

use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

use super::approval_request::ApprovalDenial;
use super::pending_request::{DecisionMessage, PendingRequest, RequestSubmission};
use super::role::Enforcer;
use super::teams::HeadClaim;
use super::withdrawal::{take_back, take_back_unsent};
use crate::error::{ClientError, Result};
use crate::wire;
use countersign_e2e::{
    self as e2e, ApproverVote, DeviceId, DeviceTrust, OutcomeKey, OutcomeSubject, OwnRequest,
    PlainArtifact, RuleRefusal, SeatSource, TeamHead, VerifiedDecision, accept,
};
use countersign_protocol::id::ApproverId;

/// Of sending one request, for instance to a full inbox. Then the person drops out.
const SUBMIT_TIMEOUT: Duration = Duration::from_secs(30);
/// Of everything after the last approval that is needed: withdrawals, late decisions, device lists.
pub(super) const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);

#[expect(
    clippy::struct_excessive_bools,
    reason = "they do not depend on each other"
)]
pub(super) struct SetPart {
    /// The person whose decision it asks for, if it asks one only.
    pub(super) seat: Option<ApproverId>,
    pub(super) people: Vec<ApproverId>,
    /// Of a seat that a rule names by its team.
    pub(super) source: Option<SeatSource>,
    /// For this part alone: the parts wait at the same time.
    pub(super) enforcer: Enforcer,
    pub(super) artifact: PlainArtifact,
    pub(super) own: OwnRequest,
    pub(super) outcome_key: OutcomeKey,
    pub(super) devices: Vec<DeviceTrust>,
    /// None if the request is only to be taken back.
    pub(super) submission: Option<RequestSubmission>,
    /// Whether a call of before may have sent the request.
    pub(super) is_resumed: bool,
    /// Later than at once for somebody who is asked only by an escalation.
    pub(super) ask_at: Instant,
    pub(super) submit_until: Instant,
    pub(super) until: Instant,
    pub(super) decision: Option<PartDecision>,
    /// Why there is no decision.
    pub(super) loss: Option<ApprovalDenial>,
    /// Whether the gateway may have the request.
    pub(super) is_sent: bool,
    /// Whether the gateway has said that it has the request.
    pub(super) is_submitted: bool,
    /// Whether the signed outcome is also about this part.
    pub(super) is_named: bool,
}

/// The end of a part: its decision as it counts, if there is one.
pub(super) struct PartVote {
    pub(super) people: Vec<ApproverId>,
    pub(super) vote: Option<ApproverVote>,
    /// The person who decided, on the own seat or another one.
    pub(super) signer: Option<ApproverId>,
}

/// A decision, and the result of its checks.
pub(super) struct PartDecision {
    pub(super) message: DecisionMessage,
    pub(super) judged: Result<VerifiedDecision, e2e::Error>,
}

impl SetPart {
    fn asked(&self) -> Vec<String> {
        self.people.iter().map(ToString::to_string).collect()
    }

    fn pending(&mut self) -> PendingRequest<'_> {
        PendingRequest {
            own: self.own.clone(),
            artifact: self.artifact.clone(),
            outcome_key: self.outcome_key.clone(),
            asked: self.asked(),
            seat: self.source.clone(),
            devices: self.devices.clone(),
            submission: self.submission.clone(),
            submit_until: self.submit_until,
            until: self.until,
            enforcer: &mut self.enforcer,
        }
    }

    /// Sends the request, waits for the decision, and judges it. Without one, the reason is the
    /// part's loss.
    pub(super) async fn ask(&mut self, permits: &Semaphore) -> PartVote {
        sleep_until(self.ask_at.min(self.until)).await;
        let taken = if self.is_resumed {
            match self.take_decision(self.until).await {
                // The call of before was killed too soon.
                Err(ApprovalDenial::Refused(error)) if error.is_refusal(404) => {
                    self.ask_first(permits).await
                }
                taken => taken,
            }
        } else {
            self.ask_first(permits).await
        };
        self.loss = taken.err();
        PartVote {
            people: self.people.clone(),
            vote: self.vote(),
            signer: self.verified().map(|it| signer_of(it).0.clone()),
        }
    }

    async fn ask_first(&mut self, permits: &Semaphore) -> Result<(), ApprovalDenial> {
        let permit = permits.acquire().await;
        if self.until <= Instant::now() {
            return Err(ApprovalDenial::TimedOut);
        }
        self.submit().await?;
        drop(permit);
        self.take_decision(self.until).await
    }

    /// Sends a request that was not sent yet, before its time. A failure is ignored: the next call
    /// sends it again.
    pub(super) async fn ask_early(&mut self, deadline: Instant) {
        let is_sent = self.is_submitted || (self.is_resumed && self.ask_at <= Instant::now());
        if !is_sent && self.decision.is_none() && self.loss.is_none() {
            self.submit_until = deadline;
            let _unsent = self.submit().await;
        }
    }

    async fn submit(&mut self) -> Result<()> {
        self.submit_until = self.submit_until.min(Instant::now() + SUBMIT_TIMEOUT);
        self.is_sent = true;
        self.pending().submit().await?;
        self.is_submitted = true;
        Ok(())
    }

    async fn take_decision(&mut self, deadline: Instant) -> Result<(), ApprovalDenial> {
        let mut pending = self.pending();
        let answer = loop {
            if let Some(answer) = pending.wait(None).await? {
                break answer;
            }
        };
        let (message, judged) = Box::pin(pending.verified(&answer, deadline)).await?;
        let judged = judged.map(|(decision, _)| decision);
        self.devices = std::mem::take(&mut pending.devices);
        let judged = judged.and_then(|decision| self.with_heads(decision));
        self.decision = Some(PartDecision { message, judged });
        Ok(())
    }

    /// Takes the request back, if it is not decided. A decision that came before is taken over. An
    /// error means that there may be one that is not known here.
    pub(super) async fn close(&mut self, reason: &str) -> Result<(), ApprovalDenial> {
        if self.decision.is_some() || !self.is_sent {
            return Ok(());
        }
        let deadline = Instant::now() + SETTLE_TIMEOUT;
        let (access, id) = (&self.enforcer.access, &self.own.request_id);
        let taken = if self.is_submitted {
            take_back(access, id, reason, deadline).await
        } else {
            take_back_unsent(access, id, reason, deadline).await
        };
        if taken? {
            let taken = tokio::time::timeout_at(deadline, self.take_decision(deadline)).await;
            taken.unwrap_or(Err(ApprovalDenial::TimedOut))?;
        }
        Ok(())
    }

    /// Judges an approval again, by a list of devices that is read now. A rejection stays. An error
    /// means that there is no such list.
    pub(super) async fn judge_again(&mut self) -> Result<(), ApprovalDenial> {
        let Some(message) = self.approval().cloned() else {
            return Ok(());
        };
        let deadline = Instant::now() + SETTLE_TIMEOUT;
        // The states of teams were read again for all parts.
        let (seat, asked, again) = (self.source.as_ref(), self.asked(), self.source.is_none());
        let devices = self.enforcer.devices_on(seat, &asked, again, deadline);
        self.devices = match devices.await {
            // Nobody speaks for this part any more.
            Err(ClientError::Unpaired { .. }) => Vec::new(),
            devices => devices?,
        };
        let judged = self.judged(&message)?;
        let judged = judged.and_then(|decision| self.with_heads(decision));
        self.decision = Some(PartDecision { message, judged });
        Ok(())
    }

    /// The decision, unless it is an approval by a device that does not name the state of each team
    /// for which the seat counts.
    fn with_heads(&self, decision: VerifiedDecision) -> Result<VerifiedDecision, e2e::Error> {
        let VerifiedDecision::Approved(approval) = &decision else {
            return Ok(decision);
        };
        let mut source = self.source.iter();
        if source.all(|it| it.is_named_by(&approval.hints.teams)) {
            return Ok(decision);
        }
        Err(RuleRefusal::NoTeamHead.into())
    }

    pub(super) fn refuse_second_seat(&mut self) {
        if let Some(decision) = &mut self.decision {
            decision.judged = Err(RuleRefusal::SecondSeat.into());
        }
    }

    /// The heads that the decision names, approval or rejection.
    pub(super) fn heads(&self) -> Vec<HeadClaim> {
        let (approver, heads) = match self.verified() {
            Some(VerifiedDecision::Approved(it)) => (&it.approver, &it.hints.teams),
            Some(VerifiedDecision::Rejected(it)) => (&it.approver, &it.hints.teams),
            None => return Vec::new(),
        };
        let claim = |head: &TeamHead| HeadClaim {
            approver: approver.clone(),
            head: *head,
        };
        heads.iter().map(claim).collect()
    }

    /// Whether an approval, if this part has one, passes every check also by the time now.
    pub(super) fn still_counts(&self) -> Result<(), ApprovalDenial> {
        let Some(message) = self.approval() else {
            return Ok(());
        };
        let judged = self.judged(message)?;
        judged.map(drop).map_err(ApprovalDenial::Untrusted)
    }

    fn approval(&self) -> Option<&DecisionMessage> {
        let decision = self.decision.as_ref()?;
        matches!(decision.judged, Ok(VerifiedDecision::Approved(_))).then_some(&decision.message)
    }

    /// The result of the checks by the devices that are known here.
    fn judged(&self, message: &DecisionMessage) -> Result<Result<VerifiedDecision, e2e::Error>> {
        let node = wire::parse(message.body.as_bytes())?;
        let (keys, now) = (&self.enforcer.keys, self.enforcer.access.now());
        let devices: Vec<_> = self.devices.iter().collect();
        Ok(accept(&node, &self.own, keys, &devices, now))
    }

    /// The decision, if it passed every check.
    pub(super) fn verified(&self) -> Option<&VerifiedDecision> {
        self.decision.as_ref()?.judged.as_ref().ok()
    }

    /// The decision, if it passed every check, for the seat that it counts on.
    pub(super) fn vote(&self) -> Option<ApproverVote> {
        let decision = self.verified()?;
        Some(match &self.seat {
            Some(seat) => ApproverVote::on_seat(seat, decision),
            None => ApproverVote::from(decision),
        })
    }

    pub(super) fn subject(&self) -> OutcomeSubject {
        OutcomeSubject {
            request_id: self.own.request_id.clone(),
            artifact_hash: self.own.artifact_hash,
        }
    }

    /// Acknowledges the decision, with the outcome if that is about it.
    pub(super) async fn send_outcome(&mut self, outcome: Option<&str>) {
        let outcome = outcome.filter(|_| self.is_named);
        if let Some(decision) = &self.decision {
            let message = decision.message.clone();
            self.pending().send_outcome(&message, outcome).await;
        }
    }
}

/// The approver who made a decision, and the device.
pub(super) fn signer_of(decision: &VerifiedDecision) -> (&ApproverId, DeviceId) {
    match decision {
        VerifiedDecision::Approved(approval) => (&approval.approver, approval.device),
        VerifiedDecision::Rejected(rejection) => (&rejection.approver, rejection.device),
    }
}
