//! The enforcer: it asks, and only what a pinned device signed lets anything happen.

mod approval_request;
mod ask;
mod devices;
mod grants;
mod pairing;
mod prompts;
mod sessions;

use std::time::Duration;

use tokio::time::Instant;

pub use self::approval_request::{AcceptedApproval, ApprovalDenial, ApprovalRequest};
pub use self::ask::PendingRequest;
pub use self::devices::NamedDevice;
pub use self::grants::{GrantSubject, KeptGrant, UsedGrant};
pub use self::pairing::{PairingAttempt, PairingCompletion, PairingToken};
pub use self::prompts::TakenPrompt;
use super::error::ClientError;
use super::gateway::{GatewayCall, GatewayClient};
use super::profile::{ApproverRecord, EnforcerProfile, Profile, ProfileError, ProfileFile};
use countersign_e2e::EnforcerKeys;
use countersign_protocol::clock::Clock;
use countersign_protocol::envelope::EnvelopeSender;
use countersign_protocol::id::{EnforcerId, TenantId};

/// For calls that nobody waits for longer than for the gateway itself.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);

/// An enforcer as its profile describes it.
pub struct Enforcer {
    pub(super) client: GatewayClient,
    pub(super) clock: Clock,
    id: EnforcerId,
    tenant: TenantId,
    keys: EnforcerKeys,
    approvers: Vec<ApproverRecord>,
    file: ProfileFile,
}

impl Enforcer {
    pub fn open(file: &ProfileFile, clock: &Clock) -> Result<Self, ClientError> {
        let profile = file.load()?.enforcer;
        let profile = profile.ok_or_else(|| missing_role(file))?;
        Ok(Self {
            client: profile.gateway.client()?,
            clock: clock.clone(),
            id: profile.id()?,
            tenant: profile.gateway.tenant()?,
            keys: profile.keys()?,
            approvers: profile.approvers,
            file: file.clone(),
        })
    }

    pub fn id(&self) -> &EnforcerId {
        &self.id
    }

    /// Those that this enforcer is paired with.
    pub fn approvers(&self) -> &[ApproverRecord] {
        &self.approvers
    }

    pub fn client(&self) -> &GatewayClient {
        &self.client
    }

    fn sender(&self) -> EnvelopeSender {
        EnvelopeSender {
            enforcer_id: Some(self.id.clone()),
            ..EnvelopeSender::default()
        }
    }

    /// Takes over what other programs have learned since: a pairing that ended, a device that was revoked.
    fn reload(&mut self) -> Result<(), ClientError> {
        let mut profile = self.file.load()?;
        self.approvers = own(&mut profile, &self.file)?.approvers.clone();
        Ok(())
    }

    /// Changes the record in the profile's file, and takes over what is there then.
    fn update(
        &mut self,
        change: impl FnOnce(&mut Vec<ApproverRecord>) -> Result<(), ClientError>,
    ) -> Result<(), ClientError> {
        let file = self.file.clone();
        self.approvers = file.update(|profile: &mut Profile| {
            let enforcer = own(profile, &file)?;
            change(&mut enforcer.approvers)?;
            Ok::<_, ClientError>(enforcer.approvers.clone())
        })?;
        Ok(())
    }

    /// Ends a pairing, here and at the gateway. Here it ends even if the gateway cannot be told; then that is the error.
    pub async fn unpair(&mut self, approver: &str) -> Result<bool, ClientError> {
        let found = self.approvers.iter().find(|record| record.id == approver);
        let Some(record) = found.cloned() else {
            return Ok(false);
        };
        self.update(|records| {
            records.retain(|record| record.id != approver);
            Ok(())
        })?;
        self.revoke_pairing(&record.routing_token).await?;
        Ok(true)
    }

    async fn revoke_pairing(&self, routing_token: &str) -> Result<(), ClientError> {
        let body = serde_json::json!({ "routingToken": routing_token });
        let call = GatewayCall::post("/v1/pairing/revoke", body.to_string());
        let deadline = Instant::now() + CALL_TIMEOUT;
        self.client.expect(&call, &[200], deadline).await.map(drop)
    }
}

fn missing_role(file: &ProfileFile) -> ProfileError {
    ProfileError::NoRole {
        path: file.path().to_owned(),
        role: "enforcer",
    }
}

fn own<'p>(
    profile: &'p mut Profile,
    file: &ProfileFile,
) -> Result<&'p mut EnforcerProfile, ProfileError> {
    profile.enforcer.as_mut().ok_or_else(|| missing_role(file))
}
