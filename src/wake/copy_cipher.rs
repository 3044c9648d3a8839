//! Encrypts the copies of messages that nodes send each other in notifications, which every role of the database can hear. Only a
//! node that has the cluster's secret can read one, or make one.

use std::sync::atomic::{AtomicU64, Ordering};

use aes_gcm::aead::{Aead as _, Nonce, Payload};
use aes_gcm::{Aes256Gcm, KeyInit as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ring::hmac;
use serde::{Deserialize, Serialize};

use super::new_messages::NewMessage;
use crate::protocol::wake_key::WakeKey;

const NONCE_BYTES: usize = 12;
const NUMBER_BYTES: usize = 8;

/// A message and its recipient.
#[derive(Deserialize, Serialize)]
pub(super) struct MessageCopy {
    pub key: WakeKey,
    pub message: NewMessage,
}

pub(super) struct CopyCipher {
    secret: hmac::Key,
    /// The key of this process, derived from its tag. So its nonces are numbers, and never occur twice under a key.
    own: Option<Aes256Gcm>,
    sent: AtomicU64,
}

impl CopyCipher {
    /// `secret` is derived from the cluster's secret for this purpose, and `tag` is unique to this process.
    pub fn new(secret: &[u8; 32], tag: &str) -> Self {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret);
        Self {
            own: key_of(&secret, tag),
            secret,
            sent: AtomicU64::new(0),
        }
    }

    /// `name` is what the notification calls the message. The copy is bound to it.
    pub fn encrypt(&self, name: &str, copy: &MessageCopy) -> Option<String> {
        let number = self.sent.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let payload = Payload {
            msg: &serde_json::to_vec(copy).ok()?,
            aad: name.as_bytes(),
        };
        let encrypted = self.own.as_ref()?.encrypt(&nonce(number), payload).ok()?;
        Some(STANDARD_NO_PAD.encode([number.as_slice(), &encrypted].concat()))
    }

    /// A copy that the process with this tag has encrypted.
    pub fn decrypt(&self, tag: &str, name: &str, text: &str) -> Option<MessageCopy> {
        let bytes = STANDARD_NO_PAD.decode(text).ok()?;
        let (number, encrypted) = bytes.split_first_chunk()?;
        let payload = Payload {
            msg: encrypted,
            aad: name.as_bytes(),
        };
        let copy = key_of(&self.secret, tag)?
            .decrypt(&nonce(*number), payload)
            .ok()?;
        serde_json::from_slice(&copy).ok()
    }
}

/// The key of the process with this tag.
fn key_of(secret: &hmac::Key, tag: &str) -> Option<Aes256Gcm> {
    let key = hmac::sign(secret, tag.as_bytes());
    Aes256Gcm::new_from_slice(key.as_ref()).ok()
}

fn nonce(number: [u8; NUMBER_BYTES]) -> Nonce<Aes256Gcm> {
    let mut nonce = [0; NONCE_BYTES];
    if let Some(last) = nonce.last_chunk_mut() {
        *last = number;
    }
    nonce.into()
}
