//! WebSockets. What travels over them is described in `messages`.

use serde_json::json;

use super::super::Context;
use super::super::operation::Operation;
use super::super::schema::{id, one_of, text, word};
use super::super::tag::Tag;
use super::not_yours;
use crate::gateway::caller::EnforcerOrApprover;
use crate::gateway::error::Error;
use crate::gateway::limit::Kind;
use crate::http::error::TransportError;

/// `GET /v1/ws`.
pub fn connect(context: &Context<'_>) -> Operation {
    let protocols = "browsers, which cannot set headers here, offer `countersign, bearer.<key>`";
    let mut operation = Operation::new("connect", Tag::Push, "Open a WebSocket")
        .text("The handshake of RFC 6455. Frames are Envelopes in JSON; see /docs.")
        .by::<EnforcerOrApprover>(context, Kind::Connect)
        .query(
            "role",
            one_of(&["enforcer", "approver"]),
            "the credential's own role",
        )
        .query("id", id(), "the id to act as")
        .header("Sec-WebSocket-Protocol", false, text(), protocols)
        .answers_empty(101, "The connection is a WebSocket from now on.")
        .with(
            "Sec-WebSocket-Protocol",
            json!({ "description": "if it was offered", "schema": word("countersign") }),
        )
        .refuses([not_yours("id")])
        .refuses_in_transport(TransportError::ForeignOrigin)
        .refuses([Error::TooManyChannels]);
    for parameter in &mut operation.parameters {
        if parameter["in"] == "query" {
            parameter["required"] = true.into();
        }
    }
    operation
}
