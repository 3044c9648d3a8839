//! Whom a submission asks: read once, then gone. Routing members of sealed metadata are neither stored nor forwarded.

use super::id::{ApproverId, TextId};
use super::json::{Node, Value};
use super::pairing::RoutingToken;
use super::reader::{Invalid, Reader};

/// Members of sealed metadata that are for the gateway alone.
const ROUTING_MEMBERS: [&str; 3] = ["routingToken", "approverId", "tenantId"];

/// Whom a submission names, by the first way that is present. There is no falling through to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    Approver(ApproverId),
    /// The approver that a routing token stands for.
    Token(RoutingToken),
    /// Nobody: every approver paired with the enforcer.
    Paired,
}

/// Sealed metadata, read for routing and cleaned of it.
#[derive(Debug, Default)]
pub struct Metadata {
    /// A routing token, if present.
    pub token: Option<RoutingToken>,
    /// An approver's id, if present.
    pub approver: Option<ApproverId>,
    /// What is left to forward; nothing if nothing is.
    pub forwarded: Option<String>,
}

impl Metadata {
    /// Reads sealed metadata found at `pointer`.
    pub fn parse(node: &Node<'_>, pointer: &str) -> Result<Self, Invalid> {
        let mut reader = Reader::new(node, pointer)?;
        let token = reader.optional_str("routingToken")?.map(RoutingToken::new);
        let approver = reader.optional_str("approverId")?;
        let approver = approver
            .map(|id| {
                ApproverId::parse(id)
                    .ok_or_else(|| Invalid::shape(reader.at("approverId"), super::id::ID_EXPECTED))
            })
            .transpose()?;
        Ok(Self {
            token,
            approver,
            forwarded: without_routing(node),
        })
    }

    /// The route of a submission that carries this metadata and, perhaps, a recipient.
    #[must_use]
    pub fn route(&self, recipient: Option<ApproverId>) -> Route {
        match (recipient, &self.token, &self.approver) {
            (Some(approver), _, _) => Route::Approver(approver),
            (None, Some(token), _) => Route::Token(token.clone()),
            (None, None, Some(approver)) => Route::Approver(approver.clone()),
            (None, None, None) => Route::Paired,
        }
    }
}

/// The text of an object without its routing members: verbatim when it has none.
fn without_routing(node: &Node<'_>) -> Option<String> {
    let Value::Object(object) = &node.value else {
        return None;
    };
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
