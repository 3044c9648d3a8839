//! The state of the bus, which the hub, the bus and the fallback poll share.

use std::sync::atomic::AtomicBool;

#[derive(Default)]
pub(super) struct BusHealth {
    /// Whether notifications arrive, as the canary shows.
    pub(super) receiving: AtomicBool,
    /// Set when hints had to be dropped: the bus then wakes everyone.
    pub(super) overflow: AtomicBool,
}
