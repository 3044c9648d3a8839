//! A device in force invites a new device of the same approver. The gateway carries the new
//! device's answer; a secret of the link, which never reaches the gateway, proves it.

use serde_json::json;
use zeroize::Zeroizing;

use super::bundle::DeviceBundle;
use super::comparison::{ComparisonDigits, DigitComparison};
use super::device_id::DeviceId;
use super::encoding::{self, canonical_text, parse, versioned};
use super::endorsement::EndorsementRequest;
use super::error::{Error, Result};
use super::keys::DeviceKeys;
use super::link::PairingSecret;
use super::random::RandomSource;
use super::statement::read_signature;
use super::trust::DeviceTrust;
use countersign_protocol::canonical::canonical;
use countersign_protocol::id::{ApproverId, TenantId};
use countersign_protocol::json::JsonNode;
use countersign_protocol::pairing::Nonce;
use countersign_protocol::reader::MemberReader;
use countersign_protocol::signature::Signature;
use countersign_protocol::timestamp::Timestamp;

pub const INVITATION: &str = "the device's invitation";
pub const SIGNED_INVITATION: &str = "the signed invitation of a device";
const INVITE: &str = "device.invite";
const MARK: &str = "#/join/";
const PROOF_PURPOSE: &str = "countersign new device v1";

/// The wish of a device in force to invite another one, well formed. Nobody has verified it yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInvitation {
    tenant: TenantId,
    approver: ApproverId,
    at: Timestamp,
    by: DeviceId,
    text: String,
}

impl DeviceInvitation {
    pub fn new(
        tenant: &TenantId,
        approver: &ApproverId,
        at: Timestamp,
        by: DeviceId,
    ) -> Result<Self> {
        let members = json!({
            "v": 1,
            "statement": INVITE,
            "tenantId": tenant.as_str(),
            "approverId": approver.as_str(),
            "at": at.to_string(),
            "by": by.to_string(),
        });
        let text = canonical_text(INVITATION, &members)?;
        Self::parse(&parse(INVITATION, text.as_bytes())?)
    }

    pub fn parse(node: &JsonNode<'_>) -> Result<Self> {
        let mut reader = versioned(INVITATION, node)?;
        reader.one_of("statement", &[INVITE])?;
        let by = reader.str("by")?;
        let invitation = Self {
            tenant: reader.id("tenantId")?,
            approver: reader.id("approverId")?,
            at: reader.timestamp("at")?,
            by: DeviceId::parse(by)?,
            text: canonical(node),
        };
        reader.finish()?;
        Ok(invitation)
    }

    pub fn sign(self, keys: &DeviceKeys) -> Result<SignedInvitation> {
        let signature = keys.sign(self.text.as_bytes())?;
        Ok(SignedInvitation {
            invitation: self,
            signature,
        })
    }

    getters! {
        pub ref tenant: TenantId;
        pub ref approver: ApproverId;
        pub copy at: Timestamp;
        pub copy by: DeviceId;
        /// The canonical text.
        pub ref text: str;
    }
}

/// An invitation with a signature that nobody has verified yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedInvitation {
    invitation: DeviceInvitation,
    signature: Signature,
}

impl SignedInvitation {
    pub fn parse(node: &JsonNode<'_>) -> Result<Self> {
        let mut reader = MemberReader::named(SIGNED_INVITATION, node)?;
        let statement = reader.nested("statement")?;
        let signature = reader.str("signature")?;
        reader.finish()?;
        Ok(Self {
            invitation: DeviceInvitation::parse(statement)?,
            signature: read_signature(signature)?,
        })
    }

    pub fn to_text(&self) -> String {
        let signature = self.signature.to_text();
        let statement = &self.invitation.text;
        format!("{{\"signature\":\"{signature}\",\"statement\":{statement}}}")
    }

    pub fn invitation(&self) -> &DeviceInvitation {
        &self.invitation
    }

