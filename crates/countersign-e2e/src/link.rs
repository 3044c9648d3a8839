//! The pairing link: `<page>/#/pair/<code>/<secret>/<fingerprint>`. Browsers send nothing after `#`
//! to a server, so the secret and the fingerprint reach the approver's device without passing the
//! gateway.

use std::fmt;

use ring::hmac;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use super::bundle::EnforcerBundle;
use super::encoding;
use super::error::{Error, Result};
use super::random::{RandomSource, draw};
use countersign_protocol::pairing::PairingCode;
use countersign_protocol::redacted;

const MARK: &str = "#/pair/";

/// 128 random bits that only the two sides of a pairing know.
pub struct PairingSecret(Zeroizing<[u8; 16]>);

impl PairingSecret {
    pub fn generate(random: &mut impl RandomSource) -> Result<Self> {
        draw(random).map(Self)
    }

    pub(super) fn parse(text: &str) -> Result<Self> {
        let bytes = encoding::decode_array("the link's secret", text)?;
        Ok(Self(Zeroizing::new(bytes)))
    }

    pub(super) fn expose(&self) -> Zeroizing<String> {
        Zeroizing::new(encoding::encode(self.0.as_slice()))
    }

    fn mac_key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, self.0.as_slice())
    }

    pub(super) fn prove(&self, message: &[u8]) -> [u8; 32] {
        let mut proof = [0; 32];
        proof.copy_from_slice(hmac::sign(&self.mac_key(), message).as_ref());
        proof
    }

    /// In constant time.
    pub(super) fn proves(&self, message: &[u8], proof: &[u8; 32]) -> bool {
        hmac::verify(&self.mac_key(), message, proof).is_ok()
    }
}

redacted! { PairingSecret = "PairingSecret(redacted)" }

/// The first 128 bits of the SHA-256 of an enforcer's bundle, as text.
#[derive(Clone, Copy)]
pub struct Fingerprint([u8; 16]);

impl Fingerprint {
    pub fn of(bundle: &EnforcerBundle) -> Result<Self> {
        let hash = Sha256::digest(bundle.to_text()?);
        let mut first = [0; 16];
        first.copy_from_slice(&hash[..16]);
        Ok(Self(first))
    }

    pub(super) fn equals(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({})", encoding::encode(&self.0))
    }
}

#[derive(Debug)]
pub struct PairingLink {
    pub code: PairingCode,
    pub secret: PairingSecret,
    pub fingerprint: Fingerprint,
}

impl PairingLink {
    /// Reads a link, or the part of it from `#` on.
    pub fn parse(text: &str) -> Result<Self> {
        let (_, parts) = text.trim().rsplit_once(MARK).ok_or(Error::Link)?;
        let mut parts = parts.split('/');
        let mut next = || parts.next().ok_or(Error::Link);
        let code = PairingCode::parse(next()?).ok_or(Error::Link)?;
        let secret = PairingSecret::parse(next()?);
        let fingerprint = encoding::decode_array("the link's fingerprint", next()?);
        if parts.next().is_some() {
            return Err(Error::Link);
        }
        Ok(Self {
            code,
            secret: secret.map_err(|_| Error::Link)?,
            fingerprint: Fingerprint(fingerprint.map_err(|_| Error::Link)?),
        })
    }

    /// The whole link, with the secret in it: for the person who pairs, and never for a log.
    pub fn expose(&self, page: &str) -> Zeroizing<String> {
        Zeroizing::new(format!(
            "{}/{MARK}{}/{}/{}",
            page.trim_end_matches('/'),
            self.code,
            *self.secret.expose(),
            encoding::encode(&self.fingerprint.0),
        ))
    }
}
