//! Sessions.

use serde_json::json;

use super::super::Context;
use super::super::bodies::{SESSION, session};
use super::super::content::Body;
use super::super::operation::Operation;
use super::super::schema::id;
use super::super::tag::Tag;
use super::not_yours;
use crate::gateway::caller::{Enforcer, Member};
use crate::gateway::error::Error;
use crate::gateway::limit::Kind;

/// `POST /v1/session/event`.
pub fn report(context: &Context<'_>) -> Operation {
    let limits = &context.config.limits;
    Operation::new("reportSession", Tag::Sessions, "Report a session event")
        .text(
            "In any framing, in any order, on any node. The state with the latest `updatedAt` stands; the same event again \
             answers `duplicate: true`.",
        )
        .by::<Enforcer>(context, Kind::Submission)
        .takes(
            Body::new(session::taken(), session::examples(context)),
            limits.snapshot_bytes + limits.envelope_bytes,
        )
        .timed()
        .versioned("/body/snapshotHashAlg", "SHA-256")
        .answers(
            202,
            "The event is taken.",
            session::reported(),
            json!({ "sessionId": SESSION, "state": "planning", "duplicate": false }),
        )
        .refuses([
            not_yours("/sender/enforcerId"),
            Error::SnapshotHash,
            Error::PayloadTooLarge {
                pointer: "/body/payload",
                limit: limits.snapshot_bytes,
            },
            Error::SessionClosed,
            Error::SessionStarted,
            Error::SnapshotExists,
        ])
}

/// `GET /v1/session/{sessionId}`.
pub fn read(context: &Context<'_>) -> Operation {
    Operation::new("readSession", Tag::Sessions, "Read a session")
        .text("For its enforcer, the approvers paired with that, and administrators.")
        .by::<Member>(context, Kind::Read)
        .path("sessionId", id(), SESSION)
        .answers(
            200,
            "The session, with its newest snapshots.",
            session::read(),
            session::read_example(context),
        )
        .refuses([Error::NotFound])
}
