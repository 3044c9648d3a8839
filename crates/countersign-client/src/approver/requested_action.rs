//! The actions that an enforcer offers in an artifact.

use crate::wire;
use countersign_e2e::PlainArtifact;
use countersign_protocol::decision::Verdict;
use countersign_protocol::json::{self, JsonNode};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedAction {
    pub id: String,
    pub caption: String,
    pub verdict: Verdict,
}

/// The actions that an artifact offers. Malformed ones offer nothing.
pub fn requested_actions(artifact: &PlainArtifact) -> Vec<RequestedAction> {
    let node = json::parse(artifact.text().as_bytes());
    let actions = node.ok().and_then(|node| read_actions(&node));
    actions.unwrap_or_default()
}

fn read_actions(artifact: &JsonNode<'_>) -> Option<Vec<RequestedAction>> {
    // The name of the protocol is configured at the gateway, and stands between the two.
    let mut extensions = wire::member(artifact, "extensions")?.as_object()?.iter();
    let wanted = extensions.find(|member| {
        member.name.starts_with("org.") && member.name.ends_with(".requestedActions")
    })?;
    let read = |action: &JsonNode<'_>| {
        let decision = wire::text(action, "decision")?;
        Some(RequestedAction {
            id: wire::text(action, "id")?.to_owned(),
            caption: wire::text(action, "caption")?.to_owned(),
            verdict: (Verdict::ALL.into_iter()).find(|verdict| verdict.as_str() == decision)?,
        })
    };
    wire::array(&wanted.node, "actions")?
        .iter()
        .map(read)
        .collect()
}
