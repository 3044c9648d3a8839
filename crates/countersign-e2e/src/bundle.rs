//! Public keys as they travel: base64url of canonical JSON, so that each bundle has one spelling. A
//! parsed bundle is well formed, nothing more: nobody has vouched for it yet.

use serde_json::json;

use super::device_id::DeviceId;
use super::encoding::{self, canonical_text, parse_canonical, versioned};
use super::error::{Error, Result};
use super::keys::{DeviceKeys, EncryptionKey, EnforcerKeys};
use super::random::{RandomSource, draw};
use countersign_protocol::id::EnforcerId;
use countersign_protocol::reader::{MemberReader, ReadResult};
use countersign_protocol::signature::PublicKey;
use countersign_protocol::text::{is_invisible, is_longer};

pub(super) const DEVICE: &str = "the device's bundle";
const ENFORCER: &str = "the enforcer's bundle";
const MAX_NAME_CHARS: usize = 64;
pub const MAX_LABEL_CHARS: usize = 256;

/// The name of a device, such as "phone". It is displayed beside trust decisions, so it has no
/// invisible characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceName(String);

impl DeviceName {
    pub fn parse(text: &str) -> Result<Self> {
        let name = is_shown(text, MAX_NAME_CHARS).then(|| Self(text.to_owned()));
        name.ok_or(Error::DeviceName)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The public keys of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceBundle {
    signing: PublicKey,
    encryption: EncryptionKey,
    name: DeviceName,
}

impl DeviceBundle {
    pub fn of(keys: &DeviceKeys, name: DeviceName) -> Result<Self> {
        Ok(Self {
            signing: keys.signing_key()?,
            encryption: keys.encryption_key(),
            name,
        })
    }

    pub fn parse(text: &str) -> Result<Self> {
        let bytes = encoding::decode(DEVICE, text)?;
        let node = parse_canonical(DEVICE, &bytes)?;
        let mut reader = versioned(DEVICE, &node)?;
        let bundle = Self::read(&mut reader)?;
        reader.finish()?;
        Ok(bundle)
    }

    /// Reads the members of a bundle, which may stand among others.
    pub(super) fn read(reader: &mut MemberReader<'_, '_>) -> Result<Self> {
        let what = "the device's signing key";
        let signing = reader.str("ed25519")?;
        let signing: [u8; 32] = encoding::decode_array(what, signing)?;
        let encryption = reader.str("x25519")?;
        Ok(Self {
            signing: PublicKey::from_bytes(&signing).ok_or(Error::WeakKey { what })?,
            encryption: EncryptionKey::parse("the device's encryption key", encryption)?,
            name: DeviceName::parse(reader.str("name")?)?,
        })
    }

    pub(super) fn members(&self) -> serde_json::Value {
        json!({
            "v": 1,
            "ed25519": self.signing.to_text(),
            "x25519": self.encryption.to_text(),
            "name": self.name.as_str(),
        })
    }

    pub fn to_text(&self) -> Result<String> {
        Ok(encoding::encode(
            canonical_text(DEVICE, &self.members())?.as_bytes(),
        ))
    }

    pub fn id(&self) -> DeviceId {
        DeviceId::of(self.signing.as_bytes(), self.encryption.as_bytes())
    }

    pub fn signing_key(&self) -> &PublicKey {
        &self.signing
    }

    pub fn encryption_key(&self) -> &EncryptionKey {
        &self.encryption
    }

    pub fn name(&self) -> &DeviceName {
        &self.name
    }

    /// Whether two bundles have the same keys. Their names may differ.
    pub fn same_keys(&self, other: &Self) -> bool {
        self.signing == other.signing && self.encryption == other.encryption
    }
}

/// Whether a text can be a label. Labels are shown beside requests, so they have no invisible
/// characters.
pub fn is_label(text: &str) -> bool {
    is_shown(text, MAX_LABEL_CHARS)
}

fn is_shown(text: &str, max: usize) -> bool {
    !text.trim().is_empty() && !is_longer(text, max) && !text.chars().any(is_invisible)
}

pub(super) fn read_label(reader: &mut MemberReader<'_, '_>) -> ReadResult<Option<String>> {
    let label = reader.optional_str("label")?;
    if label.is_some_and(|label| !is_label(label)) {
        let expected =
            format!("a label of 1 to {MAX_LABEL_CHARS} characters, none of them invisible");
        return Err(reader.refusal("label", expected));
    }
    Ok(label.map(str::to_owned))
}

/// The offer of an enforcer at pairing: its id, key and label, and randomness that makes every
/// attempt differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnforcerBundle {
    enforcer_id: EnforcerId,
    encryption: EncryptionKey,
    label: Option<String>,
    random: [u8; 16],
}

impl EnforcerBundle {
    /// For one attempt at pairing.
    pub fn new(
        keys: &EnforcerKeys,
        enforcer_id: EnforcerId,
        random: &mut impl RandomSource,
    ) -> Result<Self> {
        Ok(Self {
            enforcer_id,
            encryption: keys.encryption_key(),
            label: None,
            random: *draw(random)?,
        })
    }

    /// Adds the label. A label that may not be shown is left out.
    #[must_use]
    pub fn labelled(mut self, label: Option<&str>) -> Self {
        self.label = label.filter(|label| is_label(label)).map(str::to_owned);
        self
    }

    pub fn parse(text: &str) -> Result<Self> {
        let bytes = encoding::decode(ENFORCER, text)?;
        let node = parse_canonical(ENFORCER, &bytes)?;
        let mut reader = versioned(ENFORCER, &node)?;
        let random = reader.str("random")?;
        let encryption = reader.str("x25519")?;
        let bundle = Self {
            enforcer_id: reader.id("enforcerId")?,
            encryption: EncryptionKey::parse("the enforcer's encryption key", encryption)?,
            label: read_label(&mut reader)?,
            random: encoding::decode_array("the enforcer's random value", random)?,
        };
        reader.finish()?;
        Ok(bundle)
    }

    pub fn to_text(&self) -> Result<String> {
        let mut members = json!({
            "v": 1,
            "enforcerId": self.enforcer_id.as_str(),
            "x25519": self.encryption.to_text(),
            "random": encoding::encode(&self.random),
        });
        if let Some(label) = &self.label {
            members["label"] = label.as_str().into();
        }
        Ok(encoding::encode(
            canonical_text(ENFORCER, &members)?.as_bytes(),
        ))
    }

    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    pub fn enforcer_id(&self) -> &EnforcerId {
        &self.enforcer_id
    }

    pub fn encryption_key(&self) -> &EncryptionKey {
        &self.encryption
    }
}
