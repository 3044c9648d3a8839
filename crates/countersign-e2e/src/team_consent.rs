//! Joining a team. An owner's link has a secret; the invited device answers with a consent that it
//! signs, and proves that it had the link. Nobody becomes a member without one.

use std::fmt;

use serde_json::json;
use zeroize::Zeroizing;

use super::bundle::DeviceBundle;
use super::device_id::DeviceId;
use super::encoding::{canonical_text, decode_array, encode, parse, versioned};
use super::error::{Error, Result};
use super::keys::DeviceKeys;
use super::link::PairingSecret;
use super::random::{RandomSource, draw};
use super::statement::read_signature;
use super::team_head::TeamId;
use super::team_seat::read_bundles;
use countersign_protocol::canonical::canonical;
use countersign_protocol::id::{ApproverId, TenantId};
use countersign_protocol::json::JsonNode;
use countersign_protocol::reader::MemberReader;
use countersign_protocol::signature::Signature;
use countersign_protocol::timestamp::Timestamp;

const CONSENT: &str = "the consent to join a team";
pub const SIGNED_CONSENT: &str = "the signed consent to join a team";
const STATEMENT: &str = "team.consent";
const MARK: &str = "#/team/";
const PROOF_PURPOSE: &str = "countersign team invitation v1";

/// Names an invitation to a team.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InviteId([u8; 16]);

impl InviteId {
    pub fn parse(text: &str) -> Result<Self> {
        decode_array("the id of an invitation", text).map(Self)
    }
}

impl fmt::Display for InviteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&encode(&self.0))
    }
}

/// The wish of an approver to be a member, with the devices that are to be on the seat. Nobody has
/// verified it yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamConsent {
    tenant: TenantId,
    team: TeamId,
    invite: InviteId,
    approver: ApproverId,
    devices: Vec<DeviceBundle>,
    at: Timestamp,
    by: DeviceId,
    text: String,
}

impl TeamConsent {
    fn parse(node: &JsonNode<'_>) -> Result<Self> {
        let mut reader = versioned(CONSENT, node)?;
        reader.one_of("statement", &[STATEMENT])?;
        let consent = Self {
            tenant: reader.id("tenantId")?,
            team: TeamId::parse(reader.str("teamId")?)?,
            invite: InviteId::parse(reader.str("inviteId")?)?,
            approver: reader.id("approverId")?,
            devices: read_bundles(&mut reader)?,
            at: reader.timestamp("at")?,
            by: DeviceId::parse(reader.str("by")?)?,
            text: canonical(node),
        };
        reader.finish()?;
        Ok(consent)
    }

    getters! {
        pub ref tenant: TenantId;
        pub copy team: TeamId;
        pub copy invite: InviteId;
        pub ref approver: ApproverId;
        pub ref devices: [DeviceBundle];
        pub copy at: Timestamp;
        pub copy by: DeviceId;
        /// The canonical text.
        pub ref text: str;
    }
}

/// A consent as the gateway carries it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedConsent {
    consent: TeamConsent,
    signature: Signature,
    proof: [u8; 32],
}

impl SignedConsent {
    pub fn parse(node: &JsonNode<'_>) -> Result<Self> {
        let mut reader = MemberReader::named(SIGNED_CONSENT, node)?;
        let statement = reader.nested("statement")?;
        let signature = reader.str("signature")?;
        let proof = reader.str("proof")?;
        reader.finish()?;
        Ok(Self {
            consent: TeamConsent::parse(statement)?,
            signature: read_signature(signature)?,
            proof: decode_array("the proof of a consent", proof)?,
        })
    }

    pub fn to_text(&self) -> String {
        let (proof, signature) = (encode(&self.proof), self.signature.to_text());
        let statement = &self.consent.text;
        format!("{{\"proof\":\"{proof}\",\"signature\":\"{signature}\",\"statement\":{statement}}}")
    }

    pub fn consent(&self) -> &TeamConsent {
        &self.consent
    }

