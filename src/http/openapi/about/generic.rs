//! The generic endpoints: any framing in, plain JSON out.

use serde_json::{Value, json};

use super::super::Context;
use super::super::bodies::envelope::{From, core, sent};
use super::super::bodies::{
    APPROVER, CANCELLED, DECIDED, ENFORCER, REFRESHED, WITHDRAWN, artifact, decision, small,
};
use super::super::content::Body;
use super::super::operation::Operation;
use super::super::schema::either;
use super::super::tag::Tag;
use super::exchange::{decision_refusals, submission_refusals};
use super::{idempotent, replayed};
use crate::gateway::caller::{Approver, Enforcer};
use crate::gateway::error::Error;
use crate::gateway::limit::Kind;
use crate::protocol::reader::Invalid;

fn core_example(context: &Context<'_>, body: &Value) -> Value {
    json!({
        "envelopeId": "e-1", "msgType": "artifact.submit", "createdAt": context.earlier(), "body": body,
        "sender": { "actor": "HE", "deviceId": ENFORCER }, "recipient": { "actor": "MA", "deviceId": APPROVER },
    })
}

/// `POST /v1/artifact`.
pub fn submit(context: &Context<'_>) -> Operation {
    let limits = &context.config.limits;
    let alone = artifact::submitted(context, true);
    let schema = either([
        alone.clone(),
        core(&["artifact.submit"], alone),
        sent(
            "artifact.submit",
            From::Either,
            artifact::submitted(context, false),
        ),
    ]);
    let mut body = artifact::bare_example(context, REFRESHED);
    if let Some(members) = body.as_object_mut() {
        members.remove("metadata");
    }
    let examples = [
        ("1-bare", artifact::bare_example(context, WITHDRAWN)),
        ("2-core-envelope", core_example(context, &body)),
        (
            "3-wire-envelope",
            artifact::example(context, CANCELLED, &artifact::sealed_example(context)),
        ),
    ];
    let operation = Operation::new(
        "submitAnyArtifact",
        Tag::Exchanges,
        "Submit an artifact in any framing",
    )
    .text(
        "As `POST /v1/artifacts`, with the bare object, a core Envelope or the wire Envelope, answered in plain JSON. A bare \
         object comes from the id its credential is bound to, else from `metadata.enforcerId`.",
    )
    .by::<Enforcer>(context, Kind::Submission)
    .takes(
        Body::new(schema, examples),
        limits.artifact_bytes + limits.envelope_bytes,
    )
    .answers(
        202,
        "The exchange is open.",
        small::accepted(),
        json!({ "requestId": WITHDRAWN, "state": "pendingApproval", "duplicate": false }),
    )
    .with("Idempotency-Replayed", replayed())
    // Whatever form it was to have, a body that does not say what it is about is no artifact.
    .refuses([Error::InvalidArtifact(Invalid::shape("/body/requestId", "a string (required)"))]);
    submission_refusals(idempotent(operation, context, true), context)
}

/// `POST /v1/decision`.
pub fn decide(context: &Context<'_>) -> Operation {
    let alone = decision::submitted(true);
    let schema = either([
        alone.clone(),
        core(&["decision.submit"], alone),
        sent("decision.submit", From::Either, decision::submitted(false)),
    ]);
    let mut bare = decision::compact_example();
    bare["requestId"] = DECIDED.into();
    let operation = Operation::new(
        "submitAnyDecision",
        Tag::Exchanges,
        "Decide an exchange in any framing",
    )
    .text(
        "As `POST /v1/decisions`, in any framing, answered in plain JSON. A bare object comes from the id its credential is \
         bound to, else from the one approver who was asked.",
    )
    .by::<Approver>(context, Kind::Decision)
    .takes(
        Body::new(schema, [("bare", bare)]),
        context.config.limits.body_bytes,
    )
    .answers(
        200,
        "The decision is taken, and queued for the enforcer.",
        small::accepted(),
        json!({ "requestId": DECIDED, "state": "decided", "duplicate": false }),
    );
    decision_refusals(operation)
}
