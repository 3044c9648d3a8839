//! The clients at both ends, over a real gateway, and over one that lies.

mod approval;
mod approver;
mod calls;
mod channel;
pub mod devices;
mod durable;
mod enforcer;
pub mod grants;
mod hostile;
mod introductions;
mod join;
mod learned;
pub mod operators;
mod orders;
mod outcomes;
mod pairing;
mod parking;
pub mod people;
mod profile;
mod prompts;
mod sessions;
pub mod sets;
mod sets_joint;
mod sets_stalled;
pub mod tamper;
mod wrappers;