    /// Refused unless the device that it names, one of its own, has signed it.
    pub fn verify(&self) -> Result<()> {
        let TeamConsent { devices, by, .. } = &self.consent;
        let mut devices = devices.iter();
        let signer = devices.find(|device| device.id() == *by);
        let key = signer.ok_or(Error::UnknownDevice(*by))?.signing_key();
        if key.verifies(self.consent.text.as_bytes(), &self.signature) {
            Ok(())
        } else {
            Err(Error::StatementSignature)
        }
    }
}

/// `<page>/#/team/<teamId>/<inviteId>/<secret>`: the link for the invited person. Browsers send
/// nothing after `#` to a server.
#[derive(Debug)]
pub struct TeamLink {
    team: TeamId,
    invite: InviteId,
    secret: PairingSecret,
}

impl TeamLink {
    pub fn generate(team: TeamId, random: &mut impl RandomSource) -> Result<Self> {
        Ok(Self {
            team,
            invite: InviteId(*draw(random)?),
            secret: PairingSecret::generate(random)?,
        })
    }

    /// Reads a link, or the part of it from `#` on.
    pub fn parse(text: &str) -> Result<Self> {
        let broken = |_| Error::TeamLink;
        let (_, parts) = text.trim().rsplit_once(MARK).ok_or(Error::TeamLink)?;
        let parts: Vec<_> = parts.split('/').collect();
        let [team, invite, secret] = parts.as_slice() else {
            return Err(Error::TeamLink);
        };
        Ok(Self {
            team: TeamId::parse(team).map_err(broken)?,
            invite: InviteId::parse(invite).map_err(broken)?,
            secret: PairingSecret::parse(secret).map_err(broken)?,
        })
    }

    /// The whole link, with the secret in it: for the invited person, never for a log.
    pub fn expose(&self, page: &str) -> Zeroizing<String> {
        Zeroizing::new(format!(
            "{}/{MARK}{}/{}/{}",
            page.trim_end_matches('/'),
            self.team,
            self.invite,
            *self.secret.expose(),
        ))
    }

    getters! {
        pub copy team: TeamId;
        pub copy invite: InviteId;
    }

    /// On the invited device, after its person said yes. `devices` are those of the approver that it
    /// trusts, itself among them.
    pub fn consent(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        devices: &[DeviceBundle],
        at: Timestamp,
        keys: &DeviceKeys,
    ) -> Result<SignedConsent> {
        let bundles = devices.iter().map(DeviceBundle::to_text);
        let members = json!({
            "v": 1,
            "statement": STATEMENT,
            "tenantId": tenant.as_str(),
            "teamId": self.team.to_string(),
            "inviteId": self.invite.to_string(),
            "approverId": approver.as_str(),
            "devices": bundles.collect::<Result<Vec<_>>>()?,
            "at": at.to_string(),
            "by": keys.id().to_string(),
        });
        let text = canonical_text(CONSENT, &members)?;
        let consent = TeamConsent::parse(&parse(CONSENT, text.as_bytes())?)?;
        Ok(SignedConsent {
            signature: keys.sign(text.as_bytes())?,
            proof: self.secret.prove(&provable(&text)),
            consent,
        })
    }

    /// On the owner's device: the consent of the approver who was invited by this link.
    pub fn receive<'c>(
        &self,
        tenant: &TenantId,
        invited: &ApproverId,
        signed: &'c SignedConsent,
    ) -> Result<&'c TeamConsent> {
        let consent = &signed.consent;
        let is_same_invitation = consent.team == self.team && consent.invite == self.invite;
        let is_proven = self.secret.proves(&provable(&consent.text), &signed.proof);
        if !is_same_invitation || !is_proven {
            return Err(Error::TeamProof);
        }
        if consent.tenant != *tenant || consent.approver != *invited {
            return Err(Error::OtherApprover);
        }
        signed.verify()?;
        Ok(consent)
    }
}

fn provable(text: &str) -> Vec<u8> {
    [PROOF_PURPOSE, text].concat().into_bytes()
}
