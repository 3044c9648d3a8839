//! The protocol: pure types and rules. No I/O, no clock, no database; whatever varies comes in as a parameter.
//! Everything that arrives is parsed here into types that cannot hold a wrong value, with the exact text kept beside it.

/// The version of the protocol that is spoken here.
pub const PROTOCOL_VERSION: &str = "0.2";

pub mod artifact;
pub mod canonical;
pub mod credential;
pub mod cursor;
pub mod decision;
pub mod envelope;
pub mod error;
pub mod exchange;
pub mod extensions;
pub mod framing;
pub mod id;
pub mod idempotent;
pub mod json;
pub mod listing;
pub mod message;
pub mod pairing;
pub mod presence;
pub mod prompt;
pub mod reader;
pub mod refresh;
pub mod routing;
pub mod session;
pub mod signature;
pub mod timestamp;
pub mod token;
pub mod trace;
pub mod wake_key;
