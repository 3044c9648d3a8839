//! Encryption to several recipients: the content under a fresh key, and that key under HPKE (RFC
//! 9180, auth mode) for each recipient. Auth mode shows a recipient that the key came from the
//! paired sender. A recipient knows the key and could pass off other content to another recipient.
//! The context of an artifact or a prompt therefore holds the hash of its content, which each
//! recipient compares. Hints have a single recipient, and the decision's signature covers them.

use std::collections::BTreeSet;

use aes_gcm::aead::{Aead as _, Payload};
use aes_gcm::{Aes256Gcm, KeyInit as _};
use hpke::aead::AesGcm256;
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256;
use hpke::{Deserializable as _, OpModeR, OpModeS, Serializable as _};
use serde_json::json;
use zeroize::Zeroizing;

use super::device_id::DeviceId;
use super::encoding::{self, canonical_text};
use super::error::{Error, Result};
use super::keys::{DecryptionKey, EncryptionKey};
use super::random::{EphemeralSeed, RandomSource, draw};
use countersign_protocol::json::JsonNode;
use countersign_protocol::reader::MemberReader;

/// More do not fit beside the content within the gateway's limit for a body.
pub const MAX_RECIPIENTS: usize = 256;

const CIPHERTEXT: &str = "the ciphertext";
const ALGORITHM: &str = "HPKE-X25519-SHA256-A256GCM";
const CONTENT_ALGORITHM: &str = "A256GCM";

type EncapsulatedKey = <X25519HkdfSha256 as hpke::Kem>::EncappedKey;

/// The kind of content, and its direction. A ciphertext of one purpose never opens as one of
/// another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealPurpose {
    /// From an enforcer to devices.
    Artifact,
    /// From a device to an enforcer.
    Prompt,
    /// From a device to an enforcer, within a signed decision.
    Hints,
}

impl SealPurpose {
    fn info(self) -> &'static [u8] {
        match self {
            Self::Artifact => b"countersign seal v1",
            Self::Prompt => b"countersign prompt v1",
            Self::Hints => b"countersign hints v1",
        }
    }

    /// The member that names a recipient.
    fn recipient(self) -> &'static str {
        match self {
            Self::Artifact => "deviceId",
            Self::Prompt | Self::Hints => "enforcerId",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct WrappedKey {
    recipient: String,
    encapsulated: [u8; 32],
    key: [u8; 48],
}

/// A well-formed ciphertext. Only opening tells whether it is authentic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ciphertext {
    purpose: SealPurpose,
    /// The device that encrypted a prompt. Elsewhere the sender is known from the context.
    sender: Option<DeviceId>,
    nonce: [u8; 12],
    data: Vec<u8>,
    recipients: Vec<WrappedKey>,
}

impl Ciphertext {
    pub fn parse(purpose: SealPurpose, node: &JsonNode<'_>) -> Result<Self> {
        let mut reader = MemberReader::named(CIPHERTEXT, node)?;
        reader.constant("alg", ALGORITHM)?;
        reader.constant("enc", CONTENT_ALGORITHM)?;
        let sender = match purpose {
            SealPurpose::Prompt => Some(DeviceId::parse(reader.str("sender")?)?),
            SealPurpose::Artifact | SealPurpose::Hints => None,
        };
        let nonce = encoding::decode_array("the ciphertext's nonce", reader.str("nonce")?)?;
        let data = encoding::decode("the ciphertext's data", reader.str("data")?)?;
        let list = reader.array("recipients", "an array")?;
        reader.finish()?;
        if list.is_empty() {
            return Err(Error::NotARecipient);
        }
        if list.len() > MAX_RECIPIENTS {
            let limit = MAX_RECIPIENTS;
            return Err(Error::TooManyRecipients { limit });
        }
        let wrapped = |node| WrappedKey::read(purpose, reader.item("recipients", node)?);
        let recipients = list.iter().map(wrapped);
        let recipients: Vec<_> = recipients.collect::<Result<_>>()?;
        let mut names = BTreeSet::new();
        if !recipients.iter().all(|it| names.insert(&it.recipient)) {
            return Err(Error::RepeatedRecipient);
        }
        Ok(Self {
            purpose,
            sender,
            nonce,
            data,
            recipients,
        })
    }

    /// As canonical JSON.
    pub fn to_text(&self) -> Result<String> {
        canonical_text(CIPHERTEXT, &self.to_json())
    }

    pub(super) fn to_json(&self) -> serde_json::Value {
        let mut members = json!({
            "alg": ALGORITHM,
            "enc": CONTENT_ALGORITHM,
            "nonce": encoding::encode(&self.nonce),
            "data": encoding::encode(&self.data),
            "recipients": recipients_json(self.purpose, &self.recipients),
        });
        if let Some(sender) = self.sender {
            members["sender"] = sender.to_string().into();
        }
        members
    }

    pub(super) fn sender(&self) -> Option<DeviceId> {
        self.sender
    }
}

impl WrappedKey {
    fn read(purpose: SealPurpose, mut reader: MemberReader<'_, '_>) -> Result<Self> {
        let mut text = |name| reader.str(name);
        let wrapped = Self {
            recipient: text(purpose.recipient())?.to_owned(),
            encapsulated: encoding::decode_array("an encapsulated key", text("encapsulated")?)?,
            key: encoding::decode_array("an encrypted content key", text("key")?)?,
        };
        reader.finish()?;
        Ok(wrapped)
    }
}

