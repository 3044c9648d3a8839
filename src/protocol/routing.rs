//! Which approver a submission asks. The routing members of sealed metadata are neither stored nor forwarded.

use super::id::ApproverId;
use super::json::Node;
use super::pairing::RoutingToken;
use super::reader::{Invalid, Reader};

const ROUTING_MEMBERS: [&str; 3] = ["routingToken", "approverId", "tenantId"];

/// The first of these that is present counts; if it leads nowhere, the next is not tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    Approver(ApproverId),
    Token(RoutingToken),
    /// No approver is named: every approver paired with the enforcer.
    Paired,
}

/// Sealed metadata, split into its routing and the rest.
#[derive(Debug, Default)]
pub struct Metadata {
    pub token: Option<RoutingToken>,
    pub approver: Option<ApproverId>,
    /// The text to forward, if anything is left.
    pub forwarded: Option<String>,
}

impl Metadata {
    pub fn parse(node: &Node<'_>, pointer: &str) -> Result<Self, Invalid> {
        let mut reader = Reader::new(node, pointer)?;
        let token = reader.optional_str("routingToken")?.map(RoutingToken::new);
        Ok(Self {
            token,
            approver: reader.optional_id("approverId")?,
            forwarded: without_routing(node),
        })
    }

    /// The route of a submission with this metadata and, perhaps, a recipient.
    pub fn route(&self, recipient: Option<ApproverId>) -> Route {
        match (recipient, &self.token, &self.approver) {
            (Some(approver), _, _) => Route::Approver(approver),
            (None, Some(token), _) => Route::Token(token.clone()),
            (None, None, Some(approver)) => Route::Approver(approver.clone()),
            (None, None, None) => Route::Paired,
        }
    }
}

/// The text of an object without its routing members; verbatim if it has none.
fn without_routing(node: &Node<'_>) -> Option<String> {
    let object = node.as_object()?;
    let kept: Vec<_> = object
        .iter()
        .filter(|member| !ROUTING_MEMBERS.contains(&member.name.as_ref()))
        .collect();
    if kept.is_empty() {
        return None;
    }
    if kept.len() == object.len() {
        return Some(node.raw.to_owned());
    }
    let members: Vec<_> = kept
        .iter()
        .map(|member| format!("{}:{}", member.raw_name, member.node.raw))
        .collect();
    Some(format!("{{{}}}", members.join(",")))
}
