//! A request at the gateway: submit it, wait, and judge the answer. Everything but an accepted
//! approval is a denial with its cause.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::approval_request::{AcceptedApproval, ApprovalDenial};
use super::role::Enforcer;
use crate::error::{ClientError, Result};
use crate::gateway::{GatewayAnswer, GatewayCall, path};
use crate::log::note_outcome;
use crate::record::DecisionRecord;
use crate::wire;
use countersign_e2e::{
    self as e2e, DenialCause, DeviceId, DeviceTrust, OutcomeEffect, OutcomeKey, OutcomeStatement,
    OwnRequest, PlainArtifact, SeatSource, TrustedDevice, VerifiedApproval, VerifiedDecision,
    decision_digest,
};
use countersign_protocol::canonical::Sha256Hex;
use countersign_protocol::id::{ApproverId, RequestId};
use countersign_protocol::json::JsonNode;
use countersign_protocol::timestamp::Timestamp;

/// Of one call that waits for a decision.
const LONG_POLL_TIMEOUT: Duration = Duration::from_secs(25);
/// The answer of such a call may be late by this, or by less at the end of the request.
const ANSWER_GRACE: Duration = Duration::from_secs(5);
const LAST_ANSWER_GRACE: Duration = Duration::from_millis(500);
/// Shortest time between two such calls: a gateway may answer at once, without a decision.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Of an acknowledgement.
const ACK_TIMEOUT: Duration = Duration::from_secs(3);

/// A request that is ready to be sent, or was.
pub struct PendingRequest<'e> {
    pub(super) enforcer: &'e mut Enforcer,
    pub(super) own: OwnRequest,
    pub(super) artifact: PlainArtifact,
    pub(super) outcome_key: OutcomeKey,
    pub(super) asked: Vec<String>,
    /// Of a request to one seat under a rule with teams.
    pub(super) seat: Option<SeatSource>,
    pub(super) devices: Vec<DeviceTrust>,
    /// None if another process has sent it.
    pub(super) submission: Option<RequestSubmission>,
    pub(super) submit_until: Instant,
    pub(super) until: Instant,
}

/// The text to send, the same for each attempt.
#[derive(Clone)]
pub(super) struct RequestSubmission {
    pub(super) envelope: String,
    /// The devices that it was encrypted to.
    pub(super) recipients: BTreeSet<DeviceId>,
}

pub(super) fn recipients(devices: &[DeviceTrust]) -> BTreeSet<DeviceId> {
    let in_force = devices.iter().flat_map(DeviceTrust::in_force);
    in_force.map(TrustedDevice::id).collect()
}

/// A decision as the gateway delivered it.
#[derive(Debug, Clone)]
pub(crate) struct DecisionMessage {
    id: String,
    /// The signed body, byte for byte.
    pub(super) body: String,
    pub(super) digest: Option<Sha256Hex>,
}

/// A decision, and the result of its checks.
pub(super) type JudgedDecision = (
    DecisionMessage,
    Result<(VerifiedDecision, Timestamp), e2e::Error>,
);

/// A denial, and the cause that the approver is told.
pub(super) type SignedDenial = (ApprovalDenial, DenialCause);

/// An approval, and when it was accepted.
pub(super) type TimedApproval = (VerifiedApproval, Timestamp);

