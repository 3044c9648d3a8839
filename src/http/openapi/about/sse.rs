//! Event streams. What travels over them is described in `messages`.

use super::super::Context;
use super::super::bodies::{APPROVER, ENFORCER, MESSAGE};
use super::super::operation::Operation;
use super::super::schema::text;
use super::super::tag::Tag;
use super::not_yours;
use crate::gateway::caller::{Approver, Enforcer, Role};
use crate::gateway::error::Error;
use crate::gateway::limit::Kind;
use crate::http::error::TransportError;

fn stream<R: Role>(
    context: &Context<'_>,
    id: &'static str,
    summary: &'static str,
    (parameter, example): (&'static str, &str),
) -> Operation {
    Operation::new(id, Tag::Push, summary)
        .by::<R>(context, Kind::Connect)
        .path_id(parameter, example)
        .answers_as(
            "text/event-stream",
            "A stream of events that does not end by itself; see /docs.",
        )
        .refuses([not_yours(parameter)])
        .refuses_in_transport(TransportError::ForeignOrigin)
        .refuses([Error::TooManyChannels])
}

/// `GET /v1/sse/approvers/{approverId}`.
pub fn approver(context: &Context<'_>) -> Operation {
    let description = format!(
        "the id of the last event that was received, such as {MESSAGE}: what is older than that by more than 60 s is skipped; \
         what is no such id is ignored"
    );
    stream::<Approver>(
        context,
        "streamToApprover",
        "Stream to an approver",
        ("approverId", APPROVER),
    )
    .text("What is unacknowledged first, oldest first, then whatever comes: `approval.request`.")
    .header("Last-Event-ID", false, text(), &description)
}

/// `GET /v1/sse/enforcers/{enforcerId}`.
pub fn enforcer(context: &Context<'_>) -> Operation {
    stream::<Enforcer>(
        context,
        "streamToEnforcer",
        "Stream to an enforcer",
        ("enforcerId", ENFORCER),
    )
    .text(
        "What is unacknowledged first, oldest first, then whatever comes: `decision.deliver`, `refresh.request`, \
         `prompt.send`. Nothing unacknowledged is ever skipped.",
    )
}
