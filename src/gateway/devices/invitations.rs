//! A device in force invites another device of its approver: the same credential as by an
//! administrator's invitation, for minutes instead of hours. The gateway carries the new device's
//! request; the devices prove it to each other.

use sha2::{Digest as _, Sha256};

use crate::e2e::SignedInvitation;
use crate::gateway::devices::history::{check_time, judge_invitation, malformed};
use crate::gateway::devices::service::{DeviceService, check_subject};
use crate::gateway::error::{Error, Result};
use crate::gateway::identity::authenticate::random_text;
use crate::gateway::identity::caller::Approver;
use crate::protocol::credential::RoleName;
use crate::protocol::device::{
    DeviceInvitationLine, MAX_DEVICE_INVITATIONS, MAX_DEVICE_PROOF_CHARS, MAX_DEVICE_REQUEST_CHARS,
};
use crate::protocol::error::DeviceError;
use crate::protocol::id::{ApproverId, InvitationId, TextId as _};
use crate::protocol::json::JsonNode;
use crate::protocol::reader::{InvalidMember, MemberReader};
use crate::protocol::timestamp::Timestamp;
use crate::store::devices::invitation::{DeviceInvitationFact, NewDeviceInvitation};

/// A new invitation. It holds the code, so it must not be printed.
pub struct MadeDeviceInvitation {
    pub id: InvitationId,
    pub expires_at: Timestamp,
    /// Shown only this once.
    pub code: String,
}

/// A new device's request, which the gateway does not read.
pub struct DeviceRequest {
    request: String,
    proof: String,
}

impl DeviceRequest {
    pub fn parse(document: &JsonNode<'_>) -> Result<Self, InvalidMember> {
        let mut reader = MemberReader::new(document, "")?;
        let request = reader.bounded_str("request", 1, MAX_DEVICE_REQUEST_CHARS)?;
        let proof = reader.bounded_str("proof", 1, MAX_DEVICE_PROOF_CHARS)?;
        reader.finish()?;
        Ok(Self {
            request: request.to_owned(),
            proof: proof.to_owned(),
        })
    }
}

/// Refuses a credential that ends, such as a token of a sign-in: the new device's would outlive it.
fn check_lasting(caller: &Approver) -> Result<()> {
    if caller.origin.issuer.is_none() && caller.origin.expires_at.is_none() {
        return Ok(());
    }
    Err(Error::Forbidden {
        pointer: None,
        expected: "an API key without an end: people who sign in do so on the new device too",
    })
}

impl DeviceService {
    /// Reads an invitation by a device of this approver. The caller has been checked.
    pub fn read_invitation(
        &self,
        caller: &Approver,
        approver: &ApproverId,
        document: &JsonNode<'_>,
    ) -> Result<SignedInvitation> {
        let signed = SignedInvitation::parse(document);
        let signed = signed.map_err(|error| malformed(error, document))?;
        let invitation = signed.invitation();
        check_subject(caller, approver, invitation.tenant(), invitation.approver())?;
        check_time(invitation.at(), self.context.clock.now())?;
        Ok(signed)
    }

    /// Makes an invitation for another device of the approver.
    pub async fn invite(
        &self,
        caller: &Approver,
        approver: &ApproverId,
        signed: &SignedInvitation,
    ) -> Result<MadeDeviceInvitation> {
        caller.speaking_for(approver)?;
        check_lasting(caller)?;
        let tenant = &caller.origin.tenant;
        let store = &self.context.store.credentials;
        let rows = store.device_statements(tenant, approver).await?;
        judge_invitation(&rows, signed)?;
        let code = random_text::<32>()?;
        let id = self.context.clock.operation_id().0.simple().to_string();
        let id = InvitationId::parse(&id).ok_or(Error::Internal)?;
        let new = NewDeviceInvitation {
            id: &id,
            device: &signed.invitation().by().to_string(),
            code_hash: Sha256::digest(&code).into(),
        };
        let actor = caller.actor(approver);
        match store.invite_device(&actor, tenant, approver, &new).await? {
            DeviceInvitationFact::Written { expires_at } => {
                tracing::info!(%tenant, %approver, invitation = %id, "a device invited another one");
                Ok(MadeDeviceInvitation {
                    id,
                    expires_at,
                    code,
                })
            }
            DeviceInvitationFact::NoTenant => Err(Error::NotFound),
            DeviceInvitationFact::NoSigner => Err(DeviceError::RevokedSigner.into()),
            DeviceInvitationFact::TooMany => {
                let limit = MAX_DEVICE_INVITATIONS;
                Err(DeviceError::TooManyInvitations { limit }.into())
            }
        }
    }

    /// An invitation of the approver's devices, with the new device's request once there is one.
    pub async fn invitation(
        &self,
        caller: &Approver,
        approver: &ApproverId,
        id: &InvitationId,
    ) -> Result<DeviceInvitationLine> {
        caller.acting(Some(approver.clone()), "approverId")?;
        let store = &self.context.store.credentials;
        let found = store.device_invitation(&caller.origin.tenant, approver, id);
        found.await?.ok_or(Error::NotFound)
    }

    /// Ends an invitation: nobody joins with it any more, and the credential of somebody who did is
    /// revoked. For a person who did not recognise the new device.
    pub async fn end_invitation(
        &self,
        caller: &Approver,
        approver: &ApproverId,
        id: &InvitationId,
    ) -> Result<()> {
        caller.speaking_for(approver)?;
        let (tenant, actor) = (&caller.origin.tenant, caller.actor(approver));
        let store = &self.context.store.credentials;
        let ended = store.end_device_invitation(&actor, tenant, approver, id);
        if let Some(credential) = ended.await?.ok_or(Error::NotFound)? {
            let role = Some(RoleName::Approver);
            let revoked = store.revoke_credential(&actor, Some(tenant), role, &credential);
            revoked.await?;
            tracing::info!(%tenant, %approver, %credential, "a device was not recognised");
        }
        Ok(())
    }

    /// Leaves the request of the device that joined by this invitation.
    pub async fn answer_invitation(
        &self,
        caller: &Approver,
        approver: &ApproverId,
        id: &InvitationId,
        answer: &DeviceRequest,
    ) -> Result<DeviceInvitationLine> {
        caller.speaking_for(approver)?;
        if caller.origin.issuer.is_some() {
            return Err(Error::NotFound);
        }
        let origin = &caller.origin;
        let texts = (answer.request.as_str(), answer.proof.as_str());
        let store = &self.context.store.credentials;
        let kept =
            store.answer_device_invitation(&origin.tenant, approver, id, &origin.principal, texts);
        kept.await?.ok_or(Error::NotFound)
    }
}
