//! The use cases of exchanges. Each is in a file of its own: submit, decide, deliver, wait, inbox, refresh, withdraw.

use std::sync::Arc;

use super::context::Context;
use super::keys::Keys;
use super::load::Loads;
use super::presence::EnforcerPresence;
use super::wait::WaitCounter;
use crate::store::ExchangeStore;

pub struct Exchanges {
    pub(super) context: Arc<Context>,
    pub(super) store: Arc<ExchangeStore>,
    pub(super) presence: Arc<EnforcerPresence>,
    pub(super) waits: WaitCounter,
    pub(super) loads: Loads,
    pub(super) keys: Keys,
}

impl Exchanges {
    pub(super) fn new(context: &Arc<Context>, presence: &Arc<EnforcerPresence>) -> Self {
        Self {
            context: Arc::clone(context),
            store: Arc::clone(&context.store.exchanges),
            presence: Arc::clone(presence),
            waits: WaitCounter::default(),
            loads: Loads::default(),
            keys: Keys::default(),
        }
    }
}
