//! Keys of the things that callers wait for, and the short digests that nodes send each other.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::id::{ApproverId, EnforcerId, RequestId, TenantId};

/// A thing whose change a caller can wait for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub enum WakeKey {
    Approver(TenantId, ApproverId),
    Enforcer(TenantId, EnforcerId),
    Exchange(TenantId, RequestId),
}

impl WakeKey {
    pub fn tenant(&self) -> &TenantId {
        match self {
            Self::Approver(tenant, _) | Self::Enforcer(tenant, _) | Self::Exchange(tenant, _) => {
                tenant
            }
        }
    }

    /// 64 bits of hash: short enough to send hundreds at once. A collision costs one needless read.
    pub fn digest(&self) -> u64 {
        let (kind, tenant, id) = match self {
            Self::Approver(tenant, id) => ("a", tenant, id.as_str()),
            Self::Enforcer(tenant, id) => ("e", tenant, id.as_str()),
            Self::Exchange(tenant, id) => ("x", tenant, id.as_str()),
        };
        let hash: [u8; 32] = Sha256::digest(format!("{kind}\n{tenant}\n{id}")).into();
        u64::from_be_bytes(hash.first_chunk().copied().unwrap_or_default())
    }
}
