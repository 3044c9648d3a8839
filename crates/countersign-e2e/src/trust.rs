//! Which devices speak for an approver. An enforcer starts from the devices it pinned at pairing,
//! the gateway from the first device of an approver; both follow statements from there and trust
//! nothing else.

use std::collections::{BTreeMap, BTreeSet};

use super::bundle::DeviceBundle;
use super::device_id::{DeviceId, MAX_DEVICES};
use super::error::{Error, Result};
use super::pairing::PinnedDevice;
use super::statement::{SignedStatement, StatementChange};
use countersign_protocol::id::{ApproverId, TenantId};

/// A device in force. Only `DeviceTrust` makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedDevice(DeviceBundle);

impl TrustedDevice {
    pub fn bundle(&self) -> &DeviceBundle {
        &self.0
    }

    pub fn id(&self) -> DeviceId {
        self.0.id()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustUpdate {
    Added(DeviceId),
    Revoked(DeviceId),
    /// Nothing changed: the device is in force, or was revoked, already.
    Known(DeviceId),
}

/// The devices of one approver. Revoked ids are kept for ever: an old statement, shown again,
/// brings none of them back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceTrust {
    tenant: TenantId,
    approver: ApproverId,
    in_force: Vec<TrustedDevice>,
    revoked: BTreeSet<DeviceId>,
    /// By which device each was added that was not pinned.
    adders: BTreeMap<DeviceId, DeviceId>,
}

impl DeviceTrust {
    pub fn pinned(tenant: TenantId, device: &PinnedDevice) -> Self {
        let mut trust = Self::without_devices(tenant, device.approver().clone());
        let bundle = device.bundle().clone();
        trust.in_force.push(TrustedDevice(bundle));
        trust
    }

    /// The state of the gateway before an approver's first device.
    pub fn without_devices(tenant: TenantId, approver: ApproverId) -> Self {
        Self {
            tenant,
            approver,
            in_force: Vec::new(),
            revoked: BTreeSet::new(),
            adders: BTreeMap::new(),
        }
    }

    /// As this program stored it itself: an enforcer in its profile, a gateway in its tables.
    pub fn from_own_records(
        tenant: TenantId,
        approver: ApproverId,
        in_force: Vec<DeviceBundle>,
        revoked: BTreeSet<DeviceId>,
    ) -> Self {
        let in_force = in_force.into_iter().map(TrustedDevice);
        Self {
            tenant,
            approver,
            in_force: in_force.filter(|it| !revoked.contains(&it.id())).collect(),
            revoked,
            adders: BTreeMap::new(),
        }
    }

    /// The same, with who added whom, as this program stored it itself.
    #[must_use]
    pub fn with_adders(mut self, adders: BTreeMap<DeviceId, DeviceId>) -> Self {
        self.adders = adders;
        self
    }

    getters! {
        pub ref tenant: TenantId;
        pub ref approver: ApproverId;
        pub ref in_force: [TrustedDevice];
        pub ref revoked: BTreeSet<DeviceId>;
        pub ref adders: BTreeMap<DeviceId, DeviceId>;
    }

    /// The device, if it is in force now.
    pub fn device(&self, id: DeviceId) -> Result<&TrustedDevice> {
        if self.revoked.contains(&id) {
            return Err(Error::RevokedDevice(id));
        }
        let found = self.in_force.iter().find(|device| device.id() == id);
        found.ok_or(Error::UnknownDevice(id))
    }

    /// Pins another device of the same approver, after pairing with it.
    pub fn pin(&mut self, device: &PinnedDevice) -> Result<TrustUpdate> {
        if *device.approver() != self.approver {
            return Err(Error::OtherApprover);
        }
        // It stays, even if the device that had added it is revoked.
        self.adders.remove(&device.bundle().id());
        self.add(device.bundle())
    }

    /// Registers the first device an approver ever has, by its own statement. Only the gateway does
    /// this: to an enforcer a device that vouches for itself is unknown.
    pub fn register_first(&mut self, signed: &SignedStatement) -> Result<TrustUpdate> {
        self.check_subject(signed)?;
        let statement = signed.statement();
        let StatementChange::Add(bundle) = statement.change() else {
            return Err(Error::UnknownDevice(statement.by()));
        };
        if !self.in_force.is_empty() || !self.revoked.is_empty() || statement.by() != bundle.id() {
            return Err(Error::NotFirstDevice);
        }
        if !signed.signed_by(bundle.signing_key()) {
            return Err(Error::StatementSignature);
        }
        self.add(bundle)
    }

