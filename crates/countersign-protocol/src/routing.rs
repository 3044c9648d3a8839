//! Which approver a submission asks. The routing members of sealed metadata are neither stored nor
//! forwarded.

use super::id::ApproverId;
use super::json::JsonNode;
use super::pairing::RoutingToken;
use super::reader::{MemberReader, ReadResult};

const ROUTING_MEMBERS: [&str; 3] = ["routingToken", "approverId", "tenantId"];

/// The first of these that is present counts; if it leads nowhere, the next is not tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoutingTarget {
    Approver {
        id: ApproverId,
        /// The member that names it.
        pointer: &'static str,
    },
    Token(RoutingToken),
    /// No approver is named: every approver paired with the enforcer.
    Paired,
}

impl RoutingTarget {
    /// To the recipient of an Envelope.
    pub fn to(recipient: ApproverId) -> Self {
        Self::Approver {
            id: recipient,
            pointer: "/recipient/approverId",
        }
    }
}

/// Sealed metadata, split into its routing and the rest.
#[derive(Debug, Default)]
pub struct RoutingMetadata {
    pub token: Option<RoutingToken>,
    pub approver: Option<ApproverId>,
    /// The text to forward, if anything is left.
    pub forwarded: Option<String>,
}

impl RoutingMetadata {
    pub fn parse(node: &JsonNode<'_>, pointer: &str) -> ReadResult<Self> {
        let mut reader = MemberReader::new(node, pointer)?;
        Ok(Self {
            token: reader.optional_str("routingToken")?.map(RoutingToken::new),
            approver: reader.optional_id("approverId")?,
            forwarded: without_routing(node),
        })
    }

    /// The route of a submission with this metadata and, perhaps, a recipient.
    pub fn route(&self, recipient: Option<ApproverId>) -> RoutingTarget {
        match (recipient, &self.token, &self.approver) {
            (Some(approver), _, _) => RoutingTarget::to(approver),
            (None, Some(token), _) => RoutingTarget::Token(token.clone()),
            (None, None, Some(approver)) => RoutingTarget::Approver {
                id: approver.clone(),
                pointer: "/body/metadata/approverId",
            },
            (None, None, None) => RoutingTarget::Paired,
        }
    }
}

/// The text of an object without its routing members; verbatim if it has none.
fn without_routing(node: &JsonNode<'_>) -> Option<String> {
    let object = node.as_object()?;
    let kept: Vec<_> = object
        .iter()
        .filter(|member| !ROUTING_MEMBERS.contains(&member.name.as_ref()))
        .map(|member| format!("{}:{}", member.raw_name, member.node.raw))
        .collect();
    match kept.len() {
        0 => None,
        all if all == object.len() => Some(node.raw.to_owned()),
        _ => Some(format!("{{{}}}", kept.join(","))),
    }
}
