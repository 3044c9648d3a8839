//! Devices of approvers, and the enforcers that they introduce to each other.

pub(in crate::gateway) mod history;
pub(in crate::gateway) mod introductions;
pub(in crate::gateway) mod invitations;
pub(in crate::gateway) mod service;
