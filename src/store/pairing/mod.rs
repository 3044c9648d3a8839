//! Pairings, their sessions and codes.

pub mod code;
pub mod pairings;
pub mod session;
