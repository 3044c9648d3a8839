//! A decision as a file that anyone can verify offline: the artifact in plain text, the signed
//! decision, and the device's public keys. Texts that were hashed or signed are strings in it, byte
//! for byte.
//!
//! The signature covers the request's id, the artifact's hash, its repository, the verdict, its
//! scope and its end. It does not cover the enforcer or the time of signing.

use serde_json::json;

use crate::error::{ClientError, Result};
use crate::visible::visible;
use countersign_e2e::{
    self as e2e, DeviceBundle, DeviceTrust, PlainArtifact, SignedStatement, SignedVerdict,
    verify_decision,
};
use countersign_protocol::id::{ApproverId, EnforcerId, TenantId};
use countersign_protocol::json::{self, JsonNode, JsonValue};
use countersign_protocol::reader::{InvalidMember, MemberReader};

/// More than a record of the largest artifact.
pub const MAX_RECORD_BYTES: u64 = 16 << 20;

#[derive(Debug, Clone)]
pub struct DecisionRecord {
    pub tenant: TenantId,
    pub approver: ApproverId,
    /// As the file says: nothing in it is signed by the enforcer.
    pub enforcer: EnforcerId,
    pub artifact: String,
    pub decision: String,
    pub device: DeviceBundle,
    /// Of the approver's devices, as the gateway serves them. They may be missing.
    pub statements: Vec<String>,
}

/// The contents of a record that its signature proves.
#[derive(Debug, Clone)]
pub struct VerifiedRecord {
    pub artifact: PlainArtifact,
    pub verdict: SignedVerdict,
}

fn malformed(problem: impl std::fmt::Display) -> ClientError {
    ClientError::Record(visible(&problem.to_string()))
}

impl DecisionRecord {
    pub fn parse(text: &[u8]) -> Result<Self> {
        let node = json::parse(text).map_err(malformed)?;
        Self::read(&node).map_err(malformed)
    }

    fn read(node: &JsonNode<'_>) -> Result<Self, InvalidMember> {
        let mut reader = MemberReader::new(node, "")?;
        if reader.required("v", "1")?.value != JsonValue::Number(1.0) {
            return Err(InvalidMember::unsupported("/v", "1; update this program"));
        }
        let statements = &reader.required("statements", "an array")?.value;
        let JsonValue::Array(statements) = statements else {
            return Err(InvalidMember::shape("/statements", "an array"));
        };
        let texts = (statements.iter()).map(|node| node.as_str().map(str::to_owned));
        let texts: Option<_> = texts.collect();
        let record = Self {
            tenant: reader.id("tenantId")?,
            approver: reader.id("approverId")?,
            enforcer: reader.id("enforcerId")?,
            artifact: reader.str("artifact")?.to_owned(),
            decision: reader.str("decision")?.to_owned(),
            statements: texts.ok_or_else(|| InvalidMember::shape("/statements", "texts"))?,
            device: DeviceBundle::parse(reader.str("device")?)
                .map_err(|error| InvalidMember::shape("/device", error.to_string()))?,
        };
        reader.finish()?;
        Ok(record)
    }

    pub fn to_text(&self) -> Result<String, e2e::Error> {
        let members = json!({
            "v": 1,
            "tenantId": self.tenant,
            "approverId": self.approver,
            "enforcerId": self.enforcer,
            "artifact": self.artifact,
            "decision": self.decision,
            "device": self.device.to_text()?,
            "statements": self.statements,
        });
        Ok(format!("{members:#}\n"))
    }

    /// Verifies everything but the device's owner.
    pub fn verify(&self) -> Result<VerifiedRecord> {
        let artifact = PlainArtifact::parse(self.artifact.as_bytes())?;
        let decision = json::parse(self.decision.as_bytes()).map_err(malformed)?;
        let verdict = verify_decision(&decision, &artifact, &self.device)?;
        Ok(VerifiedRecord { artifact, verdict })
    }

    /// Whether the device is one that `trust` knows, or that such a device added by a statement in
    /// the record.
    pub fn is_trusted_by(&self, trust: &DeviceTrust) -> Result<(), e2e::Error> {
        if *trust.tenant() != self.tenant || *trust.approver() != self.approver {
            return Err(e2e::Error::OtherApprover);
        }
        let mut trust = trust.clone();
        // A statement that cannot be read or followed proves nothing, and changes nothing.
        let signed: Vec<_> = (self.statements.iter())
            .filter_map(|text| {
                let node = json::parse(text.as_bytes()).ok()?;
                SignedStatement::parse(&node).ok()
            })
            .collect();
        trust.follow_all(&signed);
        let known = trust.device(self.device.id())?;
        if known.bundle().same_keys(&self.device) {
            Ok(())
        } else {
            Err(e2e::Error::UnknownDevice(self.device.id()))
        }
    }
}
