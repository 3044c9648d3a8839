//! The part of a profile that an approver has: the keys of its device, its other devices, and the enforcers that it knows.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{
    GatewayProfile, ProfileError, SealedKeys, SecretText, id, read_adders, read_key, secret_key,
    spell_adders,
};
use crate::ClientError;
use countersign_e2e::{
    self as e2e, DeviceBundle, DeviceId, DeviceKeys, DeviceName, DeviceTrust, EncryptionKey,
    PinnedEnforcer,
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
    /// Bundles of the approver's other devices in force, as far as statements led to them from this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
    /// Ids of devices that were ever revoked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revoked: Vec<String>,
    /// By which device each was added, by their ids.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub added_by: BTreeMap<String, String>,
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
            signing_key: Some(secret_key(&signing)),
            decryption_key: Some(secret_key(&decryption)),
            devices: Vec::new(),
            revoked: Vec::new(),
            added_by: BTreeMap::new(),
            sealed_keys: None,
            gateway,
            enforcers: Vec::new(),
            unpaired: Vec::new(),
        }
    }

    pub fn id(&self) -> Result<ApproverId, ProfileError> {
        id("approver.id", &self.id)
    }

    pub fn sealed_keys(&self) -> Option<&SealedKeys> {
        self.sealed_keys.as_ref()
    }

    /// The keys, unless they are sealed.
    pub fn keys(&self) -> Result<DeviceKeys, ProfileError> {
        if self.sealed_keys.is_some() {
            return Err(ProfileError::Sealed);
        }
        let read = |member, key: Option<&SecretText>| {
            let key = key.ok_or_else(|| ProfileError::damaged(member))?;
            read_key(member, key)
        };
        let signing = read("approver.signing_key", self.signing_key.as_ref())?;
        let decryption = read("approver.decryption_key", self.decryption_key.as_ref())?;
        Ok(DeviceKeys::from_secrets(&signing, &decryption))
    }

    /// Encrypts these keys with a passphrase; `None` stores them unencrypted.
    pub fn store_keys(
        &mut self,
        keys: &DeviceKeys,
        passphrase: Option<&str>,
    ) -> Result<(), ClientError> {
        let bundle = DeviceBundle::of(keys, DeviceName::parse(&self.name)?)?;
        let sealed = passphrase.map(|text| SealedKeys::seal(keys, &bundle, text));
        self.sealed_keys = sealed.transpose()?;
        let (signing, decryption) = keys.secrets();
        let plain = |key| self.sealed_keys.is_none().then(|| secret_key(key));
        (self.signing_key, self.decryption_key) = (plain(&signing), plain(&decryption));
        Ok(())
    }

    pub fn bundle(&self) -> Result<DeviceBundle, ClientError> {
        if let Some(sealed) = &self.sealed_keys {
            return Ok(sealed.bundle()?);
        }
        let name = DeviceName::parse(&self.name)?;
        Ok(DeviceBundle::of(&self.keys()?, name)?)
    }

    /// The devices that this one trusts without asking anyone: itself, and those that statements led to before.
    pub fn trust(&self) -> Result<DeviceTrust, ClientError> {
        let read = |text: &String| DeviceBundle::parse(text);
        let devices = self.devices.iter().map(read);
        let devices = devices.collect::<Result<Vec<_>, e2e::Error>>();
        let mut in_force = vec![self.bundle()?];
        in_force.extend(devices.map_err(|_| ProfileError::damaged("approver.devices"))?);
        let revoked = self.revoked.iter().map(|text| DeviceId::parse(text));
        let revoked = revoked.collect::<Result<BTreeSet<_>, e2e::Error>>();
        let revoked = revoked.map_err(|_| ProfileError::damaged("approver.revoked"))?;
        let adders = read_adders("approver.added_by", &self.added_by)?;
        let (tenant, id) = (self.gateway.tenant()?, self.id()?);
        let trust = DeviceTrust::from_own_records(tenant, id, in_force, revoked);
        Ok(trust.with_adders(adders))
    }

    /// Takes over what was followed from here. Nothing is forgotten: a device that is known to be revoked stays so. Says
    /// whether there was anything new.
    pub(crate) fn remember(&mut self, trust: &DeviceTrust) -> Result<bool, ClientError> {
        let own = self.bundle()?.id();
        let before = (self.devices.len(), self.revoked.len(), self.added_by.len());
        for device in trust.in_force().iter().filter(|device| device.id() != own) {
            let text = device.bundle().to_text()?;
            if !self.devices.contains(&text) {
                self.devices.push(text);
            }
        }
        for id in trust.revoked().iter().map(ToString::to_string) {
            if !self.revoked.contains(&id) {
                self.revoked.push(id);
            }
        }
        for (id, by) in spell_adders(trust) {
            self.added_by.entry(id).or_insert(by);
        }
        Ok(before != (self.devices.len(), self.revoked.len(), self.added_by.len()))
    }
}

impl EnforcerRecord {
    pub fn pinned(&self) -> Result<PinnedEnforcer, ProfileError> {
        let key = EncryptionKey::parse("the enforcer's key", &self.key);
        let key = key.map_err(|_| ProfileError::damaged("approver.enforcers.key"))?;
        let id = id("approver.enforcers.id", &self.id)?;
        Ok(PinnedEnforcer::from_own_records(id, key))
    }

    pub fn paired_at(&self) -> Result<Timestamp, ProfileError> {
        let at = Timestamp::parse(&self.paired_at);
        at.ok_or_else(|| ProfileError::damaged("approver.enforcers.paired_at"))
    }
}
