//! The protocol and the end-to-end cryptography, which use nothing but themselves, and what is checked of them.

#[path = "../../../src/e2e/mod.rs"]
pub mod e2e;
#[path = "../../../src/protocol/mod.rs"]
pub mod protocol;
pub use protocol as subject;
#[path = "../encryption.rs"]
pub mod encryption;
#[path = "../targets.rs"]
pub mod targets;
