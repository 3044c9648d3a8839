//! The bodies of `refresh.request`, of `exchange.withdrawn` as a request, and of `ack.submit`.

use uuid::Uuid;

use super::id::MessageId;
use super::json::JsonNode;
use super::reader::{MemberReader, NONEMPTY_EXPECTED, ReadResult};
use super::text::is_longer;
use super::words::words;

pub const MAX_REASON_CHARS: usize = 2_000;

/// Reads a body that holds at most a `reason`, found at `pointer`.
pub fn parse_reason(node: &JsonNode<'_>, pointer: &str) -> ReadResult<Option<String>> {
    let mut body = MemberReader::new(node, pointer)?;
    let reason = body.optional_str("reason")?;
    if reason.is_some_and(|text| is_longer(text, MAX_REASON_CHARS)) {
        return Err(body.refusal("reason", format!("at most {MAX_REASON_CHARS} characters")));
    }
    body.finish()?;
    Ok(reason.map(str::to_owned))
}

words! {
    /// How far a recipient got with a message. Either ends redelivery.
    AckStatus {
        Received = "received",
        Processed = "processed",
    }
}

/// An outcome may have this many characters, all of them ASCII.
pub const MAX_OUTCOME_CHARS: usize = 16 << 10;

#[derive(Debug, Clone)]
pub struct RefreshAck {
    /// None if the id cannot be one of the gateway's own.
    pub message_id: Option<MessageId>,
    pub status: AckStatus,
    /// The enforcer's signed statement about the decision; not interpreted here.
    pub outcome: Option<String>,
}

pub fn parse_ack(node: &JsonNode<'_>) -> ReadResult<RefreshAck> {
    let mut body = MemberReader::new(node, "/body")?;
    let message_id = body.bounded_str("msgId", 1, 128)?;
    let status = body.word("status")?;
    body.timestamp("ackAt")?;
    let outcome = body.optional_bounded_str("outcome", MAX_OUTCOME_CHARS)?;
    match outcome.as_deref() {
        Some("") => return Err(body.refusal("outcome", NONEMPTY_EXPECTED)),
        Some(text) if !text.is_ascii() => return Err(body.refusal("outcome", "ASCII characters")),
        _ => {}
    }
    body.finish()?;
    Ok(RefreshAck {
        // Ids are compared by case: another spelling of the same number is another id.
        message_id: Uuid::try_parse(message_id)
            .ok()
            .map(MessageId)
            .filter(|id| id.to_string() == message_id),
        status,
        outcome,
    })
}