fn recipients_json(purpose: SealPurpose, recipients: &[WrappedKey]) -> serde_json::Value {
    let wrapped = recipients.iter().map(|wrapped| {
        json!({
            purpose.recipient(): wrapped.recipient,
            "encapsulated": encoding::encode(&wrapped.encapsulated),
            "key": encoding::encode(&wrapped.key),
        })
    });
    wrapped.collect()
}

/// The associated data of the content: the context and all recipients, so that the whole ciphertext
/// is one unit.
fn content_data(
    purpose: SealPurpose,
    context: &serde_json::Value,
    recipients: &[WrappedKey],
) -> Result<String> {
    let mut members = context.clone();
    members["recipients"] = recipients_json(purpose, recipients);
    canonical_text(CIPHERTEXT, &members)
}

/// Encrypts. `context` is an object that both sides know from elsewhere.
pub(super) fn seal(
    (purpose, sender_id): (SealPurpose, Option<DeviceId>),
    sender: &DecryptionKey,
    recipients: &[(String, EncryptionKey)],
    context: &serde_json::Value,
    plaintext: &[u8],
    random: &mut impl RandomSource,
) -> Result<Ciphertext> {
    if recipients.is_empty() {
        return Err(Error::NoRecipients);
    }
    if recipients.len() > MAX_RECIPIENTS {
        let limit = MAX_RECIPIENTS;
        return Err(Error::TooManyRecipients { limit });
    }
    let content_key = draw::<32>(random)?;
    let nonce = *draw::<12>(random)?;
    let key_data = canonical_text(CIPHERTEXT, context)?;
    let wrap = |(recipient, key): &(String, EncryptionKey)| {
        let mut seed = EphemeralSeed::draw(random)?;
        let (encapsulated, wrapped) =
            hpke::single_shot_seal_with_rng::<AesGcm256, HkdfSha256, X25519HkdfSha256>(
                &OpModeS::Auth(sender.hpke_pair()?),
                &key.hpke()?,
                purpose.info(),
                content_key.as_slice(),
                key_data.as_bytes(),
                &mut seed,
            )
            .map_err(|_| Error::Encryption)?;
        if !seed.intact() {
            return Err(Error::Encryption);
        }
        Ok(WrappedKey {
            recipient: recipient.clone(),
            encapsulated: encapsulated.to_bytes().into(),
            key: wrapped.try_into().map_err(|_| Error::Encryption)?,
        })
    };
    let recipients: Vec<_> = recipients.iter().map(wrap).collect::<Result<_>>()?;
    let content_data = content_data(purpose, context, &recipients)?;
    let payload = Payload {
        msg: plaintext,
        aad: content_data.as_bytes(),
    };
    let cipher = Aes256Gcm::new((&*content_key).into());
    let data = cipher.encrypt((&nonce).into(), payload);
    Ok(Ciphertext {
        purpose,
        sender: sender_id,
        nonce,
        data: data.map_err(|_| Error::Encryption)?,
        recipients,
    })
}

/// Decrypts a ciphertext that `sender` made in the same context. The caller still has to compare an
/// artifact or a prompt with its hash.
pub(super) fn open(
    ciphertext: &Ciphertext,
    own_name: &str,
    own: &DecryptionKey,
    sender: &EncryptionKey,
    context: &serde_json::Value,
) -> Result<Zeroizing<Vec<u8>>> {
    let content_key = open_key(ciphertext, own_name, own, sender, context)?;
    open_content(ciphertext, &content_key, context)
}

/// The content key, as `sender` made it for this recipient.
pub(super) fn open_key(
    ciphertext: &Ciphertext,
    own_name: &str,
    own: &DecryptionKey,
    sender: &EncryptionKey,
    context: &serde_json::Value,
) -> Result<Zeroizing<[u8; 32]>> {
    let mut recipients = ciphertext.recipients.iter();
    let wrapped = recipients.find(|wrapped| wrapped.recipient == own_name);
    let wrapped = wrapped.ok_or(Error::NotARecipient)?;
    let encapsulated = EncapsulatedKey::from_bytes(&wrapped.encapsulated);
    let key_data = canonical_text(CIPHERTEXT, context)?;
    let content_key = hpke::single_shot_open::<AesGcm256, HkdfSha256, X25519HkdfSha256>(
        &OpModeR::Auth(sender.hpke()?),
        &own.hpke()?,
        &encapsulated.map_err(|_| Error::KeyNotOpened)?,
        ciphertext.purpose.info(),
        &wrapped.key,
        key_data.as_bytes(),
    );
    let content_key = Zeroizing::new(content_key.map_err(|_| Error::KeyNotOpened)?);
    let content_key = content_key.as_slice().try_into();
    Ok(Zeroizing::new(
        content_key.map_err(|_| Error::KeyNotOpened)?,
    ))
}

/// Decrypts with the content key alone, which proves nothing about the sender.
pub(super) fn open_content(
    ciphertext: &Ciphertext,
    content_key: &[u8; 32],
    context: &serde_json::Value,
) -> Result<Zeroizing<Vec<u8>>> {
    let content_data = content_data(ciphertext.purpose, context, &ciphertext.recipients)?;
    let payload = Payload {
        msg: &ciphertext.data,
        aad: content_data.as_bytes(),
    };
    let cipher = Aes256Gcm::new(content_key.into());
    let content = cipher.decrypt((&ciphertext.nonce).into(), payload);
    Ok(Zeroizing::new(
        content.map_err(|_| Error::ContentNotOpened)?,
    ))
}
