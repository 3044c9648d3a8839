//! Reports of an agent's sessions, for people to read. No permission depends on them, so every call
//! is bounded by a deadline, and a lost report is not sent again.

use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Builder;

use super::role::Enforcer;
use crate::error::{ClientError, Result};
use crate::wire;
use countersign_protocol::canonical::{Sha256Hex, canonical};
use countersign_protocol::id::{EnforcerId, RequestId, SessionId, TextId};
use countersign_protocol::session::{EndReason, MAX_WORD_CHARS, SessionState, SnapshotType};

impl Enforcer {
    /// The protocol's name of an agent's session. Agents have ids of any form, and two agents may
    /// have the same one.
    pub fn session(&self, agent: &str, id: &str) -> Result<SessionId> {
        session_name(&self.id, agent, id)
    }

    /// A session has begun, or goes on, and with it the grants that were given for it. The gateway
    /// can read `agent_host`; it does not learn where the agent works.
    pub async fn start_session(
        &self,
        session: &SessionId,
        agent_host: &str,
        deadline: Instant,
    ) -> Result<()> {
        let revived = self.suspend_grants(session, false);
        let agent_host: String = agent_host.chars().take(MAX_WORD_CHARS).collect();
        let event = json!({ "createdAt": self.access.now(), "agentHost": agent_host });
        let reported = self.report(session, "session.start", event, deadline);
        revived.and(reported.await)
    }

    /// Reports the agent's state. It opens a session that was never started.
    pub async fn session_status(
        &self,
        session: &SessionId,
        state: SessionState,
        deadline: Instant,
    ) -> Result<()> {
        let event = json!({ "state": state, "updatedAt": self.access.now() });
        let reported = self.report(session, "session.status", event, deadline);
        reported.await
    }

    /// Reports an event in a session. The gateway can read `payload`.
    pub async fn snapshot(
        &self,
        session: &SessionId,
        payload: &Value,
        deadline: Instant,
    ) -> Result<()> {
        // The hash covers every member.
        let mut event = json!({
            "eventType": "session.snapshot",
            "sessionId": session,
            "snapshotId": self.access.clock.operation_id(),
            "snapshotType": SnapshotType::Summary,
            "createdAt": self.access.now(),
            "payload": payload,
            "snapshotHashAlg": "SHA-256",
        });
        let hash = Sha256Hex::of(canonical(&wire::parse(event.to_string().as_bytes())?).as_bytes());
        event["snapshotHash"] = hash.to_string().into();
        let reported = self.report(session, "session.snapshot", event, deadline);
        reported.await
    }

    /// A session has ended for good. Its grants are deleted first, even if the call then fails.
    pub async fn end_session(
        &self,
        session: &SessionId,
        reason: EndReason,
        deadline: Instant,
    ) -> Result<()> {
        let forgotten = self.delete_session_grants(session);
        forgotten.and(self.report_end(session, reason, deadline).await)
    }

    /// A session has ended, and the agent may take it up again. Until then its grants do not count.
    pub async fn leave_session(&self, session: &SessionId, deadline: Instant) -> Result<()> {
        let suspended = self.suspend_grants(session, true);
        let reported = self.report_end(session, EndReason::UserEnd, deadline);
        suspended.and(reported.await)
    }

    async fn report_end(
        &self,
        session: &SessionId,
        reason: EndReason,
        deadline: Instant,
    ) -> Result<()> {
        let event = json!({ "endedAt": self.access.now(), "reason": reason });
        let reported = self.report(session, "session.end", event, deadline);
        reported.await
    }

    async fn report(
        &self,
        session: &SessionId,
        kind: &'static str,
        mut event: Value,
        deadline: Instant,
    ) -> Result<()> {
        event["eventType"] = kind.into();
        event["sessionId"] = json!(session);
        let (about, event): (RequestId, _) = (text_id(session.as_str())?, event.to_string());
        // 409: started before, or ended. An agent may take up a session that the gateway has
        // closed.
        let (events, expected) = ("/v1/session/event", [202, 409]);
        let sent = (self.access).send(events, kind, &about, &event, &expected, deadline);
        sent.await.map(drop)
    }
}

/// The session under which an enforcer reports about something of this name.
pub(crate) fn session_name(enforcer: &EnforcerId, agent: &str, id: &str) -> Result<SessionId> {
    let names = json!(["countersign session v1", enforcer, agent, id]).to_string();
    let hash = Sha256Hex::of(names.as_bytes());
    let bytes = std::array::from_fn(|index| hash.as_bytes()[index]);
    let id = Builder::from_custom_bytes(bytes).into_uuid();
    text_id(&id.to_string())
}

fn text_id<T: TextId>(text: &str) -> Result<T> {
    T::parse(text).ok_or_else(|| ClientError::answer("an id"))
}
