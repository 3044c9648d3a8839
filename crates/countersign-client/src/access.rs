//! The access of a role to the gateway: a client, a clock, and the name that it sends under.

use std::time::Duration;

use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::error::{ClientError, Result};
use crate::gateway::{GatewayAnswer, GatewayCall, GatewayClient, path};
use crate::profile::GatewayProfile;
use countersign_protocol::clock::Clock;
use countersign_protocol::envelope::{EnvelopeRecipient, EnvelopeSender, OutgoingEnvelope};
use countersign_protocol::id::RequestId;
use countersign_protocol::timestamp::Timestamp;

const CALL_TIMEOUT: Duration = Duration::from_secs(15);

/// The deadline of a call that starts now, while a person waits for it.
pub(crate) fn call_deadline() -> Instant {
    Instant::now() + CALL_TIMEOUT
}

pub(crate) struct GatewayAccess {
    pub(crate) client: GatewayClient,
    pub(crate) clock: Clock,
    sender: EnvelopeSender,
}

impl GatewayAccess {
    pub(crate) fn new(
        gateway: &GatewayProfile,
        clock: &Clock,
        sender: EnvelopeSender,
    ) -> Result<Self> {
        Ok(Self {
            client: gateway.client()?,
            clock: clock.clone(),
            sender,
        })
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn after(&self, time: Duration) -> Timestamp {
        let time = time.try_into().unwrap_or(time::Duration::MAX);
        Timestamp::from(self.now().inner().saturating_add(time))
    }

    /// Makes a call that a person waits for.
    pub(crate) async fn call(&self, call: &GatewayCall, expected: &[u16]) -> Result<GatewayAnswer> {
        self.client.expect(call, expected, call_deadline()).await
    }

    pub(crate) async fn get(&self, parts: &[&str]) -> Result<GatewayAnswer> {
        self.call(&GatewayCall::get(path(parts)), &[200]).await
    }

    /// The text of an Envelope around `body`, which is JSON.
    pub(crate) fn envelope(
        &self,
        msg_type: &'static str,
        request_id: &RequestId,
        body: &str,
    ) -> Result<String> {
        self.addressed(msg_type, request_id, None, None, body)
    }

    /// The same for a recipient, until a time.
    pub(crate) fn addressed(
        &self,
        msg_type: &'static str,
        request_id: &RequestId,
        recipient: Option<EnvelopeRecipient>,
        expires_at: Option<Timestamp>,
        body: &str,
    ) -> Result<String> {
        let body: &RawValue = serde_json::from_str(body).map_err(ClientError::answer)?;
        let envelope = OutgoingEnvelope {
            msg_id: self.clock.message_id(),
            msg_type,
            request_id: request_id.to_string(),
            created_at: self.now(),
            expires_at,
            sender: self.sender.clone(),
            recipient,
            trace: None,
            body,
        };
        serde_json::to_string(&envelope).map_err(ClientError::answer)
    }

    /// Posts an Envelope around `body`.
    pub(crate) async fn send(
        &self,
        path: impl Into<String>,
        msg_type: &'static str,
        request_id: &RequestId,
        body: &str,
        expected: &[u16],
        deadline: Instant,
    ) -> Result<GatewayAnswer> {
        let envelope = self.envelope(msg_type, request_id, body)?;
        let call = GatewayCall::post(path, envelope);
        self.client.expect(&call, expected, deadline).await
    }

    /// Acknowledges a message. The gateway may not know it any more.
    pub(crate) async fn acknowledge(
        &self,
        request_id: &RequestId,
        msg_id: &str,
        outcome: Option<&str>,
        deadline: Instant,
    ) -> Result<()> {
        let now = self.now();
        let mut body = json!({ "msgId": msg_id, "status": "processed", "ackAt": now });
        if let Some(outcome) = outcome {
            body["outcome"] = outcome.into();
        }
        let body = body.to_string();
        let acks = "/v1/acks";
        let sent = self.send(acks, "ack.submit", request_id, &body, &[200, 404], deadline);
        sent.await.map(drop)
    }

    pub(crate) async fn revoke_pairing(&self, routing_token: &str) -> Result<()> {
        let body = json!({ "routingToken": routing_token }).to_string();
        let call = GatewayCall::post("/v1/pairing/revoke", body);
        self.call(&call, &[200]).await.map(drop)
    }
}
