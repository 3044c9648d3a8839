//! A decision as a file that anyone can verify offline: the artifact in plain, the signed decision, and the device's public
//! keys. Texts that were hashed or signed are strings in it, byte for byte.
//!
//! The signature covers the request's id, the artifact's hash, its repository, the verdict, its scope and when it ends. It does
//! not cover who asked, and no signature says when it was made.

use serde_json::json;

use super::error::ClientError;
use super::visible::visible;
use countersign_e2e::{
    self as e2e, DeviceBundle, DeviceTrust, PlainArtifact, SignedStatement, SignedVerdict,
    verify_decision,
};
use countersign_protocol::id::{ApproverId, EnforcerId, TenantId};
use countersign_protocol::json::{self, JsonValue};
use countersign_protocol::reader::{InvalidMember, MemberReader};

/// More than a record of the largest artifact.
pub const MAX_RECORD_BYTES: u64 = 16 << 20;

#[derive(Debug, Clone)]
pub struct DecisionRecord {
    tenant: TenantId,
    approver: ApproverId,
    enforcer: EnforcerId,
    artifact: String,
    decision: String,
    device: DeviceBundle,
    statements: Vec<String>,
}

/// What a record proves.
#[derive(Debug, Clone)]
pub struct VerifiedRecord {
    pub artifact: PlainArtifact,
    pub verdict: SignedVerdict,
}

fn malformed(problem: impl std::fmt::Display) -> ClientError {
    ClientError::Record(visible(&problem.to_string()))
}

impl DecisionRecord {
    /// `statements` are those of the approver's devices, as the gateway serves them; they may be missing.
    pub fn new(
        (tenant, approver): (&TenantId, &ApproverId),
        enforcer: &EnforcerId,
        artifact: &PlainArtifact,
        decision: &str,
        device: &DeviceBundle,
        statements: Vec<String>,
    ) -> Self {
        Self {
            tenant: tenant.clone(),
            approver: approver.clone(),
            enforcer: enforcer.clone(),
            artifact: artifact.text().to_owned(),
            decision: decision.to_owned(),
            device: device.clone(),
            statements,
        }
    }

    pub fn parse(text: &[u8]) -> Result<Self, ClientError> {
        let node = json::parse(text).map_err(malformed)?;
        let read = || {
            let mut reader = MemberReader::new(&node, "")?;
            let version = reader.required("v", "1")?;
            if version.value != JsonValue::Number(1.0) {
                return Err(InvalidMember::unsupported("/v", "1; update this program"));
            }
            let statements = reader.required("statements", "an array")?;
            let JsonValue::Array(statements) = &statements.value else {
                return Err(InvalidMember::shape("/statements", "an array"));
            };
            let texts = statements.iter().map(|node| {
                let text = node.as_str().map(str::to_owned);
                text.ok_or_else(|| InvalidMember::shape("/statements", "texts"))
            });
            let record = (
                Self {
                    tenant: reader.id("tenantId")?,
                    approver: reader.id("approverId")?,
                    enforcer: reader.id("enforcerId")?,
                    artifact: reader.str("artifact")?.to_owned(),
                    decision: reader.str("decision")?.to_owned(),
                    statements: texts.collect::<Result<_, _>>()?,
                    device: match DeviceBundle::parse(reader.str("device")?) {
                        Ok(device) => device,
                        Err(error) => {
                            return Err(InvalidMember::shape("/device", error.to_string()));
                        }
                    },
                },
                reader,
            );
            let (record, reader) = record;
            reader.finish()?;
            Ok(record)
        };
        read().map_err(|invalid: InvalidMember| malformed(invalid))
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

    pub fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    pub fn approver(&self) -> &ApproverId {
        &self.approver
    }

    /// As the file says: nothing in it is signed by the enforcer.
    pub fn enforcer(&self) -> &EnforcerId {
        &self.enforcer
    }

    pub fn device(&self) -> &DeviceBundle {
        &self.device
    }

    /// Verifies everything but whose device it is.
    pub fn verify(&self) -> Result<VerifiedRecord, ClientError> {
        let artifact = PlainArtifact::parse(self.artifact.as_bytes())?;
        let decision = json::parse(self.decision.as_bytes()).map_err(malformed)?;
        let verdict = verify_decision(&decision, &artifact, &self.device)?;
        Ok(VerifiedRecord { artifact, verdict })
    }

    /// Whether the device is one of those that `trust` knows, or that they added by statements in the record.
    pub fn is_trusted_by(&self, trust: &DeviceTrust) -> Result<(), e2e::Error> {
        if *trust.tenant() != self.tenant || *trust.approver() != self.approver {
            return Err(e2e::Error::OtherApprover);
        }
        let mut trust = trust.clone();
        // What cannot be read or followed proves nothing, and changes nothing.
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
