//! The protocol's types and rules. No I/O, clock or database here: time and settings are parameters. Input is parsed into
//! types that hold only valid values, with the exact text kept beside them.

pub const PROTOCOL_VERSION: &str = "0.2";

pub mod artifact;
pub mod canonical;
pub mod credential;
pub mod cursor;
pub mod decision;
pub mod device;
pub mod envelope;
pub mod error;
pub mod exchange;
pub mod extensions;
pub mod framing;
pub mod hex;
pub mod id;
pub mod idempotent;
pub mod json;
pub mod key_proof;
pub mod listing;
pub mod message;
pub mod notification;
pub mod pairing;
pub mod presence;
pub mod prompt;
pub mod reader;
pub mod refresh;
pub mod routing;
pub mod session;
pub mod signature;
pub mod text;
pub mod timestamp;
pub mod token;
pub mod trace;
pub mod waited;
pub mod wake_key;
pub(crate) mod words;
