//! Messages of the gateway, read strictly and not rewritten.

use crate::error::{ClientError, Result};
use countersign_e2e::SignedStatement;
use countersign_protocol::id::RequestId;
use countersign_protocol::json::{self, JsonNode, JsonValue};
use countersign_protocol::reader::MemberReader;

pub(super) fn parse(text: &[u8]) -> Result<JsonNode<'_>> {
    json::parse(text).map_err(ClientError::answer)
}

/// The members of a pushed message that are used. The others are the gateway's word, and are not
/// believed.
#[derive(Debug)]
pub(super) struct PushedMessage<'n, 'a> {
    pub(super) msg_id: &'n str,
    pub(super) msg_type: &'n str,
    pub(super) request_id: RequestId,
    pub(super) body: &'n JsonNode<'a>,
}

impl<'n, 'a> PushedMessage<'n, 'a> {
    pub(super) fn read(node: &'n JsonNode<'a>) -> Result<Self> {
        let mut reader = MemberReader::new(node, "")?;
        Ok(Self {
            msg_id: reader.str("msgId")?,
            msg_type: reader.str("msgType")?,
            request_id: reader.id("requestId")?,
            body: reader.nested("body")?,
        })
    }
}

/// A member of an object; `None` if it is absent, or if `node` is no object.
pub(super) fn member<'n, 'a>(node: &'n JsonNode<'a>, name: &str) -> Option<&'n JsonNode<'a>> {
    node.as_object()?.get(name)
}

pub(super) fn text<'n>(node: &'n JsonNode<'_>, name: &str) -> Option<&'n str> {
    member(node, name)?.as_str()
}

pub(super) fn array<'n, 'a>(node: &'n JsonNode<'a>, name: &str) -> Option<&'n [JsonNode<'a>]> {
    match &member(node, name)?.value {
        JsonValue::Array(list) => Some(list),
        _ => None,
    }
}

/// The statements of a list of devices. Malformed ones are skipped: they prove nothing.
pub(super) fn statements(list: &[JsonNode<'_>]) -> Vec<SignedStatement> {
    let statements = list.iter().map(SignedStatement::parse);
    statements.filter_map(Result::ok).collect()
}
