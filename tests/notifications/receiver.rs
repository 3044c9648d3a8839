//! A push service and webhooks of the tests' own, on loopback: they keep what they are sent, and
//! answer as they are told.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aes_gcm::aead::Aead as _;
use aes_gcm::{Aes128Gcm, KeyInit as _};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hkdf::Hkdf;
use p256::ecdsa::signature::Verifier as _;
use p256::ecdsa::{Signature, VerifyingKey};
use p256::{PublicKey, SecretKey};
use ring::hmac;
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::net::TcpListener;
use tokio::time::sleep;

use crate::support::until;

#[derive(Debug, Clone)]
pub struct Sent {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Sent {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).expect(name).to_str().unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// How a request is answered.
#[derive(Debug, Clone)]
pub struct Says {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub after: Duration,
}

pub fn says(status: u16) -> Says {
    Says {
        status,
        headers: Vec::new(),
        after: Duration::ZERO,
    }
}

#[derive(Default)]
struct Kept {
    sent: Vec<Sent>,
    /// The next answers of a path; the last one stays.
    answers: HashMap<String, VecDeque<Says>>,
}

#[derive(Clone)]
pub struct Receiver {
    pub url: String,
    kept: Arc<Mutex<Kept>>,
}

async fn take(
    State(kept): State<Arc<Mutex<Kept>>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let path = uri.path().to_owned();
    let answer = {
        let mut kept = kept.lock().unwrap();
        kept.sent.push(Sent {
            path: path.clone(),
            headers,
            body,
        });
        match kept.answers.get_mut(&path) {
            Some(answers) if answers.len() > 1 => answers.pop_front().unwrap(),
            Some(answers) => answers.front().cloned().unwrap_or_else(|| says(201)),
            None => says(201),
        }
    };
    sleep(answer.after).await;
    let mut response = StatusCode::from_u16(answer.status).unwrap().into_response();
    for (name, value) in answer.headers {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    response
}

impl Receiver {
    pub async fn start() -> Self {
        let kept: Arc<Mutex<Kept>> = Arc::default();
        let router = Router::new().fallback(take).with_state(Arc::clone(&kept));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(axum::serve(listener, router).into_future());
        Self { url, kept }
    }

    /// Answers so at this path, one after the other; the last one from then on.
    pub fn answer(&self, path: &str, answers: impl IntoIterator<Item = Says>) {
        let answers = answers.into_iter().collect();
        self.kept
            .lock()
            .unwrap()
            .answers
            .insert(path.to_owned(), answers);
    }

    pub fn at(&self, path: &str) -> Vec<Sent> {
        let mut sent = self.kept.lock().unwrap().sent.clone();
        sent.retain(|sent| sent.path == path);
        sent
    }

    /// Waits until so many have come to this path.
    pub async fn awaited(&self, path: &str, count: usize) -> Vec<Sent> {
        let what = format!("{count} at {path}");
        until(&what, Duration::from_secs(20), async || {
            self.at(path).len() >= count
        })
        .await;
        self.at(path)
    }
}

/// A browser's subscription.
pub struct Browser {
    key: SecretKey,
    auth: [u8; 16],
}

impl Browser {
    pub fn new(seed: u8) -> Self {
        Self {
            key: SecretKey::from_slice(&[seed; 32]).unwrap(),
            auth: [seed; 16],
        }
    }

    pub fn from_parts(key: &[u8], auth: [u8; 16]) -> Self {
        let key = SecretKey::from_slice(key).unwrap();
        Self { key, auth }
    }

    pub fn keys(&self) -> Value {
        let public = self.key.public_key().to_sec1_bytes();
        json!({ "p256dh": URL_SAFE_NO_PAD.encode(public), "auth": URL_SAFE_NO_PAD.encode(self.auth) })
    }

    /// Opens a body of content coding `aes128gcm`.
    pub fn open(&self, body: &[u8]) -> Vec<u8> {
        let (salt, rest) = body.split_at(16);
        let (record, rest) = rest.split_at(4);
        assert_eq!(record, 4096_u32.to_be_bytes());
        let (length, rest) = rest.split_at(1);
        let (sender, sealed) = rest.split_at(usize::from(length[0]));
        let theirs = PublicKey::from_sec1_bytes(sender).unwrap();
        let shared = self.key.diffie_hellman(&theirs);
        let own = self.key.public_key().to_sec1_bytes();
        let info = [b"WebPush: info\0".as_slice(), &own, sender].concat();
        let expand = |salt: &[u8], input: &[u8], info: &[u8], length: usize| {
            let mut output = vec![0; length];
            Hkdf::<Sha256>::new(Some(salt), input)
                .expand(info, &mut output)
                .unwrap();
            output
        };
        let input = expand(&self.auth, shared.raw_secret_bytes(), &info, 32);
        let key = expand(salt, &input, b"Content-Encoding: aes128gcm\0", 16);
        let nonce = expand(salt, &input, b"Content-Encoding: nonce\0", 12);
        let nonce: [u8; 12] = nonce.try_into().unwrap();
        let cipher = Aes128Gcm::new_from_slice(&key).unwrap();
        let mut text = cipher.decrypt(&nonce.into(), sealed).expect("it opens");
        assert_eq!(text.pop(), Some(2));
        text
    }
}

/// The claims of a token of VAPID, whose signature is by the key that it names.
pub fn vapid_claims(authorization: &str, vapid_key: &str) -> Value {
    let rest = authorization.strip_prefix("vapid t=").expect("vapid");
    let (token, key) = rest.split_once(", k=").expect("a key");
    assert_eq!(key, vapid_key);
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    let key = VerifyingKey::from_sec1_bytes(&URL_SAFE_NO_PAD.decode(key).unwrap()).unwrap();
    key.verify(
        signed.as_bytes(),
        &Signature::from_slice(&signature).unwrap(),
    )
    .expect("the signature");
    let (header, claims) = signed.split_once('.').unwrap();
    let read = |part: &str| -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    };
    assert_eq!(read(header), json!({ "typ": "JWT", "alg": "ES256" }));
    read(claims)
}

/// Whether the signature of a webhook is right.
pub fn is_signed(sent: &Sent, secret: &str) -> bool {
    let key = STANDARD
        .decode(secret.strip_prefix("whsec_").unwrap())
        .unwrap();
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let (id, at) = (sent.header("webhook-id"), sent.header("webhook-timestamp"));
    let signed = [id.as_bytes(), b".", at.as_bytes(), b".", &sent.body].concat();
    let signature = sent
        .header("webhook-signature")
        .strip_prefix("v1,")
        .unwrap();
    hmac::verify(&key, &signed, &STANDARD.decode(signature).unwrap()).is_ok()
}
