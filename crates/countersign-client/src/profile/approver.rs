//! The part of a profile that an approver has: the keys of its device, its other devices, and the
//! enforcers that it knows.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::gateway::GatewayProfile;
use super::records::{add_missing, read_adders, read_id, read_ids, read_list, write_adders};
use super::sealed::SealedKeys;
use super::secret::SecretText;
use crate::error::{ProfileError, Result};
use countersign_e2e::{
    DeviceBundle, DeviceId, DeviceKeys, DeviceName, DeviceTrust, EncryptionKey, OperatorList,
    PinnedEnforcer, SignedStatement, TeamId,
};
use countersign_protocol::id::ApproverId;
use countersign_protocol::timestamp::Timestamp;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApproverProfile {
    pub id: String,
    /// The name of this device.
    pub name: String,
    /// Ed25519 seed, unless the keys are sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signing_key: Option<SecretText>,
    /// X25519 private key, unless the keys are sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decryption_key: Option<SecretText>,
    /// Bundles of the approver's other devices in force that statements led to from this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
    /// Ids of devices that were ever revoked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revoked: Vec<String>,
    /// By which device each was added, by their ids.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub added_by: BTreeMap<String, String>,
    /// What this device calls others, by their ids.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nicknames: BTreeMap<String, String>,
    /// Both keys, encrypted with a passphrase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sealed_keys: Option<SealedKeys>,
    pub gateway: GatewayProfile,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub enforcers: Vec<EnforcerRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unpaired: Vec<UnpairedRecord>,
}

/// An enforcer whose key this device has authenticated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnforcerRecord {
    pub id: String,
    /// X25519 public key.
    pub key: String,
    /// On this device, or on the one from which the introduction came.
    pub paired_at: String,
    /// Ends the pairing at the gateway. None if another device was paired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing_token: Option<String>,
    /// As the person saw it when pairing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The device whose signature vouches for the key, if this one was not paired itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introduced_by: Option<String>,
    /// Ids of approvers who work with the agent, as far as this device knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operators: Vec<String>,
    /// The team that it was introduced to, if no device of this person vouches for the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introduced_in: Option<String>,
    /// The teams with which this device has paired it, as an owner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub teams: Vec<TeamPairingRecord>,
}

/// The pairing of an enforcer with a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TeamPairingRecord {
    pub team_id: String,
    /// Ends the pairing at the gateway, for all members.
    pub routing_token: String,
}

/// An enforcer whose pairing was ended on this device. No introduction from before brings it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnpairedRecord {
    pub id: String,
    pub at: String,
}

impl ApproverProfile {
    pub fn new(
        id: &ApproverId,
        keys: &DeviceKeys,
        name: &DeviceName,
        gateway: GatewayProfile,
    ) -> Self {
        let (signing, decryption) = keys.secrets();
        Self {
            id: id.to_string(),
            name: name.as_str().to_owned(),
            signing_key: Some(SecretText::of_key(&signing)),
            decryption_key: Some(SecretText::of_key(&decryption)),
            devices: Vec::new(),
            revoked: Vec::new(),
            added_by: BTreeMap::new(),
            nicknames: BTreeMap::new(),
            sealed_keys: None,
            gateway,
            enforcers: Vec::new(),
            unpaired: Vec::new(),
        }
    }

    pub fn id(&self) -> Result<ApproverId, ProfileError> {
        read_id("approver.id", &self.id)
    }

    pub fn sealed_keys(&self) -> Option<&SealedKeys> {
        self.sealed_keys.as_ref()
    }

    /// The keys, unless they are sealed.
    pub fn keys(&self) -> Result<DeviceKeys, ProfileError> {
        if self.sealed_keys.is_some() {
            return Err(ProfileError::Sealed);
        }
        let read = |member, key: &Option<SecretText>| match key {
            Some(key) => key.key(member),
            None => Err(ProfileError::Damaged(member)),
        };
        let signing = read("approver.signing_key", &self.signing_key)?;
        let decryption = read("approver.decryption_key", &self.decryption_key)?;
        Ok(DeviceKeys::from_secrets(&signing, &decryption))
    }

