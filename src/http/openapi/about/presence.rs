//! Presence.

use serde_json::{Value, json};

use super::super::Context;
use super::super::bodies::{ENFORCER, small};
use super::super::operation::Operation;
use super::super::schema::{id, list as list_of, object, one_of, text, time};
use super::super::tag::Tag;
use crate::gateway::caller::Member;
use crate::gateway::error::Error;
use crate::gateway::limit::Kind;

fn record() -> Value {
    object(
        [
            ("enforcerDeviceId", id()),
            ("status", one_of(&["online", "offline"])),
            ("lastSeenAt", time()),
            ("transport", one_of(&["websocket", "sse", "poll"])),
        ],
        [
            ("workspaceName", text()),
            ("enforcerLabel", text()),
            ("capabilities", small::capabilities()),
        ],
    )
}

fn example(context: &Context<'_>) -> Value {
    json!({
        "enforcerDeviceId": ENFORCER, "status": "online", "lastSeenAt": context.earlier(), "transport": "websocket",
        "workspaceName": "monorepo", "enforcerLabel": "Build bot", "capabilities": { "push": true },
    })
}

/// `GET /v1/presence/enforcers`.
pub fn list(context: &Context<'_>) -> Operation {
    Operation::new(
        "listPresence",
        Tag::Presence,
        "See which enforcers are there",
    )
    .by::<Member>(context, Kind::Read)
    .answers(
        200,
        "Every enforcer that is known, sorted by id.",
        list_of(record()),
        json!([example(context)]),
    )
}

/// `GET /v1/presence/enforcers/{enforcerDeviceId}`.
pub fn one(context: &Context<'_>) -> Operation {
    Operation::new(
        "readPresence",
        Tag::Presence,
        "See whether an enforcer is there",
    )
    .by::<Member>(context, Kind::Read)
    .path("enforcerDeviceId", id(), ENFORCER)
    .answers(200, "What is known of it.", record(), example(context))
    .refuses([Error::NotFound])
}
