//! Periodic work: sweeps, and the deletion of rows that are past their retention.

pub(in crate::gateway) mod pass;
pub(in crate::gateway) mod sweep;
