//! Statements by which a device in force adds or revokes a device of the same approver. A signature
//! covers the canonical statement. It can never be one of a decision: a decision has no member
//! `statement`, and unknown members are refused.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::bundle::DeviceBundle;
use super::device_id::{DeviceId, MAX_DEVICES};
use super::encoding::{self, canonical_text, parse, versioned};
use super::error::{Error, Result};
use super::keys::DeviceKeys;
use countersign_protocol::canonical::canonical;
use countersign_protocol::id::{ApproverId, TenantId};
use countersign_protocol::json::JsonNode;
use countersign_protocol::reader::MemberReader;
use countersign_protocol::signature::{PublicKey, Signature};
use countersign_protocol::timestamp::Timestamp;

pub const STATEMENT: &str = "the device statement";
pub const SIGNED: &str = "the signed device statement";
pub const SIGNATURE: &str = "a device's signature";
const ADD: &str = "device.add";
const REVOKE: &str = "device.revoke";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatementChange {
    Add(Box<DeviceBundle>),
    Revoke(DeviceId),
}

/// A well-formed statement, with the text that its signatures cover. Whether they verify is for
/// `DeviceTrust` to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceStatement {
    tenant: TenantId,
    approver: ApproverId,
    change: StatementChange,
    /// Of a revocation: the devices that stay in force, as far as its signer knows.
    keeps: Option<BTreeSet<DeviceId>>,
    at: Timestamp,
    by: DeviceId,
    text: String,
}

impl DeviceStatement {
    /// `at` is for people to read; no check depends on a signer's clock.
    pub fn new(
        tenant: &TenantId,
        approver: &ApproverId,
        change: &StatementChange,
        at: Timestamp,
        by: DeviceId,
    ) -> Result<Self> {
        let mut members = members(tenant, approver, at, by);
        match change {
            StatementChange::Add(bundle) => {
                members["statement"] = ADD.into();
                members["bundle"] = bundle.to_text()?.into();
            }
            StatementChange::Revoke(device) => {
                members["statement"] = REVOKE.into();
                members["deviceId"] = device.to_string().into();
            }
        }
        Self::of_members(&members)
    }

    /// Revokes a device, and the devices it has added except those that the signer `keeps`.
    pub fn revocation(
        tenant: &TenantId,
        approver: &ApproverId,
        device: DeviceId,
        keeps: &BTreeSet<DeviceId>,
        at: Timestamp,
        by: DeviceId,
    ) -> Result<Self> {
        let mut members = members(tenant, approver, at, by);
        members["statement"] = REVOKE.into();
        members["deviceId"] = device.to_string().into();
        let texts: BTreeSet<_> = keeps.iter().map(ToString::to_string).collect();
        members["keeps"] = texts.into_iter().collect();
        Self::of_members(&members)
    }

    fn of_members(members: &Value) -> Result<Self> {
        let text = canonical_text(STATEMENT, members)?;
        Self::parse(&parse(STATEMENT, text.as_bytes())?)
    }

    pub fn parse(node: &JsonNode<'_>) -> Result<Self> {
        let mut reader = versioned(STATEMENT, node)?;
        let (change, keeps) = if reader.one_of("statement", &[ADD, REVOKE])? == ADD {
            let bundle = reader.str("bundle")?;
            (
                StatementChange::Add(Box::new(DeviceBundle::parse(bundle)?)),
                None,
            )
        } else {
            let device = reader.str("deviceId")?;
            let keeps = reader.optional("keeps").map(|node| {
                let expected = "at most 32 ids of devices, in order and none twice";
                read_keeps(node).ok_or_else(|| reader.refusal("keeps", expected))
            });
            let keeps = keeps.transpose()?;
            (StatementChange::Revoke(DeviceId::parse(device)?), keeps)
        };
        let by = reader.str("by")?;
        let statement = Self {
            tenant: reader.id("tenantId")?,
            approver: reader.id("approverId")?,
            change,
            keeps,
            at: reader.timestamp("at")?,
            by: DeviceId::parse(by)?,
            text: canonical(node),
        };
        reader.finish()?;
        Ok(statement)
    }

    /// By the device in force, and by a new device to show that it has the keys of its bundle.
    pub fn sign(&self, keys: &DeviceKeys) -> Result<Signature> {
        keys.sign(self.text.as_bytes())
    }

    getters! {
        pub ref tenant: TenantId;
        pub ref approver: ApproverId;
        pub ref change: StatementChange;
    }

    pub fn keeps(&self) -> Option<&BTreeSet<DeviceId>> {
        self.keeps.as_ref()
    }

    getters! {
        pub copy at: Timestamp;
        pub copy by: DeviceId;
        /// The canonical text.
        pub ref text: str;
    }
}

fn members(tenant: &TenantId, approver: &ApproverId, at: Timestamp, by: DeviceId) -> Value {
    json!({
        "v": 1,
        "tenantId": tenant.as_str(),
        "approverId": approver.as_str(),
        "at": at.to_string(),
        "by": by.to_string(),
    })
}

/// In the order of their ids and none twice, so that there is one spelling.
fn read_keeps(node: &JsonNode<'_>) -> Option<BTreeSet<DeviceId>> {
    let list = node.as_array()?;
    let ids = list.iter().map(|node| DeviceId::parse(node.as_str()?).ok());
    let ids: Vec<_> = ids.take(MAX_DEVICES + 1).collect::<Option<_>>()?;
    let texts = list.iter().map(JsonNode::as_str);
    (texts.is_sorted_by(|a, b| a < b) && ids.len() <= MAX_DEVICES)
        .then(|| ids.into_iter().collect())
}

/// A statement with signatures that nobody has verified yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedStatement {
    statement: DeviceStatement,
    signature: Signature,
    possession: Option<Signature>,
}

impl SignedStatement {
    /// `possession` is the new device's signature, if the statement adds one other than the signer.
    pub fn new(
        statement: DeviceStatement,
        signature: Signature,
        possession: Option<Signature>,
    ) -> Self {
        Self {
            statement,
            signature,
            possession,
        }
    }

    pub fn parse(node: &JsonNode<'_>) -> Result<Self> {
        let mut reader = MemberReader::named(SIGNED, node)?;
        let statement = reader.nested("statement")?;
        let signature = reader.str("signature")?;
        let possession = reader.optional_str("possession")?;
        reader.finish()?;
        Ok(Self {
            statement: DeviceStatement::parse(statement)?,
            signature: read_signature(signature)?,
            possession: possession.map(read_signature).transpose()?,
        })
    }

    pub fn to_text(&self) -> String {
        let signature = self.signature.to_text();
        let possession = self.possession.as_ref().map(|possession| {
            let text = possession.to_text();
            format!("\"possession\":\"{text}\",")
        });
        format!(
            "{{{}\"signature\":\"{signature}\",\"statement\":{}}}",
            possession.unwrap_or_default(),
            self.statement.text
        )
    }

    pub fn statement(&self) -> &DeviceStatement {
        &self.statement
    }

    pub(super) fn signed_by(&self, key: &PublicKey) -> bool {
        key.verifies(self.statement.text.as_bytes(), &self.signature)
    }

    pub(super) fn possession_by(&self, key: &PublicKey) -> bool {
        let message = self.statement.text.as_bytes();
        self.possession
            .is_some_and(|signature| key.verifies(message, &signature))
    }
}

pub(super) fn read_signature(text: &str) -> Result<Signature> {
    let what = SIGNATURE;
    let bytes: [u8; 64] = encoding::decode_array(what, text)?;
    let expected = 64;
    Signature::from_bytes(&bytes).ok_or(Error::Length { what, expected })
}
