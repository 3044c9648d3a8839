//! Pairing of enforcers with approvers.

pub(in crate::gateway) mod guess_limit;
pub(in crate::gateway) mod offer;
pub(in crate::gateway) mod paired;
pub(in crate::gateway) mod service;
