//! What each call is: a function for every handler, in the same rooms and under the same names, by which the table of
//! routes finds it.

pub mod audit;
pub mod exchange;
pub mod generic;
pub mod health;
pub mod inbox;
pub mod openapi;
pub mod pairing;
pub mod platform;
pub mod presence;
pub mod prompt;
pub mod session;
pub mod sse;
pub mod status;
pub mod ws;

use serde_json::{Value, json};

use super::Context;
use super::operation::Operation;
use super::schema::{id, pattern};
use crate::gateway::error::Error;

/// With an exchange in its path; what cannot be an id names nothing.
fn path_request(operation: Operation, request: &str) -> Operation {
    operation
        .path("requestId", id(), request)
        .refuses([Error::NotFound])
}

/// With an idempotency key.
fn idempotent(operation: Operation, context: &Context<'_>, required: bool) -> Operation {
    let hours = context.config.idempotency.lifetime_seconds / 3_600;
    let description = format!(
        "a key of your own: the same request again answers with the same outcome, for {hours} hours"
    );
    operation
        .header(
            "Idempotency-Key",
            required && context.config.idempotency.required,
            pattern("^[!-~]{1,255}$"),
            &description,
        )
        .refuses([
            Error::Parameter {
                name: "Idempotency-Key",
                expected: "one key of 1 to 255 visible ASCII characters",
            },
            Error::IdempotencyKeyReused,
        ])
}

/// The header of an answer that an idempotency key gave.
fn replayed() -> Value {
    json!({ "description": "an idempotency key gave this answer", "schema": { "const": "true" } })
}

/// The refusal of an id that the credential is not for.
fn not_yours(pointer: &str) -> Error {
    Error::Forbidden {
        pointer: Some(pointer.to_owned()),
        expected: "an id that this credential may act as",
    }
}
