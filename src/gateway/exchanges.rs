//! The use cases of exchanges. Each is in a file of its own: submit, decide, deliver, wait, inbox,
//! refresh, withdraw.

use std::sync::Arc;

use super::admission::KeyedCounter;
use super::context::GatewayContext;
use super::keys::ApproverKeys;
use super::load::InboxLoads;
use super::presence::EnforcerPresence;
use crate::protocol::id::{EnforcerId, TenantId};
use crate::store::ExchangeStore;

pub struct ExchangeService {
    pub(super) context: Arc<GatewayContext>,
    pub(super) store: Arc<ExchangeStore>,
    pub(super) presence: Arc<EnforcerPresence>,
    pub(super) waits: Arc<KeyedCounter<WaiterIdentity>>,
    pub(super) loads: InboxLoads,
    pub(super) keys: ApproverKeys,
}

/// Whose waits are counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct WaiterIdentity {
    /// A token's issuer may use the same subject in several tenants.
    pub tenant: TenantId,
    pub principal: String,
    /// The enforcer it waits for, if it waits for one.
    pub enforcer: Option<EnforcerId>,
}

impl ExchangeService {
    pub(super) fn new(context: &Arc<GatewayContext>, presence: &Arc<EnforcerPresence>) -> Self {
        Self {
            context: Arc::clone(context),
            store: Arc::clone(&context.store.exchanges),
            presence: Arc::clone(presence),
            waits: Arc::default(),
            loads: InboxLoads::new(context),
            keys: ApproverKeys::new(context),
        }
    }
}
