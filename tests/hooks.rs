//! The hook as a process between an agent and a gateway.

mod failing;
mod gate;
mod grants;
mod links;
mod parking;
mod policy;
mod process;
mod questions;
mod rules;
mod sessions;
