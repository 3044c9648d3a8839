//! A message to a browser by its push service: encrypted for the browser (RFC 8291), with proof of
//! the sender (RFC 8292).

use aes_gcm::aead::Aead as _;
use aes_gcm::{Aes128Gcm, KeyInit as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hkdf::Hkdf;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};
use p256::{PublicKey, SecretKey};
use serde_json::json;
use sha2::Sha256;

use crate::gateway::error::{Error, Result};
use crate::protocol::notification::{PushKeys, TargetUrl};
use crate::protocol::timestamp::Timestamp;

/// One record holds everything; push services take bodies of at least 4096 bytes.
const RECORD_BYTES: u32 = 4_096;
/// How long a token counts. Push services take 24 hours at most.
const TOKEN_SECONDS: i64 = 12 * 3_600;
/// Messages with the same topic replace each other while the browser is away.
const TOPIC: &str = "waiting";

/// The randomness of one message.
pub struct MessageRandomness {
    pub key: SecretKey,
    pub salt: [u8; 16],
}

/// Whether these keys can be encrypted to.
pub fn is_point(keys: &PushKeys) -> bool {
    PublicKey::from_sec1_bytes(&keys.p256dh).is_ok()
}

/// The body of a message, as content coding `aes128gcm`.
pub fn encrypt(text: &[u8], keys: &PushKeys, ephemeral: &MessageRandomness) -> Result<Vec<u8>> {
    let broken = |_| Error::Internal;
    let theirs = PublicKey::from_sec1_bytes(&keys.p256dh).map_err(broken)?;
    let ours = ephemeral.key.public_key().to_sec1_bytes();
    let shared = ephemeral.key.diffie_hellman(&theirs);
    let expand = |salt: &[u8], input: &[u8], info: &[u8], length: usize| {
        let mut output = vec![0; length];
        let expanded = Hkdf::<Sha256>::new(Some(salt), input).expand(info, &mut output);
        expanded.map(|()| output).map_err(|_| Error::Internal)
    };
    let info = [b"WebPush: info\0".as_slice(), &keys.p256dh, &ours].concat();
    let input = expand(&keys.auth, shared.raw_secret_bytes(), &info, 32)?;
    let key = expand(
        &ephemeral.salt,
        &input,
        b"Content-Encoding: aes128gcm\0",
        16,
    )?;
    let nonce = expand(&ephemeral.salt, &input, b"Content-Encoding: nonce\0", 12)?;
    let cipher = Aes128Gcm::new_from_slice(&key).map_err(|_| Error::Internal)?;
    let nonce: [u8; 12] = nonce.try_into().map_err(|_| Error::Internal)?;
    // The delimiter of a last record.
    let padded = [text, &[2]].concat();
    let sealed = cipher.encrypt(&nonce.into(), padded.as_slice());
    let sealed = sealed.map_err(|_| Error::Internal)?;
    let length = u8::try_from(ours.len()).map_err(|_| Error::Internal)?;
    Ok([
        ephemeral.salt.as_slice(),
        &RECORD_BYTES.to_be_bytes(),
        &[length],
        &ours,
        &sealed,
    ]
    .concat())
}

/// A token that names sender, recipient and expiry, signed with the gateway's key.
pub fn authorization(
    key: &SigningKey,
    public: &str,
    endpoint: &TargetUrl,
    contact: Option<&str>,
    now: Timestamp,
) -> Result<HeaderValue> {
    let expires = now.inner().unix_timestamp().saturating_add(TOKEN_SECONDS);
    let origin = endpoint.origin();
    let audience = origin.strip_suffix(":443").unwrap_or(origin);
    let mut claims = json!({ "aud": audience, "exp": expires });
    if let (Some(contact), Some(claims)) = (contact, claims.as_object_mut()) {
        claims.insert("sub".into(), contact.into());
    }
    let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let header = encode(r#"{"typ":"JWT","alg":"ES256"}"#);
    let signed = format!("{header}.{}", encode(&claims.to_string()));
    let signature: Signature = key.sign(signed.as_bytes());
    let signature = URL_SAFE_NO_PAD.encode(signature.to_bytes());
    let value = HeaderValue::try_from(format!("vapid t={signed}.{signature}, k={public}"));
    let mut value = value.map_err(|_| Error::Internal)?;
    value.set_sensitive(true);
    Ok(value)
}

pub fn headers(authorization: HeaderValue, ttl_seconds: i64) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, authorization);
    let octets = HeaderValue::from_static("application/octet-stream");
    headers.insert(header::CONTENT_TYPE, octets);
    let coding = HeaderValue::from_static("aes128gcm");
    headers.insert(header::CONTENT_ENCODING, coding);
    headers.insert(HeaderName::from_static("ttl"), ttl_seconds.into());
    let high = HeaderValue::from_static("high");
    headers.insert(HeaderName::from_static("urgency"), high);
    let topic = HeaderValue::from_static(TOPIC);
    headers.insert(HeaderName::from_static("topic"), topic);
    headers
}
