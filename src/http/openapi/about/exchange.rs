//! The exchange's life.

use serde_json::json;

use super::super::Context;
use super::super::bodies::envelope::{From, answer_until, from, printed, sent};
use super::super::bodies::{
    APPROVER, DECIDED, ENFORCER, HASH, MESSAGE, OPEN, REFRESHED, WITHDRAWN, artifact, decision,
    small,
};
use super::super::content::Body;
use super::super::operation::Operation;
use super::super::schema::one_of;
use super::super::tag::Tag;
use super::{idempotent, not_yours, path_request, replayed};
use crate::gateway::caller::{
    Approver, ApproverOrAdmin, Enforcer, EnforcerOrAdmin, EnforcerOrApprover, Member,
};
use crate::gateway::error::Error;
use crate::gateway::limit::Kind;
use crate::protocol::exchange::ExchangeState;
use crate::protocol::reader::Invalid;

/// The refusals of a submission, in whichever framing.
pub(super) fn submission_refusals(operation: Operation, context: &Context<'_>) -> Operation {
    let limit = context.config.limits.artifact_bytes;
    let operation = operation.timed().refuses([
        not_yours("/sender/enforcerId"),
        Error::PairingRevoked,
        Error::PayloadTooLarge {
            pointer: "/body/ciphertext/data",
            limit,
        },
        Error::ArtifactExpired,
        Error::NoApprover {
            pointer: "/recipient/approverId",
        },
        Error::AlreadyExists,
        Error::InboxFull,
    ]);
    if context.config.artifacts.open {
        operation.refuses([
            Error::InvalidArtifact(Invalid::shape("/body/repoRef", "a string")),
            Error::ArtifactHash,
        ])
    } else {
        operation.refuses([Error::OpenRefused])
    }
}

/// The refusals of a decision, in whichever framing.
pub(super) fn decision_refusals(operation: Operation) -> Operation {
    operation
        .timed()
        .versioned("/body/sigAlg", "Ed25519")
        .refuses([
            not_yours("/sender/approverId"),
            Error::DecisionExpired,
            Error::DecisionHash,
            Error::SignatureInvalid,
            Error::KeyRevoked,
            Error::NotFound,
            Error::AlreadyDecided,
            Error::Expired,
        ])
}

/// `POST /v1/artifacts`.
pub fn submit(context: &Context<'_>) -> Operation {
    let limits = &context.config.limits;
    let schema = sent(
        "artifact.submit",
        From::Enforcer,
        artifact::submitted(context, false),
    );
    let sealed = artifact::example(context, DECIDED, &artifact::sealed_example(context));
    let mut body = Body::new(schema, [("1-sealed", sealed)]);
    if context.config.artifacts.open {
        let open = artifact::example(context, OPEN, &artifact::open_example(context));
        body.examples.push(("2-open", open));
    }
    let accepted = json!({
        "requestId": DECIDED, "state": "pendingApproval", "expiresAt": context.later(), "duplicate": false,
    });
    let operation = Operation::new("submitArtifact", Tag::Exchanges, "Submit an artifact for approval")
        .text(
            "Opens an exchange and puts it into the inbox of each approver: `recipient.approverId`, else the one that \
             `metadata.routingToken` or `metadata.approverId` stands for, else every approver the enforcer is paired with. \
             The same `requestId` and `artifactHash` again answers `duplicate: true` and changes nothing.",
        )
        .by::<Enforcer>(context, Kind::Submission)
        .takes(body, limits.artifact_bytes + limits.envelope_bytes)
        .answers(
            202,
            "The exchange is open.",
            printed("artifact.accepted", small::artifact_accepted()),
            answer_until(context, "artifact.accepted", DECIDED, &accepted),
        )
        .with("Idempotency-Replayed", replayed());
    submission_refusals(idempotent(operation, context, true), context)
}

/// `POST /v1/decisions`.
pub fn decide(context: &Context<'_>) -> Operation {
    let schema = sent(
        "decision.submit",
        From::Approver,
        decision::submitted(false),
    );
    let compact = decision::example(context, DECIDED, &decision::compact_example());
    let mut body = Body::new(schema, [("1-compact", compact)]);
    if context.config.artifacts.open {
        let full = decision::example(context, OPEN, &decision::full_example(context));
        body.examples.push(("2-full", full));
    }
    let accepted = json!({
        "requestId": DECIDED, "state": "decided", "decision": "approve", "verified": true, "duplicate": false,
    });
    let operation = Operation::new("submitDecision", Tag::Exchanges, "Decide an exchange")
        .text(
            "The first decision wins; the same again answers `duplicate: true`. Once the approver has a signing key, its \
             signature must verify.",
        )
        .by::<Approver>(context, Kind::Decision)
        .takes(body, context.config.limits.body_bytes)
        .answers(
            200,
            "The decision is taken, and queued for the enforcer.",
            printed("decision.accepted", small::decision_accepted()),
            answer_until(context, "decision.accepted", DECIDED, &accepted),
        );
    decision_refusals(operation)
}

