//! Messages as they travel: Envelopes around texts that are never rewritten.

use serde_json::value::RawValue;

use super::error::ClientError;
use countersign_protocol::clock::Clock;
use countersign_protocol::envelope::{EnvelopeRecipient, EnvelopeSender, OutgoingEnvelope};
use countersign_protocol::id::RequestId;
use countersign_protocol::json::{self, JsonNode};
use countersign_protocol::reader::MemberReader;
use countersign_protocol::timestamp::Timestamp;

/// The text of an Envelope around `body`, which is JSON.
pub(super) fn envelope(
    clock: &Clock,
    msg_type: &'static str,
    request_id: &RequestId,
    sender: EnvelopeSender,
    body: &str,
) -> Result<String, ClientError> {
    addressed(clock, msg_type, request_id, (sender, None), None, body)
}

/// The same for a recipient, until a time.
pub(super) fn addressed(
    clock: &Clock,
    msg_type: &'static str,
    request_id: &RequestId,
    (sender, recipient): (EnvelopeSender, Option<EnvelopeRecipient>),
    expires_at: Option<Timestamp>,
    body: &str,
) -> Result<String, ClientError> {
    let body: &RawValue = serde_json::from_str(body).map_err(ClientError::answer)?;
    let envelope = OutgoingEnvelope {
        msg_id: clock.message_id(),
        msg_type,
        request_id: request_id.to_string(),
        created_at: clock.now(),
        expires_at,
        sender,
        recipient,
        trace: None,
        body,
    };
    serde_json::to_string(&envelope).map_err(ClientError::answer)
}

pub(super) fn parse(text: &[u8]) -> Result<JsonNode<'_>, ClientError> {
    json::parse(text).map_err(ClientError::answer)
}

/// What a pushed message says, its `msgId` and its body. What else an Envelope has is the gateway's word, and is not believed.
#[derive(Debug)]
pub(super) struct PushedMessage<'n, 'a> {
    pub(super) msg_id: &'n str,
    pub(super) msg_type: &'n str,
    pub(super) request_id: RequestId,
    pub(super) body: &'n JsonNode<'a>,
}

impl<'n, 'a> PushedMessage<'n, 'a> {
    pub(super) fn read(node: &'n JsonNode<'a>) -> Result<Self, ClientError> {
        let read = || {
            let mut reader = MemberReader::new(node, "")?;
            Ok(Self {
                msg_id: reader.str("msgId")?,
                msg_type: reader.str("msgType")?,
                request_id: reader.id("requestId")?,
                body: reader.nested("body")?,
            })
        };
        read().map_err(|invalid: countersign_protocol::reader::InvalidMember| {
            ClientError::answer(invalid)
        })
    }
}

/// The body of an `ack.submit`.
pub(super) fn ack_body(clock: &Clock, msg_id: &str, outcome: Option<&str>) -> String {
    let now = clock.now();
    let mut body = serde_json::json!({ "msgId": msg_id, "status": "processed", "ackAt": now });
    if let Some(outcome) = outcome {
        body["outcome"] = outcome.into();
    }
    body.to_string()
}
