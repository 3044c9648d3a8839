//! Keys that notifications derive from the cluster secret: the VAPID key by which push services
//! know the gateway, and the key that encrypts stored URLs, browsers' keys and webhooks' secrets. A
//! copy of the database reveals none of them.

use aes_gcm::aead::{Aead as _, Payload};
use aes_gcm::{Aes256Gcm, KeyInit as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use p256::SecretKey;
use p256::ecdsa::SigningKey;
use serde::{Deserialize, Serialize};

use crate::gateway::error::{Error, Result};
use crate::gateway::identity::authenticate::random;
use crate::gateway::identity::secret::{ClusterSecret, tag_bytes};
use crate::protocol::id::{ApproverId, TenantId};
use crate::protocol::notification::{PushKeys, TargetUrl, WebhookSecret};

const NONCE_BYTES: usize = 12;

/// Where a notification goes, and with which keys.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub enum DeliveryTarget {
    WebPush {
        endpoint: TargetUrl,
        keys: PushKeys,
    },
    Webhook {
        url: TargetUrl,
        secret: WebhookSecret,
    },
}

impl DeliveryTarget {
    pub fn url(&self) -> &TargetUrl {
        match self {
            Self::WebPush { endpoint, .. } => endpoint,
            Self::Webhook { url, .. } => url,
        }
    }
}

pub struct NotificationKeys {
    vapid: SigningKey,
    vapid_public: Vec<u8>,
    storage: Aes256Gcm,
    url_hash: [u8; 32],
    /// Which secret these keys are of.
    pub check: [u8; 32],
}

impl NotificationKeys {
    pub fn new(secret: &ClusterSecret) -> Result<Self> {
        // A number that is no scalar of the curve is as likely as none at all; the next one then.
        let mut scalars = (0..=u8::MAX).map(|count| secret.mac("countersign/vapid/1", &[&[count]]));
        let vapid = scalars.find_map(|scalar| SecretKey::from_slice(&scalar).ok());
        let vapid = vapid.ok_or(Error::Internal)?;
        let storage = secret.mac("countersign/notification-target/1", &[]);
        Ok(Self {
            vapid_public: vapid.public_key().to_sec1_bytes().into_vec(),
            vapid: SigningKey::from(&vapid),
            storage: Aes256Gcm::new(&storage.into()),
            url_hash: secret.mac("countersign/notification-url/1", &[]),
            check: secret.mac("countersign/notification-check/1", &[]),
        })
    }

    pub fn vapid(&self) -> &SigningKey {
        &self.vapid
    }

    /// As browsers take it: an uncompressed point in base64url.
    pub fn vapid_text(&self) -> String {
        URL_SAFE_NO_PAD.encode(&self.vapid_public)
    }

    /// Recognises a URL without showing it.
    pub fn url_hash(&self, url: &TargetUrl) -> [u8; 32] {
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &self.url_hash);
        tag_bytes(ring::hmac::sign(&key, url.as_str().as_bytes()))
    }

    /// Encrypts what is stored. It opens for the same approver and URL only.
    pub fn seal(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        target: &DeliveryTarget,
    ) -> Result<Vec<u8>> {
        let text = serde_json::to_vec(target).map_err(|_| Error::Internal)?;
        let context = context(tenant, approver, &self.url_hash(target.url()));
        let payload = Payload {
            msg: &text,
            aad: &context,
        };
        let nonce = random::<NONCE_BYTES>()?;
        let sealed = self.storage.encrypt(&nonce.into(), payload);
        let sealed = sealed.map_err(|_| Error::Internal)?;
        Ok([nonce.as_slice(), &sealed].concat())
    }

    /// `None` if it was stored under another secret.
    pub fn open(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        url_hash: &[u8],
        stored: &[u8],
    ) -> Option<DeliveryTarget> {
        let (nonce, sealed) = stored.split_at_checked(NONCE_BYTES)?;
        let nonce: [u8; NONCE_BYTES] = nonce.try_into().ok()?;
        let payload = Payload {
            msg: sealed,
            aad: &context(tenant, approver, url_hash),
        };
        let text = self.storage.decrypt(&nonce.into(), payload).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

fn context(tenant: &TenantId, approver: &ApproverId, url_hash: &[u8]) -> Vec<u8> {
    // Ids contain no newline.
    [
        tenant.as_str().as_bytes(),
        b"\n",
        approver.as_str().as_bytes(),
        b"\n",
        url_hash,
    ]
    .concat()
}
