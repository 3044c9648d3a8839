//! These documents.

use serde_json::json;

use super::super::Context;
use super::super::operation::Operation;
use super::super::schema::any_object;
use super::super::tag::Tag;

/// `GET /openapi.json`.
pub fn openapi(context: &Context<'_>) -> Operation {
    Operation::new("readApi", Tag::Gateway, "Read this document")
        .by_anyone(context)
        .answers(
            200,
            "OpenAPI 3.1, with this node's own limits and names.",
            any_object(),
            json!({ "openapi": "3.1.0" }),
        )
}

/// `GET /docs`.
pub fn docs(context: &Context<'_>) -> Operation {
    Operation::new("readDocs", Tag::Gateway, "Read about calls and messages")
        .text("A page for people: every call, and every message over event streams and WebSockets.")
        .by_anyone(context)
        .answers_as("text/html", "The page.")
}