    /// Refuses an invitation that no device in force of this approver has signed.
    pub fn verify(&self, trust: &DeviceTrust) -> Result<()> {
        let invitation = &self.invitation;
        if invitation.tenant != *trust.tenant() || invitation.approver != *trust.approver() {
            return Err(Error::OtherApprover);
        }
        let signer = trust.device(invitation.by)?;
        let key = signer.bundle().signing_key();
        if key.verifies(invitation.text.as_bytes(), &self.signature) {
            Ok(())
        } else {
            Err(Error::StatementSignature)
        }
    }
}

/// The new device's request as the gateway carries it, and the digits that both screens show.
#[derive(Debug)]
pub struct DeviceAnswer {
    pub request: String,
    pub proof: String,
    pub digits: ComparisonDigits,
}

/// `<page>/#/join/<code>/<secret>/<deviceId>`: the link for a new device. Browsers send nothing
/// after `#` to a server.
#[derive(Debug)]
pub struct DeviceLink {
    /// The invitation's code, which the gateway chose.
    code: Nonce,
    secret: PairingSecret,
    /// The device that invites. It is the only one that the new device signs for: a signature for
    /// another one would let the gateway add a device of its own.
    inviter: DeviceId,
}

impl DeviceLink {
    pub fn generate(
        code: Nonce,
        inviter: DeviceId,
        random: &mut impl RandomSource,
    ) -> Result<Self> {
        let secret = PairingSecret::generate(random)?;
        Ok(Self {
            code,
            secret,
            inviter,
        })
    }

    /// Reads a link, or the part of it from `#` on. `None` if it has the form of an administrator's
    /// invitation.
    pub fn parse(text: &str) -> Result<Option<Self>> {
        let Some((_, parts)) = text.trim().rsplit_once(MARK) else {
            return Ok(None);
        };
        let parts: Vec<_> = parts.split('/').collect();
        let [code, secret, inviter] = parts.as_slice() else {
            return if parts.len() == 1 {
                Ok(None)
            } else {
                Err(Error::InvitationLink)
            };
        };
        let broken = |_| Error::InvitationLink;
        Ok(Some(Self {
            code: Nonce::parse(code).ok_or(Error::InvitationLink)?,
            secret: PairingSecret::parse(secret).map_err(broken)?,
            inviter: DeviceId::parse(inviter).map_err(broken)?,
        }))
    }

    /// The whole link, with the secret in it: for the person who adds a device, never for a log.
    pub fn expose(&self, page: &str) -> Zeroizing<String> {
        Zeroizing::new(format!(
            "{}/{MARK}{}/{}/{}",
            page.trim_end_matches('/'),
            self.code.as_str(),
            *self.secret.expose(),
            self.inviter,
        ))
    }

    getters! {
        pub ref code: Nonce;
        pub copy inviter: DeviceId;
    }

    /// On the new device: its request to the inviting device, of the devices that the gateway
    /// lists.
    pub fn request(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        own: (&DeviceKeys, &DeviceBundle),
        at: Timestamp,
        listed: &[DeviceBundle],
    ) -> Result<DeviceAnswer> {
        let inviter = listed.iter().find(|device| device.id() == self.inviter);
        let inviter = inviter.ok_or(Error::UnknownDevice(self.inviter))?;
        let devices = std::slice::from_ref(inviter);
        let request = EndorsementRequest::new(tenant, approver, own, at, devices)?.to_text()?;
        let proof = self.secret.prove(&provable(&request));
        Ok(DeviceAnswer {
            proof: encoding::encode(&proof),
            digits: self.digits(&request),
            request,
        })
    }

    /// On the inviting device. A request that the secret does not prove is refused.
    pub fn receive(
        &self,
        request: &str,
        proof: &str,
    ) -> Result<DigitComparison<EndorsementRequest>> {
        let proof = encoding::decode_array("the new device's proof", proof)?;
        if !self.secret.proves(&provable(request), &proof) {
            return Err(Error::DeviceProof);
        }
        let subject = EndorsementRequest::parse(request)?;
        Ok(DigitComparison::new(self.digits(request), subject))
    }

    fn digits(&self, request: &str) -> ComparisonDigits {
        ComparisonDigits::of(request, &self.code)
    }
}

fn provable(request: &str) -> Vec<u8> {
    [PROOF_PURPOSE, request].concat().into_bytes()
}