    /// Follows one statement. It changes something only if a device in force signed it.
    pub fn follow(&mut self, signed: &SignedStatement) -> Result<TrustUpdate> {
        self.check_subject(signed)?;
        let statement = signed.statement();
        // A list is read again as a whole, and may begin with statements of devices that were
        // revoked since.
        match statement.change() {
            StatementChange::Add(bundle) if self.has(bundle) => {
                return Ok(TrustUpdate::Known(bundle.id()));
            }
            StatementChange::Revoke(id) if self.revoked.contains(id) => {
                // It may have revoked itself before, to keep the devices it has added.
                if let (Some(keeps), Ok(())) = (statement.keeps(), self.check_signer(signed)) {
                    self.revoke_added_by(*id, keeps);
                }
                return Ok(TrustUpdate::Known(*id));
            }
            StatementChange::Add(_) | StatementChange::Revoke(_) => {}
        }
        self.check_signer(signed)?;
        match statement.change() {
            StatementChange::Add(bundle) if signed.possession_by(bundle.signing_key()) => {
                let outcome = self.add(bundle)?;
                if let TrustUpdate::Added(id) = outcome {
                    self.adders.insert(id, statement.by());
                }
                Ok(outcome)
            }
            StatementChange::Add(_) => Err(Error::Possession),
            StatementChange::Revoke(id) => {
                // Also of a device that is not known here: it must not be added later.
                self.revoke(*id);
                if let Some(keeps) = statement.keeps() {
                    self.revoke_added_by(*id, keeps);
                }
                Ok(TrustUpdate::Revoked(*id))
            }
        }
    }

    fn check_signer(&self, signed: &SignedStatement) -> Result<()> {
        let signer = self.device(signed.statement().by())?;
        if signed.signed_by(signer.bundle().signing_key()) {
            Ok(())
        } else {
            Err(Error::StatementSignature)
        }
    }

    fn revoke(&mut self, id: DeviceId) {
        self.in_force.retain(|device| device.id() != id);
        self.revoked.insert(id);
    }

    /// Revokes the devices that a revoked device has added, and those that they have added, except
    /// those to be kept. A thief can sign an addition after the revocation, and a gateway can list
    /// it before the revocation.
    fn revoke_added_by(&mut self, id: DeviceId, keeps: &BTreeSet<DeviceId>) {
        let (mut adders, mut gone) = (vec![id], BTreeSet::new());
        // Also through devices that were revoked before: one of them may have been revoked to hide
        // its additions.
        while let Some(adder) = adders.pop() {
            for (added, by) in &self.adders {
                if *by == adder && !keeps.contains(added) && gone.insert(*added) {
                    adders.push(*added);
                }
            }
        }
        for id in gone {
            if self.device(id).is_ok() {
                self.revoke(id);
            }
        }
    }

    /// The devices in force that `id` has added, or that those have added.
    pub fn added_by(&self, id: DeviceId) -> BTreeSet<DeviceId> {
        let mut rest = self.clone();
        rest.revoke_added_by(id, &BTreeSet::new());
        let in_force = self.in_force.iter().map(TrustedDevice::id);
        in_force.filter(|it| rest.revoked.contains(it)).collect()
    }

    /// Follows a list in its order, and again while that adds devices: the statements of a device
    /// may stand before the one that makes it known here. A statement that cannot be followed
    /// changes nothing and does not stop the rest; it is returned with its place.
    pub fn follow_all<'s>(
        &mut self,
        list: impl IntoIterator<Item = &'s SignedStatement>,
    ) -> Vec<(usize, Error)> {
        let list: Vec<_> = list.into_iter().collect();
        let mut refused: Vec<Option<Error>> = vec![None; list.len()];
        let mut followed = vec![false; list.len()];
        // An id is added once at most, so this ends.
        let mut leads_on = true;
        while std::mem::take(&mut leads_on) {
            for (place, signed) in list.iter().enumerate() {
                match self.follow(signed) {
                    Ok(outcome) => {
                        followed[place] = true;
                        leads_on |= matches!(outcome, TrustUpdate::Added(_));
                    }
                    Err(error) => refused[place] = Some(error),
                }
            }
        }
        let refused = refused.into_iter().zip(followed).enumerate();
        refused
            .filter_map(|(place, (error, followed))| Some((place, error.filter(|_| !followed)?)))
            .collect()
    }

    fn check_subject(&self, signed: &SignedStatement) -> Result<()> {
        let statement = signed.statement();
        if *statement.tenant() == self.tenant && *statement.approver() == self.approver {
            Ok(())
        } else {
            Err(Error::OtherApprover)
        }
    }

    fn has(&self, bundle: &DeviceBundle) -> bool {
        let mut devices = self.in_force.iter();
        devices.any(|device| device.0.same_keys(bundle))
    }

    fn add(&mut self, bundle: &DeviceBundle) -> Result<TrustUpdate> {
        let id = bundle.id();
        if self.revoked.contains(&id) {
            return Err(Error::RevokedDevice(id));
        }
        if self.has(bundle) {
            return Ok(TrustUpdate::Known(id));
        }
        // An id is half a hash. An attacker who finds two key pairs with the same id must not
        // replace one by the other.
        if self.device(id).is_ok() {
            return Err(Error::DeviceIdTaken(id));
        }
        if self.in_force.len() >= MAX_DEVICES {
            let limit = MAX_DEVICES;
            return Err(Error::TooManyDevices { limit });
        }
        self.in_force.push(TrustedDevice(bundle.clone()));
        Ok(TrustUpdate::Added(id))
    }
}