    /// Encrypts these keys with a passphrase; `None` stores them unencrypted.
    pub fn store_keys(&mut self, keys: &DeviceKeys, passphrase: Option<&str>) -> Result<()> {
        let bundle = DeviceBundle::of(keys, DeviceName::parse(&self.name)?)?;
        let sealed = passphrase.map(|text| SealedKeys::seal(keys, &bundle, text));
        self.sealed_keys = sealed.transpose()?;
        let (signing, decryption) = keys.secrets();
        let plain = |key| self.sealed_keys.is_none().then(|| SecretText::of_key(key));
        (self.signing_key, self.decryption_key) = (plain(&signing), plain(&decryption));
        Ok(())
    }

    pub fn bundle(&self) -> Result<DeviceBundle> {
        if let Some(sealed) = &self.sealed_keys {
            return Ok(sealed.bundle()?);
        }
        let name = DeviceName::parse(&self.name)?;
        Ok(DeviceBundle::of(&self.keys()?, name)?)
    }

    /// The devices that this one trusts without asking anyone: itself, and those that statements
    /// led to before.
    pub fn trust(&self) -> Result<DeviceTrust> {
        let mut in_force = vec![self.bundle()?];
        let others: Vec<_> = read_list("approver.devices", &self.devices, DeviceBundle::parse)?;
        in_force.extend(others);
        let revoked: BTreeSet<_> = read_list("approver.revoked", &self.revoked, DeviceId::parse)?;
        let adders = read_adders("approver.added_by", &self.added_by)?;
        let (tenant, id) = (self.gateway.tenant()?, self.id()?);
        let trust = DeviceTrust::from_own_records(tenant, id, in_force, revoked);
        Ok(trust.with_adders(adders))
    }

    /// Follows these statements from this device on, and keeps the result. Nothing is forgotten: a
    /// device that is known to be revoked stays so. Says whether there was anything new.
    pub(crate) fn follow(&mut self, signed: &[SignedStatement]) -> Result<(DeviceTrust, bool)> {
        let mut trust = self.trust()?;
        trust.follow_all(signed);
        let own = self.bundle()?.id();
        let count = |it: &Self| (it.devices.len(), it.revoked.len(), it.added_by.len());
        let before = count(self);
        let others = trust.in_force().iter().filter(|device| device.id() != own);
        let bundles: Vec<_> =
            (others.map(|device| device.bundle().to_text())).collect::<Result<_, _>>()?;
        add_missing(&mut self.devices, bundles);
        add_missing(
            &mut self.revoked,
            trust.revoked().iter().map(ToString::to_string),
        );
        for (id, by) in write_adders(&trust) {
            self.added_by.entry(id).or_insert(by);
        }
        let is_new = before != count(self);
        Ok((trust, is_new))
    }
}

impl EnforcerRecord {
    pub fn pinned(&self) -> Result<PinnedEnforcer, ProfileError> {
        let key = EncryptionKey::parse("the enforcer's key", &self.key);
        let key = key.map_err(|_| ProfileError::Damaged("approver.enforcers.key"))?;
        let id = read_id("approver.enforcers.id", &self.id)?;
        Ok(PinnedEnforcer::from_own_records(id, key))
    }

    pub fn operators(&self) -> Result<Vec<ApproverId>, ProfileError> {
        read_ids("approver.enforcers.operators", &self.operators)
    }

    /// Adds people who work with the agent. Nobody is removed: the list only ever excludes.
    /// Returns whether somebody is new.
    pub(crate) fn add_operators(&mut self, operators: Option<&OperatorList>) -> bool {
        let before = self.operators.len();
        let ids = operators.map(OperatorList::ids).unwrap_or_default();
        add_missing(&mut self.operators, ids.iter().map(ToString::to_string));
        self.operators.len() > before
    }

    pub(crate) fn is_paired_with(&self, team: TeamId) -> bool {
        let id = team.to_string();
        self.teams.iter().any(|it| it.team_id == id)
    }

    pub(crate) fn pair_with(&mut self, team: TeamId, routing_token: String) {
        let team_id = team.to_string();
        self.teams.retain(|it| it.team_id != team_id);
        self.teams.push(TeamPairingRecord {
            team_id,
            routing_token,
        });
    }

    pub fn paired_at(&self) -> Result<Timestamp, ProfileError> {
        let at = Timestamp::parse(&self.paired_at);
        at.ok_or(ProfileError::Damaged("approver.enforcers.paired_at"))
    }
}
