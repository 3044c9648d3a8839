//! A request: encrypt it, submit it, wait, and judge the answer. Everything but an accepted
//! approval is a denial with its cause.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::approval_request::{AcceptedApproval, ApprovalDenial, ApprovalRequest};
use super::orders::AgentPause;
use super::role::Enforcer;
use crate::error::{ClientError, Result};
use crate::gateway::{GatewayAnswer, GatewayCall, path};
use crate::random::random;
use crate::record::DecisionRecord;
use crate::wire;
use countersign_e2e::{
    self as e2e, DenialCause, DeviceId, DeviceTrust, OutcomeEffect, OutcomeKey, OutcomeStatement,
    OwnRequest, PlainArtifact, TrustedDevice, VerifiedApproval, VerifiedDecision, decision_digest,
    hide_repository, name_devices, seal_artifact,
};
use countersign_protocol::id::{ApproverId, RequestId, SessionId, TextId as _};
use countersign_protocol::json::JsonNode;
use countersign_protocol::timestamp::Timestamp;

/// Of one call that waits for a decision.
const LONG_POLL_TIMEOUT: Duration = Duration::from_secs(25);
/// The answer of such a call may be late by this, or by less at the end of the request.
const ANSWER_GRACE: Duration = Duration::from_secs(5);
const LAST_ANSWER_GRACE: Duration = Duration::from_millis(500);
/// Shortest time between two such calls: a gateway may answer at once, without a decision.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Of reading what approvers have ordered, before anyone is asked.
const ORDERS_TIMEOUT: Duration = Duration::from_secs(3);
/// Of an acknowledgement or a withdrawal.
const ACK_TIMEOUT: Duration = Duration::from_secs(3);

/// A request that is ready to be sent, or was.
pub struct PendingRequest<'e> {
    enforcer: &'e mut Enforcer,
    own: OwnRequest,
    artifact: PlainArtifact,
    outcome_key: OutcomeKey,
    asked: Vec<String>,
    devices: Vec<DeviceTrust>,
    /// Those that it was encrypted to.
    recipients: BTreeSet<DeviceId>,
    envelope: String,
    submit_until: Instant,
    until: Instant,
}

fn recipients(devices: &[DeviceTrust]) -> BTreeSet<DeviceId> {
    let in_force = devices.iter().flat_map(DeviceTrust::in_force);
    in_force.map(TrustedDevice::id).collect()
}

