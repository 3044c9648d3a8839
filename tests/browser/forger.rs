//! A paired enforcer of somebody else's making: it has the right keys, and encrypts any bytes as if
//! they were an artifact.

use std::convert::Infallible;

use aes_gcm::aead::{Aead as _, Payload};
use aes_gcm::{Aes256Gcm, KeyInit as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign::client::profile::{EnforcerProfile, ProfileFile};
use hpke::aead::AesGcm256;
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256;
use hpke::rand_core::{TryCryptoRng, TryRng};
use hpke::{Deserializable as _, Kem, OpModeS, Serializable as _};
use serde_json::{Value, json};

use super::stage::BrowserStage;
use crate::support::{Enforcer, request_id};

pub struct Forger {
    enforcer: Enforcer,
    profile: EnforcerProfile,
    device: String,
    recipient: [u8; 32],
}

/// The same bytes each time, which does no harm here.
struct Fixed;

impl TryRng for Fixed {
    type Error = Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(7)
    }
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(7)
    }
    fn try_fill_bytes(&mut self, to: &mut [u8]) -> Result<(), Infallible> {
        to.fill(7);
        Ok(())
    }
}

impl TryCryptoRng for Fixed {}

impl Forger {
    /// With the keys of `bot`, which is paired with one device.
    pub async fn of(stage: &BrowserStage) -> Self {
        let file = stage.directory.path().join("countersign/bot.toml");
        let profile = ProfileFile::at(file).load().unwrap().enforcer.unwrap();
        let trust = profile.approvers[0].trust(stage.cluster.tenant.clone());
        let trust = trust.unwrap();
        let [device] = trust.in_force() else {
            panic!("one device");
        };
        Self {
            enforcer: stage.cluster.enforcer("bot").await,
            device: device.id().to_string(),
            recipient: *device.bundle().encryption_key().as_bytes(),
            profile,
        }
    }

    /// Submits `content` with what `said` says in plain about it, which has `requestId`,
    /// `artifactType`, `artifactHash` and `expiresAt`.
    pub async fn submit(&self, said: &Value, content: &[u8]) {
        let mut context = said.clone();
        context["v"] = 1.into();
        context["enforcerId"] = "bot".into();
        let ciphertext = self.seal(context, content);
        let body = json!({
            "artifactType": said["artifactType"], "artifactHash": said["artifactHash"], "expiresAt": said["expiresAt"],
            "ciphertext": ciphertext, "metadata": { "routingToken": self.profile.approvers[0].routing_token },
        });
        let id = said["requestId"].as_str().unwrap();
        self.enforcer.submit(id, "alice", body).await.expect(202);
    }

    /// The plain members of an honest request.
    pub fn said() -> Value {
        json!({
            "requestId": request_id(), "artifactType": "command.review", "artifactHash": "0".repeat(64),
            "expiresAt": crate::support::in_time(600),
        })
    }

    fn seal(&self, context: Value, content: &[u8]) -> Value {
        let keys = self.profile.keys().unwrap();
        let private =
            <X25519HkdfSha256 as Kem>::PrivateKey::from_bytes(keys.secret().as_slice()).unwrap();
        let public =
            <X25519HkdfSha256 as Kem>::PublicKey::from_bytes(keys.encryption_key().as_bytes())
                .unwrap();
        let recipient = <X25519HkdfSha256 as Kem>::PublicKey::from_bytes(&self.recipient).unwrap();
        let content_key = [9; 32];
        let (encapsulated, wrapped) =
            hpke::single_shot_seal_with_rng::<AesGcm256, HkdfSha256, X25519HkdfSha256>(
                &OpModeS::Auth((private, public)),
                &recipient,
                b"countersign seal v1",
                &content_key,
                context.to_string().as_bytes(),
                &mut Fixed,
            )
            .unwrap();
        let recipients = json!([{
            "deviceId": self.device,
            "encapsulated": URL_SAFE_NO_PAD.encode(encapsulated.to_bytes()),
            "key": URL_SAFE_NO_PAD.encode(wrapped),
        }]);
        let mut bound = context;
        bound["recipients"] = recipients.clone();
        let bound = bound.to_string();
        let nonce = [3; 12];
        let payload = Payload {
            msg: content,
            aad: bound.as_bytes(),
        };
        let data = Aes256Gcm::new((&content_key).into()).encrypt((&nonce).into(), payload);
        json!({
            "alg": "HPKE-X25519-SHA256-A256GCM", "enc": "A256GCM", "nonce": URL_SAFE_NO_PAD.encode(nonce),
            "data": URL_SAFE_NO_PAD.encode(data.unwrap()), "recipients": recipients,
        })
    }
}
