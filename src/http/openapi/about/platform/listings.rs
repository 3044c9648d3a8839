//! Exchanges, as administrators see and end them.

use serde_json::json;

use super::super::super::Context;
use super::super::super::bodies::platform;
use super::super::super::bodies::{CANCELLED, small};
use super::super::super::content::Body;
use super::super::super::operation::Operation;
use super::super::super::schema::{id, object, page, word};
use super::super::super::tag::Tag;
use super::super::{not_yours, path_request};
use crate::gateway::caller::{Admin, EnforcerOrAdmin};
use crate::gateway::error::Error;
use crate::gateway::limit::Kind;
use crate::protocol::exchange::ExchangeState;

/// `GET /platform/v1/exchanges`.
pub fn list_exchanges(context: &Context<'_>) -> Operation {
    Operation::new("listExchanges", Tag::Administration, "List exchanges")
        .text("Without payloads: an administrator sees its tenant's, an enforcer its own. A page may be short, and still have a next one.")
        .by::<EnforcerOrAdmin>(context, Kind::Read)
        .query("state", small::state(), "only in this state")
        .query("enforcerId", id(), "only of this enforcer")
        .query("approverId", id(), "only asking this approver")
        .paged(context)
        .answers(
            200,
            "A page.",
            page(platform::exchange()),
            json!({ "items": [platform::exchange_example(context)], "nextCursor": null }),
        )
        .refuses([not_yours("enforcerId")])
}

/// `POST /platform/v1/exchanges/{requestId}/cancel`.
pub fn cancel(context: &Context<'_>) -> Operation {
    let answer = object([("requestId", id()), ("state", word("cancelled"))], []);
    let body = Body::new(
        small::reason(),
        [("cancel", json!({ "reason": "superseded" }))],
    );
    let operation = Operation::new("cancelExchange", Tag::Administration, "Cancel an exchange")
        .text("Ends a pending exchange, and tells those who were asked. No body at all will do.")
        .by::<Admin>(context, Kind::Decision)
        .takes(body.optional(), context.config.limits.body_bytes)
        .answers(
            200,
            "The exchange is cancelled.",
            answer,
            json!({ "requestId": CANCELLED, "state": "cancelled" }),
        )
        .refuses([
            Error::AlreadyDecided,
            Error::Expired,
            Error::InvalidState(ExchangeState::Cancelled.as_str()),
        ]);
    path_request(operation, CANCELLED)
}
