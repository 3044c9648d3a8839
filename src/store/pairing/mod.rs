//! Pairings, their sessions and codes.

pub mod code;
pub mod offer;
pub mod pairings;
pub mod session;
