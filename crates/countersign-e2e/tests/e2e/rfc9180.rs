//! The library computes what RFC 9180 says, with the algorithms and the mode that we use.

use countersign_e2e::{DeviceKeys, EnforcerKeys};
use hpke::aead::AesGcm256;
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256;
use hpke::rand_core::{TryCryptoRng, TryRng};
use hpke::{Deserializable as _, Kem, OpModeR, OpModeS, Serializable as _};
use serde_json::Value;
use std::convert::Infallible;

type Suite = X25519HkdfSha256;

pub fn unhex(text: &str) -> Vec<u8> {
    let digit = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digit).collect()
}

/// Gives out the bytes it was made with.
pub struct Given(pub Vec<u8>);

impl TryRng for Given {
    type Error = Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        panic!("only bytes are drawn");
    }
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        panic!("only bytes are drawn");
    }
    fn try_fill_bytes(&mut self, to: &mut [u8]) -> Result<(), Infallible> {
        to.copy_from_slice(&self.0);
        Ok(())
    }
}

impl TryCryptoRng for Given {}

fn vector() -> Value {
    serde_json::from_str(include_str!("../../../../tests/vectors/rfc9180.json")).unwrap()
}

#[test]
fn auth_mode_seals_and_opens_the_vectors() {
    let vector = vector();
    let bytes = |name: &str| unhex(vector[name].as_str().unwrap());
    let private = |name: &str| <Suite as Kem>::PrivateKey::from_bytes(&bytes(name)).unwrap();
    let public = |name: &str| <Suite as Kem>::PublicKey::from_bytes(&bytes(name)).unwrap();
    let pair = (private("skSm"), public("pkSm"));
    let (encapsulated, mut sender) = hpke::setup_sender_with_rng::<AesGcm256, HkdfSha256, Suite>(
        &OpModeS::Auth(pair),
        &public("pkRm"),
        &bytes("info"),
        &mut Given(bytes("ikmE")),
    )
    .unwrap();
    assert_eq!(encapsulated.to_bytes().to_vec(), bytes("enc"));
    let mut receiver = hpke::setup_receiver::<AesGcm256, HkdfSha256, Suite>(
        &OpModeR::Auth(public("pkSm")),
        &private("skRm"),
        &encapsulated,
        &bytes("info"),
    )
    .unwrap();
    for row in vector["encryptions"].as_array().unwrap() {
        let bytes = |name: &str| unhex(row[name].as_str().unwrap());
        assert_eq!(
            sender.seal(&bytes("pt"), &bytes("aad")).unwrap(),
            bytes("ct")
        );
        assert_eq!(
            receiver.open(&bytes("ct"), &bytes("aad")).unwrap(),
            bytes("pt")
        );
    }
}

#[test]
fn our_keys_have_the_public_keys_of_the_vectors() {
    let vector = vector();
    let bytes = |name: &str| unhex(vector[name].as_str().unwrap());
    for (secret, public) in [("skRm", "pkRm"), ("skSm", "pkSm"), ("skEm", "pkEm")] {
        let secret: [u8; 32] = bytes(secret).try_into().unwrap();
        let enforcer = EnforcerKeys::from_secret(&secret);
        assert_eq!(enforcer.encryption_key().as_bytes().to_vec(), bytes(public));
        let device = DeviceKeys::from_secrets(&[1; 32], &secret);
        assert_eq!(device.encryption_key(), enforcer.encryption_key());
    }
}
