//! Channels: what is pushed over them, why they close, who is present.

pub(in crate::gateway) mod channel;
pub(in crate::gateway) mod closing;
pub(in crate::gateway) mod feed;
pub(in crate::gateway) mod inbox_scan;
pub(in crate::gateway) mod lease;
pub(in crate::gateway) mod offer_backlog;
pub(in crate::gateway) mod presence;
pub(in crate::gateway) mod push;
pub(in crate::gateway) mod registry;
