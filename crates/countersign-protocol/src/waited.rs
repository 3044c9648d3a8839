//! A wait for the end of any of several exchanges.

use serde::Serialize;

use super::id::{ID_EXPECTED, RequestId, TextId};
use super::json::{Node, Value};
use super::reader::{Invalid, Reader};

/// Most exchanges of one wait.
pub const MAX_WAITED_FOR: usize = 200;

/// The exchanges that are no longer pending.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EndedExchanges {
    pub request_ids: Vec<RequestId>,
}

pub fn parse_waited_for(node: &Node<'_>) -> Result<Vec<RequestId>, Invalid> {
    let mut reader = Reader::new(node, "")?;
    let expected = format!("an array of 1 to {MAX_WAITED_FOR} request ids");
    let ids = match &reader.required("requestIds", "an array")?.value {
        Value::Array(ids) if (1..=MAX_WAITED_FOR).contains(&ids.len()) => ids,
        _ => return Err(Invalid::shape(reader.at("requestIds"), expected)),
    };
    let mut requests = Vec::with_capacity(ids.len());
    for (index, id) in ids.iter().enumerate() {
        let at = || format!("{}/{index}", reader.at("requestIds"));
        let id = id.as_str().and_then(RequestId::parse);
        let id = id.ok_or_else(|| Invalid::shape(at(), ID_EXPECTED))?;
        if requests.contains(&id) {
            return Err(Invalid::shape(at(), "an id unlike the others"));
        }
        requests.push(id);
    }
    reader.finish()?;
    Ok(requests)
}
