//! What a terminal client keeps: its credential, its keys, and whom it has paired with. A profile may have both roles, so that
//! one person can try both ends on one machine.
//!
//! Everything in it is text that this program wrote itself; the functions here turn it into keys and trust.

mod approver;
mod file;
mod sealed;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

pub use self::approver::{ApproverProfile, EnforcerRecord, UnpairedRecord};
pub use self::file::{ProfileError, ProfileFile};
pub use self::sealed::{SealedKeys, read_passphrase};
use super::gateway::{GatewayClient, GatewayLocation};
use super::{ClientError, decode_key, encode_key};
use countersign_e2e::{self as e2e, DeviceBundle, DeviceId, DeviceTrust, EnforcerKeys};
use countersign_protocol::id::{ApproverId, EnforcerId, TenantId, TextId};
use countersign_protocol::timestamp::Timestamp;

/// A secret as text. It is wiped when dropped, and never printed.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(redacted)")
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub enforcer: Option<EnforcerProfile>,
    pub approver: Option<ApproverProfile>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayProfile {
    /// The nodes, or a load balancer.
    pub urls: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_http: bool,
    pub tenant: String,
    pub api_key: SecretText,
}

impl GatewayProfile {
    pub fn client(&self) -> Result<GatewayClient, ClientError> {
        let location = GatewayLocation {
            urls: &self.urls,
            ca: self.ca.as_deref(),
            allow_http: self.allow_http,
        };
        GatewayClient::new(&location, Some(self.api_key.expose()))
    }

    pub fn tenant(&self) -> Result<TenantId, ProfileError> {
        id("tenant", &self.tenant)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnforcerProfile {
    pub id: String,
    /// X25519 private key.
    pub key: SecretText,
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
            key: secret_key(&keys.secret()),
            gateway,
            approvers: Vec::new(),
        }
    }

    pub fn id(&self) -> Result<EnforcerId, ProfileError> {
        id("enforcer.id", &self.id)
    }

    pub fn keys(&self) -> Result<EnforcerKeys, ProfileError> {
        let secret = read_key("enforcer.key", &self.key)?;
        Ok(EnforcerKeys::from_secret(&secret))
    }
}

impl ApproverRecord {
    pub fn id(&self) -> Result<ApproverId, ProfileError> {
        id("enforcer.approvers.id", &self.id)
    }

    pub fn checked_at(&self) -> Option<Timestamp> {
        Timestamp::parse(&self.checked_at)
    }

    pub fn trust(&self, tenant: TenantId) -> Result<DeviceTrust, ProfileError> {
        let damaged = |_| ProfileError::damaged("enforcer.approvers.devices");
        let devices = self.devices.iter().map(|text| DeviceBundle::parse(text));
        let devices = devices
            .collect::<Result<_, e2e::Error>>()
            .map_err(damaged)?;
        let revoked = self.revoked.iter().map(|text| DeviceId::parse(text));
        let revoked = revoked.collect::<Result<BTreeSet<_>, e2e::Error>>();
        let revoked = revoked.map_err(|_| ProfileError::damaged("enforcer.approvers.revoked"))?;
        let adders = read_adders("enforcer.approvers.added_by", &self.added_by)?;
        let trust = DeviceTrust::from_own_records(tenant, self.id()?, devices, revoked);
        Ok(trust.with_adders(adders))
    }

    pub fn remember(&mut self, trust: &DeviceTrust, now: Timestamp) -> Result<(), e2e::Error> {
        let devices = trust.in_force().iter();
        self.devices =
            (devices.map(|device| device.bundle().to_text())).collect::<Result<_, _>>()?;
        self.revoked = trust.revoked().iter().map(ToString::to_string).collect();
        self.added_by = spell_adders(trust);
        self.checked_at = now.to_string();
        Ok(())
    }

    /// Takes over what another copy of this record learned. Nothing is forgotten: whichever copy is written last, a device that
    /// one of them knows to be revoked stays revoked. A copy from before the pairing was made anew says nothing about this one:
    /// it could bring back a device that was lost.
    pub fn merge(&mut self, other: &Self) {
        if self.routing_token != other.routing_token {
            return;
        }
        let join = |own: &mut Vec<String>, others: &[String]| {
            for text in others {
                if !own.contains(text) {
                    own.push(text.clone());
                }
            }
        };
        join(&mut self.devices, &other.devices);
        join(&mut self.revoked, &other.revoked);
        for (id, by) in &other.added_by {
            self.added_by.entry(id.clone()).or_insert(by.clone());
        }
        self.checked_at.clone_from(&other.checked_at);
    }
}

fn id<T: TextId>(member: &'static str, text: &str) -> Result<T, ProfileError> {
    T::parse(text).ok_or_else(|| ProfileError::damaged(member))
}

fn read_adders(
    member: &'static str,
    adders: &BTreeMap<String, String>,
) -> Result<BTreeMap<DeviceId, DeviceId>, ProfileError> {
    let read = |(id, by): (&String, &String)| Ok((DeviceId::parse(id)?, DeviceId::parse(by)?));
    let adders = adders.iter().map(read).collect::<Result<_, e2e::Error>>();
    adders.map_err(|_| ProfileError::damaged(member))
}

fn spell_adders(trust: &DeviceTrust) -> BTreeMap<String, String> {
    let adders = trust.adders().iter();
    adders
        .map(|(id, by)| (id.to_string(), by.to_string()))
        .collect()
}

fn secret_key(bytes: &[u8; 32]) -> SecretText {
    SecretText(encode_key(bytes))
}

fn read_key(member: &'static str, text: &SecretText) -> Result<Zeroizing<[u8; 32]>, ProfileError> {
    decode_key(text.expose()).ok_or_else(|| ProfileError::damaged(member))
}
