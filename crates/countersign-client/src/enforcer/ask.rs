//! Preparing a request: who is asked, the artifact, and its encryption to their devices.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::approval_request::{ApprovalDenial, ApprovalRequest};
use super::orders::AgentPause;
use super::pending_request::{PendingRequest, RequestSubmission, recipients};
use super::role::Enforcer;
use crate::error::{ClientError, Result};
use crate::gateway::GatewayCall;
use crate::log::newest_note;
use crate::random::random;
use countersign_e2e::{
    ArtifactRule, DeviceTrust, OutcomeKey, OwnRequest, PlainArtifact, hide_repository,
    name_checkpoint, name_devices, seal_artifact,
};
use countersign_protocol::id::{SessionId, TextId as _};
use countersign_protocol::timestamp::Timestamp;

/// Of reading what approvers have ordered, before anyone is asked.
const ORDERS_TIMEOUT: Duration = Duration::from_secs(3);
/// Of asking a gateway what it knows.
const STATUS_TIMEOUT: Duration = Duration::from_secs(3);

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
        // One decision settles this request. People must not be shown that others are asked too.
        if artifact.rule().is_some() {
            let problem = "a request to several people cannot be made by its members";
            return Err(ClientError::Choice(problem).into());
        }
        let submission = Some(self.sealed(&artifact, &devices)?);
        Ok(PendingRequest {
            own: OwnRequest::of(&artifact, self.id.clone()),
            artifact,
            outcome_key,
            asked,
            seat: None,
            devices,
            submission,
            submit_until,
            until,
            enforcer: self,
        })
    }

    /// The submission of an artifact, encrypted to these devices.
    pub(super) fn sealed(
        &self,
        artifact: &PlainArtifact,
        devices: &[DeviceTrust],
    ) -> Result<RequestSubmission> {
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
        let by_team = artifact.rule().is_some_and(ArtifactRule::names_team);
        if let ([only], false) = (devices, by_team) {
            let record = self.approver(only.approver().as_str());
            let token = record.map(|record| &record.routing_token);
            body["metadata"] = json!({ "routingToken": token });
        } else if artifact.rule().is_some() {
            let people: Vec<_> = devices.iter().map(DeviceTrust::approver).collect();
            body["metadata"] = json!({ "approverIds": people });
        }
        // Otherwise the gateway sends it to every paired approver. Those who are not pinned here cannot
        // read it.
        let (id, body) = (artifact.request_id(), body.to_string());
        Ok(RequestSubmission {
            envelope: self.access.envelope("artifact.submit", id, &body)?,
            recipients: recipients(devices),
        })
    }

    /// Whether one request can ask several approvers that it names. If that cannot be found out, each
    /// is asked alone: a gateway that does not know the names would ask everyone.
    pub(super) async fn gateway_names_several(&self, until: Instant) -> bool {
        let deadline = until.min(Instant::now() + STATUS_TIMEOUT);
        let call = GatewayCall::get("/v1/status");
        let Ok(answer) = self.access.client.expect(&call, &[200], deadline).await else {
            return false;
        };
        let status = serde_json::from_slice::<Value>(&answer.body).unwrap_or_default();
        let routing = status["routing"].as_array();
        routing.is_some_and(|members| members.iter().any(|member| member == "approverIds"))
    }

    /// The pause that keeps this request from being asked. If that cannot be found out, asking a
    /// person does no harm.
    pub(super) async fn pause_of(
        &mut self,
        request: &ApprovalRequest,
        until: Instant,
    ) -> Option<AgentPause> {
        let session = request.members.get("sessionId").and_then(Value::as_str);
        self.current_pause(session.and_then(SessionId::parse), until)
            .await
    }

    pub(super) async fn current_pause(
        &mut self,
        session: Option<SessionId>,
        until: Instant,
    ) -> Option<AgentPause> {
        let deadline = until.min(Instant::now() + ORDERS_TIMEOUT);
        let _away = self.read_orders(deadline).await;
        self.pause(session.as_ref()).ok().flatten()
    }

    pub(super) fn artifact(
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
        if let Some(note) = newest_note(&self.file, &self.tenant) {
            name_checkpoint(&mut members, &note);
        }
        let text = Value::Object(members).to_string();
        Ok(PlainArtifact::complete(&text, &mut random)?)
    }
}
