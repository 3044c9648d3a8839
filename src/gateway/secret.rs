//! The secret that the nodes of a cluster share, and what is derived from it: hashes of pairing codes, routing tokens, and
//! a value by which nodes see whether theirs is the same. The secret itself is stored nowhere and never printed.

use std::sync::atomic::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::digest::Key;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

use super::Gateway;
use super::authenticate::random_text;
use super::error::Error;
use crate::config::Secret;
use crate::protocol::id::{ApproverId, EnforcerId, TenantId};
use crate::protocol::pairing::{Code, Nonce, RoutingToken};

/// HMAC-SHA256, keyed.
type Keyed = Hmac<Sha256>;

/// A secret for a node that was given none: good for this run of it, if it is the only one.
pub fn made_up() -> Result<Secret, Error> {
    tracing::warn!(
        "security.cluster_secret is not set: pairing codes and the showing of routing tokens end when this node stops, and no \
         second node may join it"
    );
    Ok(Secret::from(random_text::<32>()?.as_str()))
}

/// The cluster secret, ready for use.
pub struct ClusterSecret(Keyed);

impl ClusterSecret {
    /// Takes a secret into use.
    #[must_use]
    pub fn new(secret: &Secret) -> Self {
        // HMAC hashes long keys itself and pads short ones with zeros; doing both here leaves nothing to fail.
        let mut key = Key::<Keyed>::default();
        for (to, from) in key.iter_mut().zip(Sha256::digest(secret.expose())) {
            *to = from;
        }
        Self(Keyed::new(&key))
    }

    /// The MAC of `parts` for one purpose. Each part follows its length, so that no two lists of parts read the same.
    fn mac(&self, purpose: &str, parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = self.0.clone();
        for part in [purpose.as_bytes()].iter().chain(parts) {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    /// What is stored of a pairing code.
    pub(super) fn code_hash(&self, tenant: &TenantId, code: Code) -> [u8; 32] {
        let parts = [tenant.as_str().as_bytes(), code.as_bytes()];
        self.mac("countersign/pairing-code/1", &parts)
    }

    /// The routing token of a pairing, the same on every node and every time.
    pub(super) fn routing_token(
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

    /// Tells the secret from another without giving it away.
    #[must_use]
    pub fn check(&self) -> [u8; 32] {
        self.mac("countersign/check/1", &[])
    }
}

impl Gateway {
    /// Tells the operator when nodes stop agreeing on the secret: once, until they agree again.
    pub(super) fn note_secrets(&self, differ: bool) {
        if differ && !self.secrets_differ.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "another node has another security.cluster_secret, so pairing codes of the one do not work on the other; set \
                 the same on every node"
            );
        }
        if !differ {
            self.secrets_differ.store(false, Ordering::Relaxed);
        }
    }
}
