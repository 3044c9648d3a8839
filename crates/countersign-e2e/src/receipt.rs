//! A receipt: everything about one call in one file, for anyone to verify without the gateway. Texts
//! that were hashed or signed are strings in it, byte for byte. `proof` verifies it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::bundle::DeviceBundle;
use super::encoding::parse;
use super::error::Result;
use super::hints::HintsKey;
use super::rule::MAX_RULE_PEOPLE;
use countersign_protocol::id::{ApproverId, EnforcerId, RequestId, TenantId};
use countersign_protocol::json::{JsonNode, JsonValue};
use countersign_protocol::reader::{InvalidMember, MemberFault, MemberReader};
use countersign_protocol::redacted;

const RECEIPT: &str = "the receipt";
/// Bounds the time that a verification takes: each of them has signatures.
pub const MAX_STATEMENTS: usize = 2_048;

/// A receipt as it was read or is to be written. Nothing in it is believed before `verify`.
#[derive(Clone, PartialEq, Eq)]
pub struct Receipt {
    pub tenant: TenantId,
    pub enforcer: EnforcerId,
    /// The canonical artifact of the first part. Without it, neither rule nor outcome can be
    /// verified.
    pub artifact: Option<String>,
    /// One for each decision, 1 to 64.
    pub parts: Vec<ReceiptPart>,
    /// Signed statements about the devices of the approvers, as the gateway serves them.
    pub devices: Vec<String>,
    /// Signed states of the teams that the rule names, of each team from the first state to the last
    /// one that the enforcer knew.
    pub teams: Vec<String>,
    /// The DSSE envelope.
    pub outcome: Option<String>,
    /// Proofs that the gateway's log has the decisions, one for each part; empty if there are none.
    pub log: Vec<String>,
}

redacted! { Receipt = "Receipt(redacted)" }

/// A decision, with all that is needed to verify it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptPart {
    pub request_id: RequestId,
    pub seat: Option<ApproverId>,
    pub approver: ApproverId,
    /// The signed body.
    pub decision: String,
    /// The device that signed it.
    pub device: DeviceBundle,
    /// From `hints_key`, if the decision has encrypted hints.
    pub hints_key: Option<HintsKey>,
}

impl Receipt {
    /// Reads version 2. Version 1, a single decision without an outcome, is another format.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let node = parse(RECEIPT, text)?;
        let mut reader = MemberReader::named(RECEIPT, &node)?;
        if reader.required("v", "2")?.value != JsonValue::Number(2.0) {
            return Err(InvalidMember {
                fault: MemberFault::Unsupported,
                ..reader.refusal("v", "2; update this program")
            }
            .into());
        }
        let parts = reader.items("parts", MAX_RULE_PEOPLE, "parts")?.iter();
        let parts = parts.map(|node| ReceiptPart::read(reader.item("parts", node)?));
        let parts: Vec<_> = parts.collect::<Result<_>>()?;
        let requests: BTreeSet<_> = parts.iter().map(|part| &part.request_id).collect();
        if requests.len() < parts.len() {
            return Err(reader.refusal("parts", "no request twice").into());
        }
        let expected = "at most 2048 signed statements, as texts";
        let devices = texts(reader.required("devices", expected)?, MAX_STATEMENTS);
        let devices = devices.ok_or_else(|| reader.refusal("devices", expected))?;
        let expected = "at most 2048 signed states, as texts";
        let teams = reader.optional_as("teams", expected, |node| texts(node, MAX_STATEMENTS))?;
        let receipt = Self {
            tenant: reader.id("tenantId")?,
            enforcer: reader.id("enforcerId")?,
            artifact: reader.optional_str("artifact")?.map(str::to_owned),
            devices,
            teams: teams.unwrap_or_default(),
            outcome: reader.optional_str("outcome")?.map(str::to_owned),
            log: read_proofs(&mut reader, parts.len())?,
            parts,
        };
        reader.finish()?;
        Ok(receipt)
    }

    pub fn to_text(&self) -> Result<String> {
        let parts = self.parts.iter().map(ReceiptPart::to_json);
        let mut members = json!({
            "v": 2,
            "tenantId": &self.tenant,
            "enforcerId": &self.enforcer,
            "parts": parts.collect::<Result<Value>>()?,
            "devices": &self.devices,
        });
        if let Some(artifact) = &self.artifact {
            members["artifact"] = artifact.as_str().into();
        }
        if !self.teams.is_empty() {
            members["teams"] = json!(&self.teams);
        }
        if let Some(outcome) = &self.outcome {
            members["outcome"] = outcome.as_str().into();
        }
        if !self.log.is_empty() {
            members["log"] = json!(&self.log);
        }
        let text = format!("{members:#}\n");
        Self::parse(text.as_bytes())?;
        Ok(text)
    }
}

fn read_proofs(reader: &mut MemberReader<'_, '_>, count: usize) -> Result<Vec<String>> {
    let read = reader.optional_as("log", "the text of a proof for each part", |node| {
        texts(node, count).filter(|texts| texts.len() == count)
    });
    Ok(read?.unwrap_or_default())
}

fn texts(node: &JsonNode<'_>, most: usize) -> Option<Vec<String>> {
    let list = node.as_array()?;
    let texts = list.iter().map(|text| Some(text.as_str()?.to_owned()));
    (list.len() <= most).then(|| texts.collect()).flatten()
}

impl ReceiptPart {
    /// Whether nobody else has the seat.
    pub fn is_own(&self) -> bool {
        *self.voter() == self.approver
    }

    /// The person for whom the decision counts.
    pub fn voter(&self) -> &ApproverId {
        self.seat.as_ref().unwrap_or(&self.approver)
    }

    fn read(mut reader: MemberReader<'_, '_>) -> Result<Self> {
        let key = reader.optional_str("hintsKey")?;
        let part = Self {
            request_id: reader.id("requestId")?,
            seat: reader.optional_id("seat")?,
            approver: reader.id("approverId")?,
            decision: reader.str("decision")?.to_owned(),
            device: DeviceBundle::parse(reader.str("device")?)?,
            hints_key: key.map(HintsKey::parse).transpose()?,
        };
        reader.finish()?;
        Ok(part)
    }

    fn to_json(&self) -> Result<Value> {
        let mut members = json!({
            "requestId": &self.request_id,
            "approverId": &self.approver,
            "decision": &self.decision,
            "device": self.device.to_text()?,
        });
        if let Some(seat) = &self.seat {
            members["seat"] = json!(seat);
        }
        if let Some(key) = &self.hints_key {
            members["hintsKey"] = key.to_text().into();
        }
        Ok(members)
    }
}
