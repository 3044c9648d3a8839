//! The part of a profile that an enforcer has: its key, and the approvers that it is paired with.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::gateway::GatewayProfile;
use super::records::{add_missing, read_adders, read_id, read_ids, read_list, write_adders};
use super::secret::SecretText;
use crate::error::ProfileError;
use countersign_e2e::{
    self as e2e, DeviceBundle, DeviceId, DeviceTrust, EnforcerKeys, OperatorList,
};
use countersign_protocol::id::{ApproverId, EnforcerId, TenantId};
use countersign_protocol::timestamp::Timestamp;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnforcerProfile {
    pub id: String,
    /// X25519 private key.
    pub key: SecretText,
    /// Ids of approvers who work with this agent, as approvers said at pairing. None: nobody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operators: Option<Vec<String>>,
    pub gateway: GatewayProfile,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<ApproverRecord>,
}

/// An approver that this enforcer is paired with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApproverRecord {
    pub id: String,
    pub paired_at: String,
    /// Ends the pairing at the gateway.
    pub routing_token: String,
    /// When the statements of the approver's devices were last read.
    pub checked_at: String,
    /// Bundles of the devices in force.
    pub devices: Vec<String>,
    /// Ids of devices that were ever revoked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revoked: Vec<String>,
    /// By which device each was added, by their ids.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub added_by: BTreeMap<String, String>,
}

impl EnforcerProfile {
    pub fn new(id: &EnforcerId, keys: &EnforcerKeys, gateway: GatewayProfile) -> Self {
        Self {
            id: id.to_string(),
            key: SecretText::of_key(&keys.secret()),
            operators: None,
            gateway,
            approvers: Vec::new(),
        }
    }

    pub fn id(&self) -> Result<EnforcerId, ProfileError> {
        read_id("enforcer.id", &self.id)
    }

    pub fn operators(&self) -> Result<Option<Vec<ApproverId>>, ProfileError> {
        let operators = self.operators.as_deref();
        let operators = operators.map(|ids| read_ids("enforcer.operators", ids));
        operators.transpose()
    }

    /// Adds people who work with this agent. Nobody is removed, since the list only ever excludes:
    /// a later pairing must not undo what an earlier one said.
    pub(crate) fn add_operators(&mut self, operators: &OperatorList) {
        let known = self.operators.get_or_insert_default();
        add_missing(known, operators.ids().iter().map(ToString::to_string));
    }

    pub fn keys(&self) -> Result<EnforcerKeys, ProfileError> {
        let secret = self.key.key("enforcer.key")?;
        Ok(EnforcerKeys::from_secret(&secret))
    }
}

impl ApproverRecord {
    pub fn id(&self) -> Result<ApproverId, ProfileError> {
        read_id("enforcer.approvers.id", &self.id)
    }

    pub fn checked_at(&self) -> Option<Timestamp> {
        Timestamp::parse(&self.checked_at)
    }

    pub fn trust(&self, tenant: TenantId) -> Result<DeviceTrust, ProfileError> {
        let devices = "enforcer.approvers.devices";
        let devices = read_list(devices, &self.devices, DeviceBundle::parse)?;
        let revoked = "enforcer.approvers.revoked";
        let revoked: BTreeSet<_> = read_list(revoked, &self.revoked, DeviceId::parse)?;
        let adders = read_adders("enforcer.approvers.added_by", &self.added_by)?;
        let trust = DeviceTrust::from_own_records(tenant, self.id()?, devices, revoked);
        Ok(trust.with_adders(adders))
    }

    pub fn remember(&mut self, trust: &DeviceTrust, now: Timestamp) -> Result<(), e2e::Error> {
        let devices = trust.in_force().iter();
        self.devices =
            (devices.map(|device| device.bundle().to_text())).collect::<Result<_, _>>()?;
        self.revoked = trust.revoked().iter().map(ToString::to_string).collect();
        self.added_by = write_adders(trust);
        self.checked_at = now.to_string();
        Ok(())
    }

    /// Whether the records differ in nothing but the time.
    pub(crate) fn has_same_devices(&self, other: &Self) -> bool {
        self.devices == other.devices
            && self.revoked == other.revoked
            && self.added_by == other.added_by
    }

    /// Devices that were revoked count as such in every pairing.
    pub(super) fn add_revoked(&mut self, revoked: &[String]) {
        add_missing(&mut self.revoked, revoked.iter().cloned());
    }

    /// Takes over what another copy of this record learned. Nothing is forgotten: a device that
    /// either copy knows to be revoked stays revoked. A copy from before the pairing was made anew
    /// is ignored, because it could bring back a device that was lost.
    pub fn merge(&mut self, other: &Self) {
        if self.routing_token != other.routing_token {
            return;
        }
        add_missing(&mut self.devices, other.devices.iter().cloned());
        add_missing(&mut self.revoked, other.revoked.iter().cloned());
        for (id, by) in &other.added_by {
            self.added_by.entry(id.clone()).or_insert(by.clone());
        }
        self.checked_at.clone_from(&other.checked_at);
    }
}
