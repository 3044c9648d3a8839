//! Which approvers a submission asks. The routing members of sealed metadata are neither stored nor
//! forwarded.

use std::collections::BTreeSet;

use super::id::{ApproverId, TextId as _};
use super::json::JsonNode;
use super::pairing::RoutingToken;
use super::reader::{MemberReader, ReadResult};

const ROUTING_MEMBERS: [&str; 4] = ["routingToken", "approverId", "approverIds", "tenantId"];
const APPROVERS: &str = "ids of approvers, none twice";

/// The members of sealed metadata that name approvers.
pub const NAMING_MEMBERS: [&str; 3] = ["routingToken", "approverId", "approverIds"];

/// The first of these that is present counts; if it leads nowhere, the next is not tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoutingTarget {
    Approver {
        id: ApproverId,
        /// The member that names it.
        pointer: &'static str,
    },
    Token(RoutingToken),
    /// At least one, and none twice.
    Approvers(Vec<ApproverId>),
    /// No approver is named: every approver paired with the enforcer directly.
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
    pub approvers: Option<Vec<ApproverId>>,
    /// The text to forward, if anything is left.
    pub forwarded: Option<String>,
}

impl RoutingMetadata {
    pub fn parse(node: &JsonNode<'_>, pointer: &str) -> ReadResult<Self> {
        let mut reader = MemberReader::new(node, pointer)?;
        Ok(Self {
            token: reader.optional_str("routingToken")?.map(RoutingToken::new),
            approver: reader.optional_id("approverId")?,
            approvers: reader.optional_as("approverIds", APPROVERS, read_approvers)?,
            forwarded: without_routing(node),
        })
    }

    /// The route of a submission with this metadata and, perhaps, a recipient.
    pub fn route(&self, recipient: Option<ApproverId>) -> RoutingTarget {
        match (recipient, &self.token, &self.approver, &self.approvers) {
            (Some(approver), ..) => RoutingTarget::to(approver),
            (None, Some(token), ..) => RoutingTarget::Token(token.clone()),
            (None, None, Some(approver), _) => RoutingTarget::Approver {
                id: approver.clone(),
                pointer: "/body/metadata/approverId",
            },
            (None, None, None, Some(approvers)) => RoutingTarget::Approvers(approvers.clone()),
            (None, None, None, None) => RoutingTarget::Paired,
        }
    }
}

fn read_approvers(node: &JsonNode<'_>) -> Option<Vec<ApproverId>> {
    let ids = node.as_array()?.iter();
    let ids: Option<Vec<_>> = ids.map(|id| ApproverId::parse(id.as_str()?)).collect();
    let ids = ids.filter(|ids| !ids.is_empty())?;
    let different: BTreeSet<_> = ids.iter().collect();
    (different.len() == ids.len()).then_some(ids)
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
