//! The use cases of exchanges. Each is in a file of its own: submit, decide, deliver, wait, inbox, refresh, withdraw.

use std::sync::Arc;

use super::context::GatewayContext;
use super::keys::ApproverKeys;
use super::load::InboxLoads;
use super::presence::EnforcerPresence;
use super::wait::WaitCounter;
use crate::store::ExchangeStore;

pub struct ExchangeService {
    pub(super) context: Arc<GatewayContext>,
    pub(super) store: Arc<ExchangeStore>,
    pub(super) presence: Arc<EnforcerPresence>,
    pub(super) waits: WaitCounter,
    pub(super) loads: InboxLoads,
    pub(super) keys: ApproverKeys,
}

impl ExchangeService {
    pub(super) fn new(context: &Arc<GatewayContext>, presence: &Arc<EnforcerPresence>) -> Self {
        Self {
            context: Arc::clone(context),
            store: Arc::clone(&context.store.exchanges),
            presence: Arc::clone(presence),
            waits: WaitCounter::default(),
            loads: InboxLoads::default(),
            keys: ApproverKeys::default(),
        }
    }
}
