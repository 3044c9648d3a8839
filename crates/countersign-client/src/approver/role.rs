//! One device of an approver, opened from its profile.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use zeroize::Zeroizing;

use super::open_failure::OpenFailure;
use crate::access::{GatewayAccess, call_deadline};
use crate::channel::{ChannelRole, ChannelWatch};
use crate::error::{ClientError, Result};
use crate::gateway::{GatewayClient, path};
use crate::log::LogCheck;
use crate::profile::{ApproverProfile, EnforcerRecord, Profile, ProfileError, ProfileFile};
use crate::retry::RetryPause;
use countersign_e2e::{DeviceBundle, DeviceId, DeviceKeys, DeviceTrust};
use countersign_protocol::clock::Clock;
use countersign_protocol::envelope::EnvelopeSender;
use countersign_protocol::id::{ApproverId, RequestId, TenantId};
use countersign_protocol::timestamp::Timestamp;

const ROLE: &str = "approver";
/// While a person waits for an enforcer.
pub(super) const POLL_PAUSE: RetryPause =
    RetryPause::new(Duration::from_millis(100), Duration::from_secs(1));

/// One device of an approver, as its profile describes it.
pub struct Approver {
    pub(super) access: GatewayAccess,
    pub(super) id: ApproverId,
    pub(super) tenant: TenantId,
    pub(super) keys: DeviceKeys,
    pub(super) bundle: DeviceBundle,
    /// As it was last read or written. Requests of new enforcers add to it while it is in use.
    profile: Mutex<ApproverProfile>,
    /// Why introductions were not taken over, by the enforcer's id.
    pub(super) refused: Mutex<BTreeMap<String, OpenFailure>>,
    /// When introductions were last read.
    pub(super) looked: Mutex<Option<Instant>>,
    pub(super) file: ProfileFile,
    /// The invitation by which this device has just joined.
    pub(super) invitation: Option<String>,
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Approver {
    /// Fails with `Sealed` if the keys are encrypted.
    pub fn open(file: &ProfileFile, clock: &Clock) -> Result<Self> {
        Self::open_with(file, clock, || Err(ProfileError::Sealed.into()))
    }

    /// Asks for the passphrase if the keys are encrypted.
    pub fn open_with(
        file: &ProfileFile,
        clock: &Clock,
        passphrase: impl FnOnce() -> Result<Zeroizing<String>>,
    ) -> Result<Self> {
        let profile = file.require(file.load()?.approver, ROLE)?;
        let sender = EnvelopeSender {
            approver_id: Some(profile.id()?),
            ..EnvelopeSender::default()
        };
        let keys = match profile.sealed_keys() {
            Some(sealed) => sealed.open(&passphrase()?)?,
            None => profile.keys()?,
        };
        Ok(Self {
            access: GatewayAccess::new(&profile.gateway, clock, sender)?,
            id: profile.id()?,
            tenant: profile.gateway.tenant()?,
            keys,
            bundle: profile.bundle()?,
            profile: Mutex::new(profile),
            refused: Mutex::default(),
            looked: Mutex::default(),
            file: file.clone(),
            invitation: None,
        })
    }

    pub fn id(&self) -> &ApproverId {
        &self.id
    }

    pub fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// Encrypts the keys of this device with a passphrase; `None` stores them unencrypted.
    pub fn set_passphrase(&self, passphrase: Option<&str>) -> Result<()> {
        self.update(|profile| profile.store_keys(&self.keys, passphrase))
    }

    /// The public keys of this device.
    pub fn bundle(&self) -> &DeviceBundle {
        &self.bundle
    }

    pub fn device_id(&self) -> DeviceId {
        self.bundle.id()
    }

    /// The enforcers that this device has authenticated.
    pub fn enforcers(&self) -> Vec<EnforcerRecord> {
        locked(&self.profile).enforcers.clone()
    }

    pub(super) fn nicknames(&self) -> BTreeMap<String, String> {
        locked(&self.profile).nicknames.clone()
    }

    pub fn enforcer(&self, id: &str) -> Option<EnforcerRecord> {
        let profile = locked(&self.profile);
        let mut records = profile.enforcers.iter();
        records.find(|record| record.id == id).cloned()
    }

    pub fn client(&self) -> &GatewayClient {
        &self.access.client
    }

    /// A check of the gateway's log against what this device has seen of it.
    pub fn log_check(&self, deadline: Instant) -> LogCheck<'_> {
        LogCheck {
            client: self.client(),
            tenant: &self.tenant,
            file: &self.file,
            now: self.now(),
            deadline,
        }
    }

    /// The file that this was opened from.
    pub fn profile(&self) -> &ProfileFile {
        &self.file
    }

    pub fn now(&self) -> Timestamp {
        self.access.now()
    }

    /// The channel on which the gateway pushes messages to this approver.
    pub fn watch(&self) -> ChannelWatch<'_> {
        self.client().watch(ChannelRole::Approver, self.id.as_str())
    }

    /// The devices that this one trusts without asking anyone.
    pub(super) fn own_trust(&self) -> Result<DeviceTrust> {
        locked(&self.profile).trust()
    }

    /// The path of one of this approver's resources.
    pub(super) fn path(&self, resource: &[&str]) -> String {
        path(&[&["v1", "approvers", self.id.as_str()], resource].concat())
    }

    /// Tells the gateway not to send a message again. A failure does little harm.
    pub async fn acknowledge(&self, request_id: &RequestId, msg_id: &str) -> Result<()> {
        let access = &self.access;
        let sent = access.acknowledge(request_id, msg_id, None, call_deadline());
        sent.await
    }

    /// Changes the profile's file, and takes over what is there then.
    pub(super) fn update<T>(
        &self,
        change: impl FnOnce(&mut ApproverProfile) -> Result<T>,
    ) -> Result<T> {
        let (result, profile) = self.file.update(|profile: &mut Profile| {
            let approver = self.file.require(profile.approver.as_mut(), ROLE)?;
            self.check_same(approver)?;
            let result = change(approver)?;
            Ok::<_, ClientError>((result, approver.clone()))
        })?;
        *locked(&self.profile) = profile;
        Ok(result)
    }

    /// Like `update`, but writes only if `change` says that there is something new.
    pub(super) fn update_if_new<T>(
        &self,
        change: impl Fn(&mut ApproverProfile) -> Result<(T, bool)>,
    ) -> Result<T> {
        let mut rehearsed = locked(&self.profile).clone();
        match change(&mut rehearsed)? {
            (result, false) => Ok(result),
            (_, true) => Ok(self.update(change)?.0),
        }
    }

    /// Takes over changes of other programs.
    pub(super) fn reload(&self) -> Result<()> {
        let profile = self.file.require(self.file.load()?.approver, ROLE)?;
        self.check_same(&profile)?;
        *locked(&self.profile) = profile;
        Ok(())
    }

    /// The knowledge of one device must not become that of another.
    fn check_same(&self, profile: &ApproverProfile) -> Result<()> {
        let same_owner = profile.id()? == self.id && profile.gateway.tenant()? == self.tenant;
        if same_owner && profile.bundle()?.id() == self.device_id() {
            Ok(())
        } else {
            Err(ClientError::ProfileReplaced)
        }
    }
}
