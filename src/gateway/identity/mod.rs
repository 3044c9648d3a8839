//! Callers and their credentials: authentication, administration, invitations, keys.

pub mod administration;
pub(in crate::gateway) mod audit;
pub mod authenticate;
pub mod caller;
pub mod invitations;
pub(in crate::gateway) mod keys;
pub(in crate::gateway) mod platform;
pub mod secret;
