//! A wait for the end of any of several exchanges.

use serde::Serialize;

use super::id::{ID_EXPECTED, RequestId, TextId};
use super::json::JsonNode;
use super::reader::{InvalidMember, MemberReader, ReadResult};

/// Most exchanges of one wait.
pub const MAX_WAITED_FOR: usize = 200;

/// The exchanges that are no longer pending.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EndedExchanges {
    pub request_ids: Vec<RequestId>,
}

pub fn parse_waited_for(node: &JsonNode<'_>) -> ReadResult<Vec<RequestId>> {
    let mut reader = MemberReader::new(node, "")?;
    let ids = reader.items("requestIds", MAX_WAITED_FOR, "request ids")?;
    let mut requests = Vec::with_capacity(ids.len());
    for (index, id) in ids.iter().enumerate() {
        let at = || format!("{}/{index}", reader.at("requestIds"));
        let id = id.as_str().and_then(RequestId::parse);
        let id = id.ok_or_else(|| InvalidMember::shape(at(), ID_EXPECTED))?;
        if requests.contains(&id) {
            return Err(InvalidMember::shape(at(), "an id unlike the others"));
        }
        requests.push(id);
    }
    reader.finish()?;
    Ok(requests)
}
