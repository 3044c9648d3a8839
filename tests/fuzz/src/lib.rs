//! The protocol alone, which uses nothing but itself, and what is checked of it.

#[path = "../../../src/protocol/mod.rs"]
pub mod protocol;
pub use protocol as subject;
#[path = "../targets.rs"]
pub mod targets;
