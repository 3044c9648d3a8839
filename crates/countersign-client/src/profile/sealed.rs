//! An approver's keys, encrypted with a passphrase. A reader of the profile cannot decide without
//! it.

use std::path::Path;

use aes_gcm::aead::{Aead as _, KeyInit as _, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::error::{ClientError, ProfileError, Result};
use crate::private_file::{FileProblem, PrivateFile};
use crate::random::random;
use countersign_e2e::{DeviceBundle, DeviceKeys};

const PURPOSE: &[u8] = b"countersign profile keys v1";
/// Argon2id with the memory and passes of the second recommended option of RFC 9106, and one lane.
const MEMORY_KIB: u32 = 64 << 10;
const PASSES: u32 = 3;
const MIN_PASSPHRASE_CHARS: usize = 8;

/// Both private keys, encrypted. The public ones stay readable, so that the device is known by its
/// id.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SealedKeys {
    bundle: String,
    salt: String,
    nonce: String,
    keys: String,
}

fn damaged<T>(_: T) -> ProfileError {
    ProfileError::Damaged("approver.sealed_keys")
}

fn decode<const N: usize>(text: &str) -> Result<[u8; N], ProfileError> {
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(damaged)?;
    bytes.as_slice().try_into().map_err(damaged)
}

fn cipher(passphrase: &str, salt: &[u8; 16]) -> Result<Aes256Gcm, ProfileError> {
    let params = Params::new(MEMORY_KIB, PASSES, 1, Some(32)).map_err(damaged)?;
    let mut key = Zeroizing::new([0; 32]);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(passphrase.as_bytes(), salt, &mut *key)
        .map_err(damaged)?;
    Aes256Gcm::new_from_slice(&*key).map_err(damaged)
}

impl SealedKeys {
    pub fn seal(keys: &DeviceKeys, bundle: &DeviceBundle, passphrase: &str) -> Result<Self> {
        if passphrase.chars().count() < MIN_PASSPHRASE_CHARS {
            let problem = "a passphrase needs at least 8 characters; several words are better";
            return Err(ClientError::Choice(problem));
        }
        let (mut salt, mut nonce) = ([0; 16], [0; 12]);
        random(&mut salt)?;
        random(&mut nonce)?;
        let bundle = bundle.to_text()?;
        let (signing, decryption) = keys.secrets();
        let plain = Zeroizing::new([signing.as_slice(), decryption.as_slice()].concat());
        let payload = Payload {
            msg: &plain,
            aad: &[PURPOSE, bundle.as_bytes()].concat(),
        };
        let sealed = cipher(passphrase, &salt)?.encrypt(&Nonce::from(nonce), payload);
        let sealed = sealed.map_err(damaged)?;
        Ok(Self {
            bundle,
            salt: URL_SAFE_NO_PAD.encode(salt),
            nonce: URL_SAFE_NO_PAD.encode(nonce),
            keys: URL_SAFE_NO_PAD.encode(sealed),
        })
    }

    /// The keys, if this is the passphrase.
    pub fn open(&self, passphrase: &str) -> Result<DeviceKeys, ProfileError> {
        let (salt, nonce) = (decode(&self.salt)?, decode::<12>(&self.nonce)?);
        let sealed = URL_SAFE_NO_PAD.decode(&self.keys).map_err(damaged)?;
        let payload = Payload {
            msg: &sealed,
            aad: &[PURPOSE, self.bundle.as_bytes()].concat(),
        };
        let plain = cipher(passphrase, &salt)?.decrypt(&Nonce::from(nonce), payload);
        let plain = Zeroizing::new(plain.map_err(|_| ProfileError::Passphrase)?);
        match plain.as_chunks() {
            ([signing, decryption], []) => Ok(DeviceKeys::from_secrets(signing, decryption)),
            _ => Err(damaged(())),
        }
    }

    pub fn bundle(&self) -> Result<DeviceBundle, ProfileError> {
        DeviceBundle::parse(&self.bundle).map_err(damaged)
    }
}

/// The first line of a file that nobody else can read.
pub fn read_passphrase(path: &Path) -> Result<Zeroizing<String>, ProfileError> {
    let unusable = |problem: String| ProfileError::PassphraseFile {
        path: path.to_owned(),
        problem,
    };
    let text = match PrivateFile::at(path.to_owned()).read() {
        Ok(Some(text)) => text,
        Ok(None) => return Err(unusable("there is no such file".to_owned())),
        Err(problem @ FileProblem::Exposed(_)) => {
            return Err(unusable(format!("{problem}; chmod 600 it")));
        }
        Err(problem) => return Err(unusable(problem.to_string())),
    };
    let line = text.lines().next().unwrap_or_default();
    Ok(Zeroizing::new(line.to_owned()))
}
