//! A device introduces an enforcer whose key it has authenticated to the other devices of its
//! approver, so that they need not pair with it themselves. A signature covers the canonical
//! introduction. It can be no other signature of a device: a decision has no member `statement`,
//! and statements about devices have other names.

use serde_json::json;

use super::bundle::{DeviceBundle, is_label, read_label};
use super::device_id::DeviceId;
use super::encoding::{canonical_text, parse, versioned};
use super::error::{Error, Result};
use super::keys::{DeviceKeys, EncryptionKey};
use super::operators::{OPERATORS, OperatorList};
use super::pairing::PinnedEnforcer;
use super::statement::read_signature;
use super::team::TeamState;
use super::team_head::TeamId;
use super::trust::DeviceTrust;
use countersign_protocol::canonical::canonical;
use countersign_protocol::id::{ApproverId, TenantId};
use countersign_protocol::json::JsonNode;
use countersign_protocol::reader::MemberReader;
use countersign_protocol::signature::Signature;
use countersign_protocol::timestamp::Timestamp;

pub const INTRODUCTION: &str = "the introduction";
pub const SIGNED_INTRODUCTION: &str = "the signed introduction";
pub const INTRODUCED_KEY: &str = "the introduced enforcer's key";
const TEAM_ID: &str = "teamId";
const INTRODUCE: &str = "enforcer.introduce";

/// A well-formed introduction, with the text that its signature covers. Nobody has verified it yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Introduction {
    tenant: TenantId,
    approver: ApproverId,
    enforcer: PinnedEnforcer,
    label: Option<String>,
    claims: IntroductionClaims,
    at: Timestamp,
    by: DeviceId,
    text: String,
}

/// The further claims of an introduction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IntroductionClaims {
    /// The people who work with the agent.
    pub operators: Option<OperatorList>,
    /// The team that an owner has paired the enforcer with. Then its members are addressed.
    pub team: Option<TeamId>,
}

impl Introduction {
    /// `at` is when the enforcer was paired, on any device. A label that may not be shown is left
    /// out.
    pub fn new(
        tenant: &TenantId,
        approver: &ApproverId,
        (enforcer, label): (&PinnedEnforcer, Option<&str>),
        claims: &IntroductionClaims,
        at: Timestamp,
        by: DeviceId,
    ) -> Result<Self> {
        let mut members = json!({
            "v": 1,
            "statement": INTRODUCE,
            "tenantId": tenant.as_str(),
            "approverId": approver.as_str(),
            "enforcerId": enforcer.id().as_str(),
            "x25519": enforcer.encryption_key().to_text(),
            "at": at.to_string(),
            "by": by.to_string(),
        });
        if let Some(label) = label.filter(|label| is_label(label)) {
            members["label"] = label.into();
        }
        if let Some(operators) = &claims.operators {
            members[OPERATORS] = json!(operators.ids());
        }
        if let Some(team) = &claims.team {
            members[TEAM_ID] = team.to_string().into();
        }
        let text = canonical_text(INTRODUCTION, &members)?;
        Self::parse(&parse(INTRODUCTION, text.as_bytes())?)
    }

    pub fn parse(node: &JsonNode<'_>) -> Result<Self> {
        let mut reader = versioned(INTRODUCTION, node)?;
        reader.one_of("statement", &[INTRODUCE])?;
        let key = reader.str("x25519")?;
        let by = reader.str("by")?;
        let label = read_label(&mut reader)?;
        let expected = "the id of a team";
        let claims = IntroductionClaims {
            operators: OperatorList::read(&mut reader)?,
            team: reader.optional_parsed(TEAM_ID, expected, |it| TeamId::parse(it).ok())?,
        };
        let id = reader.id("enforcerId")?;
        let key = EncryptionKey::parse(INTRODUCED_KEY, key)?;
        let introduction = Self {
            tenant: reader.id("tenantId")?,
            approver: reader.id("approverId")?,
            enforcer: PinnedEnforcer::from_own_records(id, key),
            label,
            claims,
            at: reader.timestamp("at")?,
            by: DeviceId::parse(by)?,
            text: canonical(node),
        };
        reader.finish()?;
        Ok(introduction)
    }

    pub fn sign(self, keys: &DeviceKeys) -> Result<SignedIntroduction> {
        let signature = keys.sign(self.text.as_bytes())?;
        let introduction = self;
        Ok(SignedIntroduction {
            introduction,
            signature,
        })
    }

    pub fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    pub fn approver(&self) -> &ApproverId {
        &self.approver
    }

    /// As it claims: only `SignedIntroduction::accept` says that it is so.
    pub fn claimed(&self) -> &PinnedEnforcer {
        &self.enforcer
    }

    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    pub fn operators(&self) -> Option<&OperatorList> {
        self.claims.operators.as_ref()
    }

    pub fn team(&self) -> Option<TeamId> {
        self.claims.team
    }

    getters! {
        pub copy at: Timestamp;
        pub copy by: DeviceId;
        /// The canonical text.
        pub ref text: str;
    }
}

/// An introduction with a signature that nobody has verified yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedIntroduction {
    introduction: Introduction,
    signature: Signature,
}

impl SignedIntroduction {
    pub fn parse(node: &JsonNode<'_>) -> Result<Self> {
        let mut reader = MemberReader::named(SIGNED_INTRODUCTION, node)?;
        let statement = reader.nested("statement")?;
        let signature = reader.str("signature")?;
        reader.finish()?;
        Ok(Self {
            introduction: Introduction::parse(statement)?,
            signature: read_signature(signature)?,
        })
    }

    pub fn to_text(&self) -> String {
        let signature = self.signature.to_text();
        let statement = &self.introduction.text;
        format!("{{\"signature\":\"{signature}\",\"statement\":{statement}}}")
    }

    pub fn introduction(&self) -> &Introduction {
        &self.introduction
    }

    /// The enforcer, if a device in force has introduced it to the devices of this approver.
    pub fn accept(&self, trust: &DeviceTrust) -> Result<&PinnedEnforcer> {
        let introduction = &self.introduction;
        let is_own = introduction.approver == *trust.approver() && introduction.team().is_none();
        if introduction.tenant != *trust.tenant() || !is_own {
            return Err(Error::OtherApprover);
        }
        self.accept_signed(trust.device(introduction.by)?.bundle())
    }

    /// The enforcer, if a device of an owner has introduced it to this team.
    pub fn accept_in(&self, team: &TeamState) -> Result<&PinnedEnforcer> {
        let introduction = &self.introduction;
        let is_own = introduction.team() == Some(team.head().team);
        if introduction.tenant != *team.tenant() || !is_own {
            return Err(Error::OtherApprover);
        }
        let owner = team.content().seat(&introduction.approver);
        let owner = owner.filter(|seat| seat.owner);
        let signer = owner.and_then(|seat| seat.device(introduction.by));
        self.accept_signed(signer.ok_or(Error::UnknownDevice(introduction.by))?)
    }

    fn accept_signed(&self, signer: &DeviceBundle) -> Result<&PinnedEnforcer> {
        let (introduction, key) = (&self.introduction, signer.signing_key());
        if key.verifies(introduction.text.as_bytes(), &self.signature) {
            Ok(&introduction.enforcer)
        } else {
            Err(Error::StatementSignature)
        }
    }
}
