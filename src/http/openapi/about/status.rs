//! What the gateway is and takes.

use serde_json::{Map, Value, json};

use super::super::Context;
use super::super::operation::Operation;
use super::super::schema::{count, flag, list, object, text, time, word};
use super::super::tag::Tag;
use crate::http::status::described;
use crate::protocol::PROTOCOL_VERSION;

/// The limits of an example, each with its type.
fn limits(example: &Value) -> Value {
    let limits = example.as_object().cloned().unwrap_or_default();
    let names: Vec<_> = limits.keys().cloned().collect();
    let members: Map<_, _> = limits
        .into_iter()
        .map(|(name, limit)| (name, if limit.is_boolean() { flag() } else { count() }))
        .collect();
    json!({ "type": "object", "additionalProperties": false, "required": names, "properties": members })
}

/// `GET /v1/status`.
pub fn status(context: &Context<'_>) -> Operation {
    let example = described(
        context.config,
        context.names,
        &["apiKey"],
        "node-1",
        &context.earlier(),
    );
    let algorithms = object([("hash", list(text())), ("signature", list(text()))], []);
    let schema = object(
        [
            ("name", word("countersign")),
            ("version", text()),
            ("protocol", text()),
            ("protocolVersion", word(PROTOCOL_VERSION)),
            ("mediaType", text()),
            ("algorithms", algorithms),
            ("transports", list(text())),
            ("authentication", list(text())),
            ("limits", limits(&example["limits"])),
            ("nodeId", text()),
            ("time", time()),
        ],
        [],
    );
    Operation::new("readStatus", Tag::Gateway, "See what this gateway takes")
        .text("Versions, algorithms, transports, ways to authenticate, limits in force.")
        .by_anyone(context)
        .answers(200, "What it is and takes.", schema, example)
}
