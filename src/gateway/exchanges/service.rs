//! The use cases of exchanges. Each is in a file of its own: submit, decide, deliver, wait, inbox,
//! refresh, withdraw.

use std::sync::Arc;

use crate::gateway::admission::KeyedCounter;
use crate::gateway::channels::presence::EnforcerPresence;
use crate::gateway::context::GatewayContext;
use crate::gateway::exchanges::load::InboxLoads;
use crate::gateway::identity::keys::ApproverKeys;
use crate::protocol::id::{EnforcerId, TenantId};
use crate::store::ExchangeStore;

pub struct ExchangeService {
    pub(in crate::gateway) context: Arc<GatewayContext>,
    pub(in crate::gateway) store: Arc<ExchangeStore>,
    pub(in crate::gateway) presence: Arc<EnforcerPresence>,
    pub(in crate::gateway) waits: Arc<KeyedCounter<WaiterIdentity>>,
    pub(in crate::gateway) loads: InboxLoads,
    pub(in crate::gateway) keys: ApproverKeys,
}

/// Whose waits are counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::gateway) struct WaiterIdentity {
    /// A token's issuer may use the same subject in several tenants.
    pub tenant: TenantId,
    pub principal: String,
    /// The enforcer it waits for, if it waits for one.
    pub enforcer: Option<EnforcerId>,
}

impl ExchangeService {
    pub(in crate::gateway) fn new(
        context: &Arc<GatewayContext>,
        presence: &Arc<EnforcerPresence>,
    ) -> Self {
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
