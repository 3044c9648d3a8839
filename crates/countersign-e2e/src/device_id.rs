//! The id of a device, which follows from its keys.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use countersign_protocol::id::{SignerKeyId, TextId as _};

/// Most devices of an approver, so that a request can be encrypted to all of them within its size
/// limit.
pub const MAX_DEVICES: usize = 32;

/// Names the keys of a device, and is the `signerKeyId` of its decisions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(pub(super) [u8; 16]);

impl DeviceId {
    pub(super) fn of(signing: &[u8; 32], encryption: &[u8; 32]) -> Self {
        let hash: [u8; 32] = Sha256::new()
            .chain_update(b"countersign device v1")
            .chain_update(signing)
            .chain_update(encryption)
            .finalize()
            .into();
        let mut id = [0; 16];
        id.copy_from_slice(&hash[..16]);
        Self(id)
    }

    pub fn signer_key_id(&self) -> Option<SignerKeyId> {
        SignerKeyId::parse(&self.to_string())
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceId({self})")
    }
}