/// `POST /v1/acks`.
pub fn acknowledge(context: &Context<'_>) -> Operation {
    let schema = sent("ack.submit", From::Either, small::ack());
    let accepted = json!({ "msgId": MESSAGE, "status": "processed" });
    Operation::new("acknowledge", Tag::Exchanges, "Acknowledge a message")
        .text(
            "Ends the redelivery of a message to this recipient. An enforcer's acknowledgement of a `decision.deliver` makes \
             the exchange `delivered`. A repeat answers the same.",
        )
        .by::<EnforcerOrApprover>(context, Kind::Ack)
        .takes(
            Body::new(schema, [("processed", small::ack_example(context))]),
            context.config.limits.body_bytes,
        )
        .timed()
        .answers(
            200,
            "The message is acknowledged.",
            printed("ack.accepted", small::ack_accepted()),
            answer_until(context, "ack.accepted", DECIDED, &accepted),
        )
        .refuses([not_yours("/sender/enforcerId"), Error::NotFound])
}

/// `GET /v1/exchanges/{requestId}`.
pub fn status(context: &Context<'_>) -> Operation {
    let body = json!({
        "requestId": DECIDED, "state": "decided", "createdAt": context.earlier(), "expiresAt": context.later(),
        "artifactHash": HASH, "decision": decision::compact_example(),
    });
    let operation = Operation::new("readExchange", Tag::Exchanges, "Read an exchange")
        .text(
            "For the enforcer that submitted it, the approvers who were asked, and administrators.",
        )
        .by::<Member>(context, Kind::Read)
        .answers(
            200,
            "The exchange, in its true state at this instant.",
            printed("exchange.status", small::status()),
            answer_until(context, "exchange.status", DECIDED, &body),
        );
    path_request(operation, DECIDED)
}

/// `GET /v1/exchanges/{requestId}/wait`.
pub fn wait(context: &Context<'_>) -> Operation {
    let limits = &context.config.limits;
    let timeout =
        json!({ "type": "integer", "minimum": 1, "default": limits.wait_default_seconds });
    let longest = format!(
        "seconds to wait; more than {} is as good as that",
        limits.wait_max_seconds
    );
    let over = json!({
        "description": "why there will be no decision; not there if there may yet be one",
        "schema": one_of(&["expired", "withdrawn", "cancelled"]),
    });
    let operation = Operation::new("waitForDecision", Tag::Exchanges, "Wait for a decision")
        .text("Answers as soon as there is a decision, on whichever node it was taken.")
        .by::<EnforcerOrAdmin>(context, Kind::Read)
        .query("timeout", timeout, &longest)
        .answers(
            200,
            "The decision, byte for byte as the approver sent it.",
            printed("decision.deliver", decision::delivered()),
            decision::delivery_example(context),
        )
        .answers_empty(
            204,
            "No decision in time; or, with `Exchange-State`, none ever.",
        )
        .with("Exchange-State", over)
        .refuses([Error::TooManyWaits]);
    path_request(operation, DECIDED)
}

/// `POST /v1/exchanges/{requestId}/withdraw`.
pub fn withdraw(context: &Context<'_>) -> Operation {
    let schema = sent("exchange.withdrawn", From::Enforcer, small::reason());
    let example = from(
        context,
        "exchange.withdrawn",
        WITHDRAWN,
        &json!({ "enforcerId": ENFORCER }),
        &json!({ "reason": "no longer needed" }),
    );
    let operation = Operation::new("withdrawExchange", Tag::Exchanges, "Withdraw an exchange")
        .text("Ends a pending exchange of the enforcer's own, and tells those who were asked. No body at all will do.")
        .by::<Enforcer>(context, Kind::Decision)
        .takes(
            Body::new(schema, [("withdrawal", example)]).optional(),
            context.config.limits.body_bytes,
        )
        .timed()
        .answers(
            200,
            "The exchange is withdrawn.",
            printed("exchange.withdrawn", small::withdrawn()),
            small::withdrawn_example(context),
        )
        .refuses([
            not_yours("/sender/enforcerId"),
            Error::AlreadyDecided,
            Error::Expired,
            Error::InvalidState(ExchangeState::Withdrawn.as_str()),
        ]);
    path_request(operation, WITHDRAWN)
}

/// `POST /v1/exchanges/{requestId}/refresh`, also spelled `POST /v1/requests/{requestId}/refresh`.
pub fn refresh(context: &Context<'_>) -> Operation {
    let schema = sent("refresh.request", From::Either, small::reason());
    let example = from(
        context,
        "refresh.request",
        REFRESHED,
        &json!({ "approverId": APPROVER }),
        &json!({ "reason": "please submit again" }),
    );
    let operation = Operation::new("refreshExchange", Tag::Exchanges, "Ask the enforcer to submit again")
        .text(
            "Queues a `refresh.request` for the enforcer of a pending or expired exchange; while one is unacknowledged, it is \
             the answer. The enforcer submits anew, under another `requestId`.",
        )
        .by::<ApproverOrAdmin>(context, Kind::Decision)
        .takes(
            Body::new(schema, [("refresh", example)]),
            context.config.limits.body_bytes,
        )
        .timed()
        .answers(
            202,
            "The message that is queued.",
            printed("refresh.request", small::reason()),
            small::refresh_example(context),
        )
        .refuses([not_yours("/sender/approverId"), Error::InvalidState(ExchangeState::Decided.as_str())]);
    path_request(operation, REFRESHED)
}