impl Enforcer {
    /// Encrypts a request to every device in force of the approvers.
    pub async fn prepare(
        &mut self,
        request: ApprovalRequest,
    ) -> Result<PendingRequest<'_>, ApprovalDenial> {
        let until = Instant::now() + request.timeout;
        let submit_until = until.min(Instant::now() + request.submit_timeout);
        let asked: Vec<String> = (self.approvers.iter())
            .map(|record| record.id.clone())
            .filter(|id| request.approver.as_ref().is_none_or(|only| only == id))
            .collect();
        if asked.is_empty() {
            return Err(ApprovalDenial::NotPaired);
        }
        // Read again however new the copy is: a device that was just added opens the request too.
        let devices = self.devices_of(&asked, true, submit_until).await?;
        if let Some(pause) = self.pause_of(&request, submit_until).await {
            return Err(ApprovalDenial::Paused(pause));
        }
        let outcome_key = OutcomeKey::generate(&mut random)?;
        let artifact = self.artifact(request, &devices, &outcome_key, until)?;
        let envelope = self.sealed(&artifact, &devices)?;
        Ok(PendingRequest {
            own: OwnRequest::of(&artifact, self.id.clone()),
            artifact,
            outcome_key,
            asked,
            recipients: recipients(&devices),
            devices,
            envelope,
            submit_until,
            until,
            enforcer: self,
        })
    }

    /// The submission of an artifact, encrypted to these devices.
    fn sealed(&self, artifact: &PlainArtifact, devices: &[DeviceTrust]) -> Result<String> {
        let trusts: Vec<_> = devices.iter().collect();
        let sealed = seal_artifact(&self.keys, &self.id, artifact, &trusts, &mut random)?;
        let sealed: Value =
            serde_json::from_str(&sealed.to_text()?).map_err(ClientError::answer)?;
        let context = artifact.context(self.id.clone());
        let mut body = json!({
            "artifactType": context.artifact_type,
            "artifactHash": context.artifact_hash.to_string(),
            "ciphertext": sealed,
            "expiresAt": context.expires_at,
        });
        // Without a token the gateway sends it to every paired approver. Those who are not pinned
        // here cannot read it.
        if let [only] = devices {
            let record = self.approver(only.approver().as_str());
            let token = record.map(|record| &record.routing_token);
            body["metadata"] = json!({ "routingToken": token });
        }
        let (id, body) = (artifact.request_id(), body.to_string());
        self.access.envelope("artifact.submit", id, &body)
    }

    /// The pause that keeps this request from being asked. If that cannot be found out, asking a
    /// person does no harm.
    async fn pause_of(&mut self, request: &ApprovalRequest, until: Instant) -> Option<AgentPause> {
        let deadline = until.min(Instant::now() + ORDERS_TIMEOUT);
        let _away = self.read_orders(deadline).await;
        let session = request.members.get("sessionId").and_then(Value::as_str);
        let session = session.and_then(SessionId::parse);
        self.pause(session.as_ref()).ok().flatten()
    }

    fn artifact(
        &self,
        request: ApprovalRequest,
        devices: &[DeviceTrust],
        outcome_key: &OutcomeKey,
        until: Instant,
    ) -> Result<PlainArtifact, ApprovalDenial> {
        let now = self.access.now();
        let left = until.saturating_duration_since(Instant::now());
        let left = left.try_into().unwrap_or(time::Duration::MAX);
        let expires_at = Timestamp::from(now.inner().saturating_add(left));
        let mut members = request.members;
        let own = [
            ("requestId", json!(self.access.clock.operation_id().0)),
            ("artifactType", request.artifact_type.into()),
            ("createdAt", json!(now)),
            ("expiresAt", json!(expires_at)),
            ("payload", Value::Object(request.payload)),
            ("artifactHashAlg", "SHA-256".into()),
        ];
        members.extend(own.map(|(name, value)| (name.to_owned(), value)));
        hide_repository(&mut members, &request.repository, &mut random)?;
        name_devices(&mut members, devices);
        outcome_key.name_in(&mut members);
        let text = Value::Object(members).to_string();
        Ok(PlainArtifact::complete(&text, &mut random)?)
    }
}

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
        let mut interrupted = None;
        loop {
            let left = self.time_left();
            if left.is_zero() {
                return Err(
                    interrupted.map_or(ApprovalDenial::TimedOut, ApprovalDenial::Unavailable)
                );
            }
            let next = Instant::now() + POLL_INTERVAL.min(left);
            match self.wait_once(left.min(LONG_POLL_TIMEOUT)).await {
                Ok(Some(answer)) => return Box::pin(self.judge(&answer, still_holds)).await,
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
            sleep_until(next).await;
        }
    }

    async fn submit(&self) -> Result<()> {
        let call = GatewayCall::post("/v1/artifacts", self.envelope.clone());
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
        let deadline = Instant::now() + ACK_TIMEOUT;
        let devices = self.enforcer.devices_of(&self.asked, true, deadline);
        let devices = devices.await?;
        let recipients = recipients(&devices);
        if recipients.is_subset(&self.recipients) {
            return Ok(());
        }
        let envelope = self.enforcer.sealed(&self.artifact, &devices)?;
        let call = path(&["v1", "exchanges", self.request_id().as_str(), "ciphertext"]);
        let call = GatewayCall::put(call, envelope);
        let client = &self.enforcer.access.client;
        client.expect(&call, &[204], deadline).await?;
        self.recipients = recipients;
        Ok(())
    }

    /// Waits for up to `time`: an answer that ends the request, or none yet.
    async fn wait_once(&self, time: Duration) -> Result<Option<GatewayAnswer>> {
        let request = path(&["v1", "exchanges", self.request_id().as_str(), "wait"]);
        let seconds = time.as_secs().max(1);
        let call = GatewayCall::get(format!("{request}?timeout={seconds}")).waiting(time);
        let usual = Instant::now() + time + ANSWER_GRACE;
        let deadline = usual.min(self.until + LAST_ANSWER_GRACE);
        let answer = (self.enforcer.access.client)
            .expect(&call, &[200, 204], deadline)
            .await?;
        let ended = answer.status == 200 || answer.headers.contains_key("exchange-state");
        Ok(ended.then_some(answer))
    }

    async fn judge(
        &mut self,
        answer: &GatewayAnswer,
        still_holds: impl AsyncFnOnce() -> Result<(), String>,
    ) -> Result<AcceptedApproval, ApprovalDenial> {
        if let Some(state) = answer.headers.get("exchange-state") {
            let state = String::from_utf8_lossy(state.as_bytes()).into_owned();
            return Err(ApprovalDenial::Ended(state));
        }
        let node = wire::parse(&answer.body)?;
        let message = wire::PushedMessage::read(&node)?;
        if message.msg_type != "decision.deliver" {
            return Err(ClientError::answer("a decision").into());
        }
        let judged = match self.accept_current(message.body).await? {
            Ok((VerifiedDecision::Approved(approval), accepted_at)) => match still_holds().await {
                Ok(()) => Ok((approval, accepted_at)),
                Err(change) => Err((ApprovalDenial::Changed(change), DenialCause::Changed)),
            },
            Ok((VerifiedDecision::Rejected(rejection), _)) => Err((
                ApprovalDenial::Rejected(Box::new(rejection)),
                DenialCause::Rejected,
            )),
            Err(error) => Err((ApprovalDenial::Untrusted(error), DenialCause::Untrusted)),
        };
        let effect = match &judged {
            Ok(_) => OutcomeEffect::Allowed,
            Err((_, cause)) => OutcomeEffect::Denied(*cause),
        };
        self.acknowledge(&message, effect).await;
        let (approval, accepted_at) = judged.map_err(|(denial, _)| denial)?;
        Ok(AcceptedApproval {
            approval,
            decision: message.body.raw.to_owned(),
            artifact: self.artifact.clone(),
            accepted_at,
        })
    }

    /// Judges a decision by a current list of devices. The outer error means that no such list
    /// could be read.
    async fn accept_current(
        &mut self,
        decision: &JsonNode<'_>,
    ) -> Result<Result<(VerifiedDecision, Timestamp), e2e::Error>, ApprovalDenial> {
        let mut refused = None;
        for is_reread in [false, true] {
            let devices = self.enforcer.devices_of(&self.asked, is_reread, self.until);
            self.devices = devices.await?;
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
    async fn acknowledge(&self, message: &wire::PushedMessage<'_, '_>, effect: OutcomeEffect) {
        let deadline = Instant::now() + ACK_TIMEOUT;
        let outcome = self.outcome_key.sign(&OutcomeStatement {
            request_id: self.request_id().clone(),
            artifact_hash: self.own.artifact_hash,
            tenant: self.enforcer.tenant.clone(),
            enforcer: self.enforcer.id.clone(),
            effect,
            decisions: decision_digest(message.body).into_iter().collect(),
            at: self.enforcer.access.now(),
        });
        let (access, id, msg_id) = (&self.enforcer.access, self.request_id(), message.msg_id);
        let outcome = outcome.ok();
        let sent = access.acknowledge(id, msg_id, outcome.as_deref(), deadline);
        // A gateway of an older version knows no outcomes.
        if (sent.await).is_err_and(|error| error.is_refusal(400)) {
            let _ignored = access.acknowledge(id, msg_id, None, deadline).await;
        }
    }

    /// Takes the request back. It does not matter if it has ended meanwhile.
    pub async fn withdraw(&self, reason: &str) -> Result<()> {
        let body = json!({ "reason": reason }).to_string();
        let (access, id) = (&self.enforcer.access, self.request_id());
        let call = path(&["v1", "exchanges", id.as_str(), "withdraw"]);
        let (expected, deadline) = ([200, 404, 409], Instant::now() + ACK_TIMEOUT);
        let sent = access.send(call, "exchange.withdrawn", id, &body, &expected, deadline);
        sent.await.map(drop)
    }
}
