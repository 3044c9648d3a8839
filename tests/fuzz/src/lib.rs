//! The protocol and the end-to-end cryptography, which use nothing but themselves, and what is
//! checked of them.

pub use countersign_e2e as e2e;
pub use countersign_protocol as subject;

#[path = "../encryption.rs"]
pub mod encryption;
#[path = "../targets.rs"]
pub mod targets;
