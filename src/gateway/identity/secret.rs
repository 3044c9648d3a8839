//! The secret that the nodes of a cluster share, and values derived from it: hashes of pairing
//! codes, routing tokens, keys of notifications, and a check value by which nodes compare theirs.
//! The secret itself is never stored or printed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;

use crate::config::Secret;
use crate::gateway::error::Result;
use crate::gateway::identity::authenticate::random_text;
use crate::protocol::id::{ApproverId, EnforcerId, TenantId};
use crate::protocol::pairing::{Nonce, PairingCode, RoutingToken};

/// A secret for a single node that has none configured. It lasts until the node stops.
pub fn generate() -> Result<Secret> {
    tracing::warn!(
        "security.cluster_secret is not set: pairing codes become invalid when this node stops, routing tokens cannot be \
         shown again after that, and no second node may join"
    );
    Ok(Secret::from(random_text::<32>()?.as_str()))
}

pub(in crate::gateway) fn tag_bytes(tag: hmac::Tag) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes
        .iter_mut()
        .zip(tag.as_ref())
        .for_each(|(to, from)| *to = *from);
    bytes
}

pub struct ClusterSecret(hmac::Key);

impl ClusterSecret {
    pub fn new(secret: &Secret) -> Self {
        let key = secret.expose().as_bytes();
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// The MAC of `parts` for one purpose. Each part follows its length, so different lists never
    /// collide.
    pub(in crate::gateway) fn mac(&self, purpose: &str, parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = hmac::Context::with_key(&self.0);
        for part in [purpose.as_bytes()].iter().chain(parts) {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        tag_bytes(mac.sign())
    }

    pub(in crate::gateway) fn code_hash(&self, tenant: &TenantId, code: PairingCode) -> [u8; 32] {
        let parts = [tenant.as_str().as_bytes(), code.as_bytes()];
        self.mac("countersign/pairing-code/1", &parts)
    }

    /// The routing token of a pairing. It is the same on every node and at any time.
    pub(in crate::gateway) fn routing_token(
        &self,
        tenant: &TenantId,
        nonce: &Nonce,
        enforcer: &EnforcerId,
        approver: &ApproverId,
    ) -> RoutingToken {
        let parts = [
            tenant.as_str(),
            nonce.as_str(),
            enforcer.as_str(),
            approver.as_str(),
        ];
        let mac = self.mac("countersign/routing-token/1", &parts.map(str::as_bytes));
        RoutingToken::new(&URL_SAFE_NO_PAD.encode(mac))
    }

    /// Identifies the secret without revealing it.
    pub fn check(&self) -> [u8; 32] {
        self.mac("countersign/check/1", &[])
    }
}
