//! Health.

use serde_json::{Value, json};

use super::super::Context;
use super::super::operation::Operation;
use super::super::schema::{object, text, word};
use super::super::tag::Tag;
use crate::gateway::error::Error;

fn health(word: Value) -> Value {
    object([("status", word)], [])
}

/// `GET /livez`.
pub fn live(_: &Context<'_>) -> Operation {
    Operation::new("live", Tag::Gateway, "Ask whether the process runs")
        .answers(
            200,
            "It does.",
            health(word("live")),
            json!({ "status": "live" }),
        )
        .refuses([Error::Internal])
}

/// `GET /readyz`.
pub fn ready(_: &Context<'_>) -> Operation {
    Operation::new(
        "ready",
        Tag::Gateway,
        "Ask whether the node should be sent requests",
    )
    .answers(
        200,
        "It should.",
        health(text()),
        json!({ "status": "ready" }),
    )
    .answers(
        503,
        "It should not, and why.",
        health(text()),
        json!({ "status": "draining" }),
    )
    .refuses([Error::Internal])
}
