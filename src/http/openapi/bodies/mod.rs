//! Bodies: their schemas, which follow the readers of `protocol`, and examples that a node takes as they stand, one after
//! the other.

pub mod artifact;
pub mod decision;
pub mod envelope;
pub mod pairing;
pub mod platform;
pub mod prompt;
pub mod session;
pub mod small;

use serde_json::Value;

use crate::protocol::canonical::{Sha256Hex, canonical_without};
use crate::protocol::json;

/// The enforcer of the examples.
pub const ENFORCER: &str = "build-bot";
/// The approver of the examples.
pub const APPROVER: &str = "alice";
/// A message of the gateway's.
pub const MESSAGE: &str = "01a1dd2f-5ffd-7004-b20c-8d6678c773dd";
/// The exchanges of the examples: one that is decided, an open one, and those that end otherwise.
pub const DECIDED: &str = "0192f0c1-7a00-7000-8000-000000000001";
/// An open artifact.
pub const OPEN: &str = "0192f0c1-7a00-7000-8000-000000000002";
/// One that is withdrawn.
pub const WITHDRAWN: &str = "0192f0c1-7a00-7000-8000-000000000003";
/// One that is to be submitted again.
pub const REFRESHED: &str = "0192f0c1-7a00-7000-8000-000000000004";
/// One that is cancelled.
pub const CANCELLED: &str = "0192f0c1-7a00-7000-8000-000000000005";
/// A prompt.
pub const PROMPT: &str = "0192f0c1-7a00-7000-8000-000000000006";
/// A session.
pub const SESSION: &str = "session-7";
/// SHA-256 of a sealed artifact.
pub const HASH: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
/// 64 bytes where a signature stands.
pub const SIGNATURE: &str =
    "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0-Pw";

/// An example with its own hash in it.
pub fn hashed(mut value: Value, member: &str) -> Value {
    let text = value.to_string();
    let hash = json::parse(text.as_bytes()).ok().and_then(|node| {
        let object = node.as_object()?;
        Some(Sha256Hex::of(canonical_without(object, member).as_bytes()).to_string())
    });
    if let Some(hash) = hash {
        value[member] = hash.into();
    }
    value
}
