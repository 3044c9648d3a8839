//! The types and rules of Countersign's protocol. Input is parsed into types that hold only valid
//! values, with the exact text kept beside them. The gateway and all clients use it, as does
//! `countersign-e2e`. It does no I/O and asks no database; time and settings are parameters.
//!
//! Two modules are an exception, because every client and node needs them: [`clock`] asks the
//! system for the time, [`jitter`] for random delays.
//!
//! ```
//! use countersign_protocol::{canonical::canonical, json};
//!
//! let node = json::parse(br#"{"b": 1.0, "a": "\u0041"}"#).unwrap();
//! assert_eq!(canonical(&node), r#"{"a":"A","b":1}"#);
//! // Parsers disagree about repeated names, so they are refused.
//! assert!(json::parse(br#"{"a": 1, "a": 2}"#).is_err());
//! ```

#![forbid(unsafe_code)]

pub const PROTOCOL_VERSION: &str = "0.2";

pub mod artifact;
pub mod canonical;
pub mod clock;
#[cfg(feature = "sqlx")]
mod columns;
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
mod invalid;
pub mod jitter;
pub mod json;
pub mod key_proof;
mod lenient;
pub mod listing;
pub mod message;
pub mod notification;
pub mod pairing;
pub mod presence;
pub mod prompt;
pub mod reader;
pub mod redacted;
pub mod refresh;
pub mod routing;
pub mod session;
pub mod signature;
pub mod team;
pub mod text;
pub mod timestamp;
pub mod token;
pub mod trace;
pub mod waited;
pub mod wake_key;
pub mod words;
