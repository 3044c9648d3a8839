//! What an agent is doing, reported for people to read. Nothing that is permitted depends on it, so every call is bounded by a
//! deadline, and a report that is lost is not sent again.

use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Builder;

use super::Enforcer;
use crate::error::ClientError;
use crate::gateway::GatewayCall;
use crate::wire;
use countersign_protocol::canonical::{Sha256Hex, canonical};
use countersign_protocol::id::{RequestId, SessionId, TextId};
use countersign_protocol::session::{EndReason, MAX_WORD_CHARS, SessionState, SnapshotType};

impl Enforcer {
    /// The protocol's name of an agent's session. Agents have ids of any form, and two agents may have the same one.
    pub fn session(&self, agent: &str, id: &str) -> Result<SessionId, ClientError> {
        let names = json!(["countersign session v1", self.id, agent, id]).to_string();
        let hash = Sha256Hex::of(names.as_bytes());
        let bytes = std::array::from_fn(|index| hash.as_bytes()[index]);
        let id = Builder::from_custom_bytes(bytes).into_uuid();
        text_id(&id.to_string())
    }

    /// A session has begun, or goes on: a second start changes nothing. The gateway can read `agent_host`; it does not learn where the
    /// agent works.
    pub async fn start_session(
        &self,
        session: &SessionId,
        agent_host: &str,
        deadline: Instant,
    ) -> Result<(), ClientError> {
        let agent_host: String = agent_host.chars().take(MAX_WORD_CHARS).collect();
        let event = json!({
            "eventType": "session.start",
            "sessionId": session,
            "createdAt": self.clock.now(),
            "agentHost": agent_host,
        });
        self.report(session, "session.start", &event, deadline)
            .await
    }

    /// What the agent is doing now. It opens a session that was never started.
    pub async fn session_status(
        &self,
        session: &SessionId,
        state: SessionState,
        deadline: Instant,
    ) -> Result<(), ClientError> {
        let event = json!({
            "eventType": "session.status",
            "sessionId": session,
            "state": state,
            "updatedAt": self.clock.now(),
        });
        self.report(session, "session.status", &event, deadline)
            .await
    }

    /// Something that happened in a session. The gateway can read `payload`.
    pub async fn snapshot(
        &self,
        session: &SessionId,
        payload: &Value,
        deadline: Instant,
    ) -> Result<(), ClientError> {
        let mut event = json!({
            "eventType": "session.snapshot",
            "sessionId": session,
            "snapshotId": self.clock.operation_id(),
            "snapshotType": SnapshotType::Summary,
            "createdAt": self.clock.now(),
            "payload": payload,
            "snapshotHashAlg": "SHA-256",
        });
        let hash = Sha256Hex::of(canonical(&wire::parse(event.to_string().as_bytes())?).as_bytes());
        event["snapshotHash"] = hash.to_string().into();
        self.report(session, "session.snapshot", &event, deadline)
            .await
    }

    /// A session has ended: what was granted for its duration is forgotten first, whatever the gateway says then.
    pub async fn end_session(
        &self,
        session: &SessionId,
        reason: EndReason,
        deadline: Instant,
    ) -> Result<(), ClientError> {
        let forgotten = self.delete_session_grants(session);
        let event = json!({
            "eventType": "session.end",
            "sessionId": session,
            "endedAt": self.clock.now(),
            "reason": reason,
        });
        let reported = self.report(session, "session.end", &event, deadline).await;
        forgotten.and(reported)
    }

    async fn report(
        &self,
        session: &SessionId,
        kind: &'static str,
        event: &Value,
        deadline: Instant,
    ) -> Result<(), ClientError> {
        let about: RequestId = text_id(session.as_str())?;
        let envelope =
            wire::envelope(&self.clock, kind, &about, self.sender(), &event.to_string())?;
        let call = GatewayCall::post("/v1/session/event", envelope);
        // Started before, or ended: an agent may take up a session again that the gateway has closed.
        let done = self.client.expect(&call, &[202, 409], deadline).await;
        done.map(drop)
    }
}

fn text_id<T: TextId>(text: &str) -> Result<T, ClientError> {
    T::parse(text).ok_or_else(|| ClientError::answer("an id"))
}
