//! Where approvers are notified, and the deliveries.

pub mod delivery;
pub mod target;
