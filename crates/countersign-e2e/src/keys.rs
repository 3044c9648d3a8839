//! Key pairs of devices and enforcers. Secrets are wiped when dropped, and never printed.

use std::fmt;

use ed25519_dalek::{Signer as _, SigningKey};
use hpke::Deserializable as _;
use hpke::kem::{Kem as _, X25519HkdfSha256};
use ring::hmac;
use subtle::ConstantTimeEq as _;
use x25519_dalek::StaticSecret;
use zeroize::Zeroizing;

use super::device_id::DeviceId;
use super::encoding;
use super::error::{Error, Result};
use super::random::{RandomSource, draw};
use countersign_protocol::redacted;
use countersign_protocol::signature::{PublicKey, Signature};

type HpkePrivate = <X25519HkdfSha256 as hpke::Kem>::PrivateKey;
type HpkePublic = <X25519HkdfSha256 as hpke::Kem>::PublicKey;

/// The salt that makes a key for proofs of records out of an enforcer's private key.
const RECORD_KEY: &[u8] = b"countersign stored request v1";

/// 2^255 - 19, little-endian: an X25519 key is a number below it.
const PRIME: [u8; 32] = {
    let mut prime = [0xff; 32];
    prime[0] = 0xed;
    prime[31] = 0x7f;
    prime
};

/// An X25519 public key in its only spelling, and not of small order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncryptionKey([u8; 32]);

impl EncryptionKey {
    pub(super) fn from_bytes(what: &'static str, bytes: [u8; 32]) -> Result<Self> {
        // A recipient hashes its own key as it computes it. Another spelling of the same key would
        // never open.
        let canonical = bytes.iter().rev().lt(PRIME.iter().rev());
        // Multiplying by any clamped number sends a point of small order to zero, and no other.
        let product = x25519_dalek::x25519([1; 32], bytes);
        if canonical && !bool::from(product.ct_eq(&[0; 32])) {
            Ok(Self(bytes))
        } else {
            Err(Error::WeakKey { what })
        }
    }

    pub fn parse(what: &'static str, text: &str) -> Result<Self> {
        Self::from_bytes(what, encoding::decode_array(what, text)?)
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub fn to_text(&self) -> String {
        encoding::encode(&self.0)
    }

    pub(super) fn hpke(&self) -> Result<HpkePublic> {
        HpkePublic::from_bytes(&self.0).map_err(|_| Error::Encryption)
    }
}

/// An X25519 private key.
pub(super) struct DecryptionKey(StaticSecret);

impl DecryptionKey {
    pub(super) fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self(StaticSecret::from(*bytes))
    }

    pub(super) fn to_bytes(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.0.to_bytes())
    }

    pub(super) fn public(&self) -> EncryptionKey {
        EncryptionKey(x25519_dalek::PublicKey::from(&self.0).to_bytes())
    }

    pub(super) fn hpke(&self) -> Result<HpkePrivate> {
        HpkePrivate::from_bytes(self.to_bytes().as_slice()).map_err(|_| Error::Encryption)
    }

    pub(super) fn hpke_pair(&self) -> Result<(HpkePrivate, HpkePublic)> {
        let private = self.hpke()?;
        let public = X25519HkdfSha256::sk_to_pk(&private);
        Ok((private, public))
    }
}

/// The keys of one device of an approver: it signs decisions and opens requests.
pub struct DeviceKeys {
    signing: SigningKey,
    decryption: DecryptionKey,
}

impl DeviceKeys {
    pub fn generate(random: &mut impl RandomSource) -> Result<Self> {
        Ok(Self::from_secrets(&*draw(random)?, &*draw(random)?))
    }

    /// From the Ed25519 seed and the X25519 private key, as `secrets` returns them.
    pub fn from_secrets(signing: &[u8; 32], decryption: &[u8; 32]) -> Self {
        Self {
            signing: SigningKey::from_bytes(signing),
            decryption: DecryptionKey::from_bytes(decryption),
        }
    }

    pub fn secrets(&self) -> (Zeroizing<[u8; 32]>, Zeroizing<[u8; 32]>) {
        let signing = Zeroizing::new(self.signing.to_bytes());
        (signing, self.decryption.to_bytes())
    }

    pub fn signing_key(&self) -> Result<PublicKey> {
        let what = "the device's signing key";
        let bytes = self.signing.verifying_key().to_bytes();
        PublicKey::from_bytes(&bytes).ok_or(Error::WeakKey { what })
    }

    pub fn encryption_key(&self) -> EncryptionKey {
        self.decryption.public()
    }

    pub fn id(&self) -> DeviceId {
        let signing = self.signing.verifying_key().to_bytes();
        DeviceId::of(&signing, self.encryption_key().as_bytes())
    }

    pub(super) fn decryption(&self) -> &DecryptionKey {
        &self.decryption
    }

    pub(super) fn sign(&self, message: &[u8]) -> Result<Signature> {
        let bytes = self.signing.sign(message).to_bytes();
        Signature::from_bytes(&bytes).ok_or(Error::Encryption)
    }
}

impl fmt::Debug for DeviceKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceKeys({}, redacted)", self.id())
    }
}

/// The key of an enforcer: it seals requests, and opens prompts and the hints of decisions.
pub struct EnforcerKeys {
    decryption: DecryptionKey,
}

impl EnforcerKeys {
    pub fn generate(random: &mut impl RandomSource) -> Result<Self> {
        Ok(Self::from_secret(&*draw(random)?))
    }

    pub fn from_secret(decryption: &[u8; 32]) -> Self {
        let decryption = DecryptionKey::from_bytes(decryption);
        Self { decryption }
    }

    pub fn secret(&self) -> Zeroizing<[u8; 32]> {
        self.decryption.to_bytes()
    }

    pub fn encryption_key(&self) -> EncryptionKey {
        self.decryption.public()
    }

    pub(super) fn decryption(&self) -> &DecryptionKey {
        &self.decryption
    }

    /// Proves that a record of a request comes from a holder of this key.
    pub fn prove_record(&self, record: &str) -> String {
        encoding::encode(hmac::sign(&self.record_key(), record.as_bytes()).as_ref())
    }

    /// In constant time.
    pub fn proves_record(&self, record: &str, proof: &str) -> bool {
        encoding::decode_array::<32>("the record's proof", proof)
            .is_ok_and(|proof| hmac::verify(&self.record_key(), record.as_bytes(), &proof).is_ok())
    }

    fn record_key(&self) -> hmac::Key {
        let extract = hmac::Key::new(hmac::HMAC_SHA256, RECORD_KEY);
        hmac::Key::new(
            hmac::HMAC_SHA256,
            hmac::sign(&extract, &*self.secret()).as_ref(),
        )
    }
}

redacted! { EnforcerKeys = "EnforcerKeys(redacted)" }
