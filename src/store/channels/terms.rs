//! Shared by the statements about channels: the duration of a lease and of a push, and the stored
//! form of a channel's owner.

use crate::protocol::id::{TenantId, TextId};
use crate::protocol::wake_key::WakeKey;

/// How long a message is pushed at all; afterwards it can still be fetched.
pub const PUSHED_FOR_SECONDS: f64 = 24.0 * 3_600.0;
/// How old a heartbeat may be.
pub const LEASE_SECONDS: f64 = 15.0;

/// Whose channel a wake key stands for, as it is stored: tenant, kind, identity.
pub fn owner(key: &WakeKey) -> Option<(&TenantId, &'static str, &str)> {
    match key {
        WakeKey::Approver(tenant, id) => Some((tenant, "approver", id.as_str())),
        WakeKey::Enforcer(tenant, id) => Some((tenant, "enforcer", id.as_str())),
        WakeKey::Exchange(..) => None,
    }
}

pub(in crate::store) fn key_of(
    tenant: TenantId,
    kind: &str,
    identity: &str,
) -> sqlx::Result<WakeKey> {
    let key = match kind {
        "approver" => TextId::parse(identity).map(|id| WakeKey::Approver(tenant, id)),
        _ => TextId::parse(identity).map(|id| WakeKey::Enforcer(tenant, id)),
    };
    key.ok_or_else(|| sqlx::Error::Decode("not the identity of a channel".into()))
}