impl PendingRequest<'_> {
    pub fn request_id(&self) -> &RequestId {
        &self.own.request_id
    }

    /// The approvers of the request.
    pub fn asked(&self) -> impl Iterator<Item = &ApproverId> {
        self.devices.iter().map(DeviceTrust::approver)
    }

    /// The devices that can open the request.
    pub fn device_count(&self) -> usize {
        self.devices
            .iter()
            .map(|trust| trust.in_force().len())
            .sum()
    }

    /// How long a decision still counts, by both clocks: one of them stands still while the machine
    /// sleeps, the other can be set.
    pub fn time_left(&self) -> Duration {
        let by_date = self.own.expires_at.inner() - self.enforcer.access.now().inner();
        let by_date = Duration::try_from(by_date).unwrap_or_default();
        by_date.min(self.until.saturating_duration_since(Instant::now()))
    }

    /// Sends the request, says that it is `submitted`, and waits for the decision.
    pub async fn decision(
        &mut self,
        submitted: impl FnOnce(),
    ) -> Result<AcceptedApproval, ApprovalDenial> {
        Box::pin(self.decision_if(submitted, async || Ok(()))).await
    }

    /// Like `decision`, for a subject that can change. An approval counts only if `still_holds`
    /// succeeds; its error is the reason of the denial.
    pub async fn decision_if(
        &mut self,
        submitted: impl FnOnce(),
        still_holds: impl AsyncFnOnce() -> Result<(), String>,
    ) -> Result<AcceptedApproval, ApprovalDenial> {
        self.submit().await?;
        submitted();
        let answer = loop {
            if let Some(answer) = self.wait(None).await? {
                break answer;
            }
        };
        let (message, judged) = Box::pin(self.judge(&answer, self.until)).await?;
        let signer = Self::signer_of(&judged);
        let mut judged = match judged {
            Ok(approved) => match still_holds().await {
                Ok(()) => Ok(approved),
                Err(change) => Err((ApprovalDenial::Changed(change), DenialCause::Changed)),
            },
            Err(denied) => Err(denied),
        };
        let effect = match &judged {
            Ok(_) => OutcomeEffect::Allowed,
            Err((_, cause)) => OutcomeEffect::Denied(*cause),
        };
        let mut outcome = self.signed_outcome(&message, effect);
        let kept = self.keep_receipt(&message, signer, outcome.as_deref(), effect);
        if let Err(denial) = kept.await {
            let cause = DenialCause::Interrupted;
            judged = Err((denial, cause));
            outcome = self.signed_outcome(&message, OutcomeEffect::Denied(cause));
        }
        self.send_outcome(&message, outcome.as_deref()).await;
        let approved = judged.map_err(|(denial, _)| denial)?;
        let accepted = self.accepted(&message, approved);
        self.still_counts(&accepted)?;
        Ok(accepted)
    }

    pub(super) fn accepted(
        &self,
        message: &DecisionMessage,
        (approval, accepted_at): TimedApproval,
    ) -> AcceptedApproval {
        AcceptedApproval {
            approval,
            decision: message.body.clone(),
            artifact: self.artifact.clone(),
            accepted_at,
        }
    }

    /// Waits for an answer that ends the request: until its end, or at most until `pause`.
    pub(super) async fn wait(
        &mut self,
        pause: Option<Instant>,
    ) -> Result<Option<GatewayAnswer>, ApprovalDenial> {
        let mut interrupted = None;
        loop {
            let left = self.time_left();
            if left.is_zero() {
                return Err(
                    interrupted.map_or(ApprovalDenial::TimedOut, ApprovalDenial::Unavailable)
                );
            }
            let next = Instant::now() + POLL_INTERVAL.min(left);
            let rest = pause.map(|pause| pause.saturating_duration_since(Instant::now()));
            let time = left.min(rest.unwrap_or(left)).min(LONG_POLL_TIMEOUT);
            let is_over = || pause.is_some_and(|pause| Instant::now() >= pause);
            match self.wait_once(time).await {
                Ok(Some(answer)) => return Ok(Some(answer)),
                Ok(None) if is_over() => return Ok(None),
                Ok(None) => {
                    interrupted = None;
                    // The decision does not depend on it.
                    let _ignored = self.seal_again().await;
                }
                // The time-out has passed; this is no failure of the gateway.
                Err(ClientError::Slow { .. }) if Instant::now() >= self.until => {}
                Err(error) if error.is_unavailable() => interrupted = Some(error),
                Err(error) => return Err(error.into()),
            }
            if is_over() {
                return Ok(None);
            }
            sleep_until(next).await;
        }
    }

    pub(super) async fn submit(&self) -> Result<()> {
        let envelope = self.submission.as_ref().map(|it| it.envelope.clone());
        let call = GatewayCall::post("/v1/artifacts", envelope.unwrap_or_default());
        let client = &self.enforcer.access.client;
        let answer = client.expect(&call, &[202], self.submit_until).await;
        let answer = answer.map_err(|error| match self.asked.first() {
            Some(approver) if error.code() == Some("PAIRING_REVOKED") => {
                let approver = approver.clone();
                ClientError::Unpaired { approver }
            }
            _ => error,
        })?;
        let node = wire::parse(&answer.body)?;
        let message = wire::PushedMessage::read(&node)?;
        if message.msg_type != "artifact.accepted" || message.request_id != *self.request_id() {
            return Err(ClientError::answer("artifact.accepted for this request"));
        }
        Ok(())
    }

    /// Encrypts the request again if a device was added since, so that it can be opened there too.
    async fn seal_again(&mut self) -> Result<()> {
        let Some(submission) = &self.submission else {
            return Ok(());
        };
        let deadline = Instant::now() + ACK_TIMEOUT;
        let (seat, asked) = (self.seat.as_ref(), &self.asked);
        let devices = (self.enforcer.devices_on(seat, asked, true, deadline)).await?;
        if recipients(&devices).is_subset(&submission.recipients) {
            return Ok(());
        }
        let submission = self.enforcer.sealed(&self.artifact, &devices)?;
        let call = path(&["v1", "exchanges", self.request_id().as_str(), "ciphertext"]);
        let call = GatewayCall::put(call, submission.envelope.clone());
        let client = &self.enforcer.access.client;
        client.expect(&call, &[204], deadline).await?;
        self.submission = Some(submission);
        Ok(())
    }

    /// Waits for up to `time`: an answer that ends the request, or none yet.
    async fn wait_once(&self, time: Duration) -> Result<Option<GatewayAnswer>> {
        let request = path(&["v1", "exchanges", self.request_id().as_str(), "wait"]);
        let seconds = time.as_secs().max(1);
        let call = GatewayCall::get(format!("{request}?timeout={seconds}"));
        let call = call.waiting(time.max(Duration::from_secs(1)));
        let usual = Instant::now() + time + ANSWER_GRACE;
        let deadline = usual.min(self.until + LAST_ANSWER_GRACE);
        let answer = (self.enforcer.access.client)
            .expect(&call, &[200, 204], deadline)
            .await?;
        let ended = answer.status == 200 || answer.headers.contains_key("exchange-state");
        Ok(ended.then_some(answer))
    }

    /// The outer error means that there is no decision, or that it could not be judged by then.
    pub(super) async fn judge(
        &mut self,
        answer: &GatewayAnswer,
        deadline: Instant,
    ) -> Result<(DecisionMessage, Result<TimedApproval, SignedDenial>), ApprovalDenial> {
        let (message, judged) = self.verified(answer, deadline).await?;
        let judged = match judged {
            Ok((VerifiedDecision::Approved(approval), accepted_at)) => Ok((approval, accepted_at)),
            Ok((VerifiedDecision::Rejected(rejection), _)) => Err((
                ApprovalDenial::Rejected(Box::new(rejection)),
                DenialCause::Rejected,
            )),
            Err(error) => Err((ApprovalDenial::Untrusted(error), DenialCause::Untrusted)),
        };
        Ok((message, judged))
    }

    /// The decision of an answer, approval or rejection. The outer error is that of `judge`.
    pub(super) async fn verified(
        &mut self,
        answer: &GatewayAnswer,
        deadline: Instant,
    ) -> Result<JudgedDecision, ApprovalDenial> {
        if let Some(state) = answer.headers.get("exchange-state") {
            let state = String::from_utf8_lossy(state.as_bytes()).into_owned();
            return Err(ApprovalDenial::Ended(state));
        }
        let node = wire::parse(&answer.body)?;
        let message = wire::PushedMessage::read(&node)?;
        if message.msg_type != "decision.deliver" {
            return Err(ClientError::answer("a decision").into());
        }
        let judged = self.accept_current(message.body, deadline).await?;
        let message = DecisionMessage {
            id: message.msg_id.to_owned(),
            body: message.body.raw.to_owned(),
            digest: decision_digest(message.body),
        };
        Ok((message, judged))
    }

    /// Judges a decision by a current list of devices. The outer error means that no such list
    /// could be read.
    pub(super) async fn accept_current(
        &mut self,
        decision: &JsonNode<'_>,
        deadline: Instant,
    ) -> Result<Result<(VerifiedDecision, Timestamp), e2e::Error>, ApprovalDenial> {
        let mut refused = None;
        for is_reread in [false, true] {
            let (seat, asked) = (self.seat.as_ref(), &self.asked);
            self.devices = (self.enforcer.devices_on(seat, asked, is_reread, deadline)).await?;
            let accepted_at = self.enforcer.access.now();
            match self.accept(decision, accepted_at) {
                Ok(outcome) => return Ok(Ok((outcome, accepted_at))),
                // The device may have been added since the list was read.
                Err(error @ e2e::Error::UnknownDevice(_)) => refused = Some(error),
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Err(refused.unwrap_or(e2e::Error::DecisionSignature)))
    }

    fn accept(
        &self,
        decision: &JsonNode<'_>,
        now: Timestamp,
    ) -> Result<VerifiedDecision, e2e::Error> {
        let devices: Vec<_> = self.devices.iter().collect();
        e2e::accept(decision, &self.own, &self.enforcer.keys, &devices, now)
    }

    /// Whether an approval still counts, after time was spent on something else.
    pub(crate) fn still_counts(&self, accepted: &AcceptedApproval) -> Result<(), ApprovalDenial> {
        if self.time_left().is_zero() {
            return Err(ApprovalDenial::TimedOut);
        }
        let node = wire::parse(accepted.decision.as_bytes())?;
        let judged = self.accept(&node, self.enforcer.access.now());
        judged.map(drop).map_err(ApprovalDenial::Untrusted)
    }

    /// The decision as a file that anyone can verify offline.
    pub fn record(&self, accepted: &AcceptedApproval) -> Result<DecisionRecord, e2e::Error> {
        let VerifiedApproval {
            approver, device, ..
        } = &accepted.approval;
        let trusted = (self.devices.iter()).find_map(|trust| trust.device(*device).ok());
        let trusted = trusted.ok_or(e2e::Error::UnknownDevice(*device))?;
        Ok(DecisionRecord {
            tenant: self.enforcer.tenant.clone(),
            approver: approver.clone(),
            enforcer: self.enforcer.id.clone(),
            artifact: self.artifact.text().to_owned(),
            decision: accepted.decision.clone(),
            device: trusted.bundle().clone(),
            statements: Vec::new(),
        })
    }

    /// Acknowledges the decision with a signed outcome. A failure is ignored: the answer to the
    /// agent does not depend on it.
    pub(super) async fn acknowledge(&self, message: &DecisionMessage, effect: OutcomeEffect) {
        let outcome = self.signed_outcome(message, effect);
        self.send_outcome(message, outcome.as_deref()).await;
    }

    fn signed_outcome(&self, message: &DecisionMessage, effect: OutcomeEffect) -> Option<String> {
        let signed = self.outcome_key.sign(&OutcomeStatement {
            request_id: self.request_id().clone(),
            artifact_hash: self.own.artifact_hash,
            tenant: self.enforcer.tenant.clone(),
            enforcer: self.enforcer.id.clone(),
            effect,
            decisions: message.digest.into_iter().collect(),
            at: self.enforcer.access.now(),
        });
        signed.ok()
    }

    /// Acknowledges the decision with this outcome. A failure is ignored.
    pub(super) async fn send_outcome(&self, message: &DecisionMessage, outcome: Option<&str>) {
        let deadline = Instant::now() + ACK_TIMEOUT;
        let (access, id, msg_id) = (&self.enforcer.access, self.request_id(), &message.id);
        let sent = (access.acknowledge(id, msg_id, outcome, deadline)).await;
        // A gateway of an older version knows no outcomes.
        if sent.as_ref().is_err_and(|error| error.is_refusal(400)) {
            let _ignored = access.acknowledge(id, msg_id, None, deadline).await;
        }
        let outcome = outcome.filter(|_| sent.is_ok());
        let Enforcer { file, tenant, .. } = &*self.enforcer;
        note_outcome(file, tenant, id, message.digest, outcome, access.now());
    }
}
