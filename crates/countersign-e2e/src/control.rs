//! Orders of an approver to an enforcer: end a grant, pause the agent, let it go on. They travel as
//! prompts, sealed, and are signed as well. The signature can be no other signature of a device: a
//! decision has no member `statement`, and other statements have other names.

use std::time::Duration;

use serde_json::json;

use super::device_id::DeviceId;
use super::encoding::{agree, canonical_text, parse, versioned};
use super::error::{Error, Result};
use super::keys::DeviceKeys;
use super::statement::read_signature;
use super::trust::DeviceTrust;
use countersign_protocol::canonical::canonical;
use countersign_protocol::id::{ApproverId, EnforcerId, RequestId, SessionId, TenantId};
use countersign_protocol::json::JsonNode;
use countersign_protocol::reader::MemberReader;
use countersign_protocol::signature::Signature;
use countersign_protocol::timestamp::Timestamp;

const CONTROL: &str = "the control message";
const STATEMENT: &str = "enforcer.control";
/// Longest pause, counted from when it was ordered.
pub const MAX_PAUSE_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlOrder {
    /// The grant that was given with this request ends.
    EndGrant { request_id: RequestId },
    /// Nothing is asked, and no grant is used, until then. Without a session: in all of them.
    Pause {
        session: Option<SessionId>,
        until: Timestamp,
    },
    /// Pauses that were ordered before end. Without a session: all of them.
    Resume { session: Option<SessionId> },
}

/// The approver, the enforcer and the time of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlParties {
    pub tenant: TenantId,
    pub approver: ApproverId,
    pub enforcer: EnforcerId,
    pub at: Timestamp,
}

/// A well-formed order with a signature that nobody has verified yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedControl {
    order: ControlOrder,
    parties: ControlParties,
    by: DeviceId,
    statement: String,
    signature: Signature,
}

impl ControlOrder {
    pub fn name(&self) -> &'static str {
        match self {
            Self::EndGrant { .. } => "grant.end",
            Self::Pause { .. } => "agent.pause",
            Self::Resume { .. } => "agent.resume",
        }
    }
}

impl SignedControl {
    pub fn sign(order: &ControlOrder, parties: &ControlParties, keys: &DeviceKeys) -> Result<Self> {
        let mut members = json!({
            "v": 1,
            "statement": STATEMENT,
            "order": order.name(),
            "tenantId": parties.tenant.as_str(),
            "approverId": parties.approver.as_str(),
            "enforcerId": parties.enforcer.as_str(),
            "at": parties.at.to_string(),
            "by": keys.id().to_string(),
        });
        let session = match order {
            ControlOrder::EndGrant { request_id } => {
                members["requestId"] = request_id.as_str().into();
                None
            }
            ControlOrder::Pause { session, until } => {
                members["until"] = until.to_string().into();
                session.as_ref()
            }
            ControlOrder::Resume { session } => session.as_ref(),
        };
        if let Some(session) = session {
            members["sessionId"] = session.as_str().into();
        }
        let statement = canonical_text(CONTROL, &members)?;
        let signature = keys.sign(statement.as_bytes())?;
        Self::read_statement(&parse(CONTROL, statement.as_bytes())?, signature)
    }

    pub(super) fn parse(node: &JsonNode<'_>) -> Result<Self> {
        let mut reader = MemberReader::named(CONTROL, node)?;
        let statement = reader.nested("statement")?;
        let signature = reader.str("signature")?;
        reader.finish()?;
        Self::read_statement(statement, read_signature(signature)?)
    }

    fn read_statement(node: &JsonNode<'_>, signature: Signature) -> Result<Self> {
        let mut reader = versioned(CONTROL, node)?;
        reader.one_of("statement", &[STATEMENT])?;
        let parties = ControlParties {
            tenant: reader.id("tenantId")?,
            approver: reader.id("approverId")?,
            enforcer: reader.id("enforcerId")?,
            at: reader.timestamp("at")?,
        };
        let by = DeviceId::parse(reader.str("by")?)?;
        let orders = ["grant.end", "agent.pause", "agent.resume"];
        let order = match reader.one_of("order", &orders)? {
            "grant.end" => ControlOrder::EndGrant {
                request_id: reader.id("requestId")?,
            },
            "agent.pause" => {
                let until = reader.timestamp("until")?;
                let time = until.inner() - parties.at.inner();
                if !time.is_positive() || time > MAX_PAUSE_LIFETIME {
                    let expected = "a time after `at`, at most 24 hours later";
                    return Err(reader.refusal("until", expected).into());
                }
                ControlOrder::Pause {
                    session: reader.optional_id("sessionId")?,
                    until,
                }
            }
            _ => ControlOrder::Resume {
                session: reader.optional_id("sessionId")?,
            },
        };
        reader.finish()?;
        Ok(Self {
            order,
            parties,
            by,
            statement: canonical(node),
            signature,
        })
    }

    pub fn to_text(&self) -> String {
        let signature = self.signature.to_text();
        let statement = &self.statement;
        format!("{{\"signature\":\"{signature}\",\"statement\":{statement}}}")
    }

    getters! {
        pub ref order: ControlOrder;
        /// By the clock of the device that signed it.
        pub ref parties: ControlParties;
    }

    /// Whether `sender`, a device in force, has signed it for this enforcer.
    pub(super) fn check(
        &self,
        trust: &DeviceTrust,
        enforcer: &EnforcerId,
        sender: DeviceId,
    ) -> Result<()> {
        let parties = &self.parties;
        if parties.tenant != *trust.tenant() || parties.approver != *trust.approver() {
            return Err(Error::OtherApprover);
        }
        agree(parties.enforcer == *enforcer, "enforcerId")?;
        agree(self.by == sender, "by")?;
        let key = trust.device(sender)?.bundle().signing_key();
        if key.verifies(self.statement.as_bytes(), &self.signature) {
            Ok(())
        } else {
            Err(Error::StatementSignature)
        }
    }
}
