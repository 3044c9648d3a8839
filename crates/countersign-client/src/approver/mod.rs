//! The approver at a terminal: it joins, pairs, reads what enforcers ask, and signs decisions. Whatever the gateway says is
//! shown as such, or not believed.

mod decide;
mod devices;
mod inbox;
mod introductions;
mod join;
mod notifications;
mod pairing;
mod prompt;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use zeroize::Zeroizing;

pub use self::decide::{
    AcceptedDecision, ApproverChoice, DeliveryConfirmation, RequestedAction, requested_actions,
};
pub use self::devices::{DeviceStanding, KnownDevices, ListedDevice};
pub use self::inbox::{InboxItem, OpenFailure, StrangeDevice};
pub use self::introductions::Introducer;
pub use self::join::{EnrolmentProgress, InvitationLink, JoinOutcome, join};
pub use self::notifications::{
    AddedWebhook, ListedNotification, NotificationList, TestedNotification,
};
pub use self::pairing::{KnownKey, PendingComparison};
pub use self::prompt::SentPrompt;
use super::channel::{ChannelRole, ChannelWatch};
use super::error::ClientError;
use super::gateway::{GatewayCall, GatewayClient};
use super::profile::{ApproverProfile, EnforcerRecord, Profile, ProfileError, ProfileFile};
use super::wire;
use countersign_e2e::{DeviceBundle, DeviceId, DeviceKeys, DeviceTrust};
use countersign_protocol::clock::Clock;
use countersign_protocol::envelope::EnvelopeSender;
use countersign_protocol::id::{ApproverId, RequestId, TenantId};

/// A person waits so long for an answer of the gateway.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);

/// One device of an approver, as its profile describes it.
pub struct Approver {
    client: GatewayClient,
    clock: Clock,
    id: ApproverId,
    tenant: TenantId,
    keys: DeviceKeys,
    bundle: DeviceBundle,
    /// As it was last read or written. Requests of new enforcers add to it while it is in use.
    profile: Mutex<ApproverProfile>,
    /// Why introductions were not taken over, by the enforcer's id.
    refused: Mutex<BTreeMap<String, OpenFailure>>,
    /// When introductions were last read.
    looked: Mutex<Option<Instant>>,
    file: ProfileFile,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn deadline() -> Instant {
    Instant::now() + CALL_TIMEOUT
}

impl Approver {
    /// Fails with `Sealed` if the keys are encrypted.
    pub fn open(file: &ProfileFile, clock: &Clock) -> Result<Self, ClientError> {
        Self::open_with(file, clock, || Err(ProfileError::Sealed.into()))
    }

    /// Asks for the passphrase if the keys are encrypted.
    pub fn open_with(
        file: &ProfileFile,
        clock: &Clock,
        passphrase: impl FnOnce() -> Result<Zeroizing<String>, ClientError>,
    ) -> Result<Self, ClientError> {
        let profile = file.load()?.approver;
        let profile = profile.ok_or_else(|| missing_role(file))?;
        let keys = match profile.sealed_keys() {
            Some(sealed) => sealed.open(&passphrase()?)?,
            None => profile.keys()?,
        };
        Ok(Self {
            client: profile.gateway.client()?,
            clock: clock.clone(),
            id: profile.id()?,
            tenant: profile.gateway.tenant()?,
            keys,
            bundle: profile.bundle()?,
            profile: Mutex::new(profile),
            refused: Mutex::default(),
            looked: Mutex::default(),
            file: file.clone(),
        })
    }

    pub fn id(&self) -> &ApproverId {
        &self.id
    }

    pub fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// Encrypts the keys of this device with a passphrase; `None` stores them unencrypted.
    pub fn set_passphrase(&self, passphrase: Option<&str>) -> Result<(), ClientError> {
        self.update(|profile| profile.store_keys(&self.keys, passphrase))
    }

    /// The public keys of this device.
    pub fn bundle(&self) -> &DeviceBundle {
        &self.bundle
    }

    pub fn device_id(&self) -> DeviceId {
        self.bundle.id()
    }

    /// Those that this device has authenticated.
    pub fn enforcers(&self) -> Vec<EnforcerRecord> {
        locked(&self.profile).enforcers.clone()
    }

    fn enforcer(&self, id: &str) -> Option<EnforcerRecord> {
        let profile = locked(&self.profile);
        let mut records = profile.enforcers.iter();
        records.find(|record| record.id == id).cloned()
    }

    pub fn client(&self) -> &GatewayClient {
        &self.client
    }

    /// Where this is kept.
    pub fn profile(&self) -> &ProfileFile {
        &self.file
    }

    pub fn now(&self) -> countersign_protocol::timestamp::Timestamp {
        self.clock.now()
    }

    /// What the gateway pushes to this approver.
    pub fn watch(&self) -> ChannelWatch<'_> {
        self.client.watch(ChannelRole::Approver, self.id.as_str())
    }

    /// What this device trusts without asking anyone.
    fn own_trust(&self) -> Result<DeviceTrust, ClientError> {
        locked(&self.profile).trust()
    }

    fn sender(&self) -> EnvelopeSender {
        EnvelopeSender {
            approver_id: Some(self.id.clone()),
            ..EnvelopeSender::default()
        }
    }

    /// Tells the gateway that a message need not be sent again. It does not matter much if that fails.
    pub async fn acknowledge(
        &self,
        request_id: &RequestId,
        msg_id: &str,
    ) -> Result<(), ClientError> {
        let body = wire::ack_body(&self.clock, msg_id, None);
        let sender = self.sender();
        let envelope = wire::envelope(&self.clock, "ack.submit", request_id, sender, &body)?;
        let call = GatewayCall::post("/v1/acks", envelope);
        let done = self.client.expect(&call, &[200, 404], deadline()).await;
        done.map(drop)
    }

    /// Changes the profile's file, and takes over what is there then.
    fn update<T>(
        &self,
        change: impl FnOnce(&mut ApproverProfile) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let file = self.file.clone();
        let (result, profile) = file.update(|profile: &mut Profile| {
            let approver = profile.approver.as_mut();
            let approver = approver.ok_or_else(|| missing_role(&file))?;
            self.check_same(approver)?;
            let result = change(approver)?;
            Ok::<_, ClientError>((result, approver.clone()))
        })?;
        *locked(&self.profile) = profile;
        Ok(result)
    }

    /// Takes over what another program has written.
    fn reload(&self) -> Result<(), ClientError> {
        let profile = self.file.load()?.approver;
        let profile = profile.ok_or_else(|| missing_role(&self.file))?;
        self.check_same(&profile)?;
        *locked(&self.profile) = profile;
        Ok(())
    }

    /// What one device learned must not become the knowledge of another.
    fn check_same(&self, profile: &ApproverProfile) -> Result<(), ClientError> {
        let same_owner = profile.id()? == self.id && profile.gateway.tenant()? == self.tenant;
        if same_owner && profile.bundle()?.id() == self.device_id() {
            Ok(())
        } else {
            Err(ClientError::ProfileReplaced)
        }
    }
}

fn missing_role(file: &ProfileFile) -> ProfileError {
    ProfileError::NoRole {
        path: file.path().to_owned(),
        role: "approver",
    }
}
