//! Pairing.

use std::time::Duration;

use serde_json::json;

use super::super::Context;
use super::super::bodies::pairing::{self, NONCE, TOKEN};
use super::super::content::Body;
use super::super::operation::Operation;
use super::super::schema::{object, page, text, word};
use super::super::tag::Tag;
use super::not_yours;
use crate::gateway::caller::{Approver, Enforcer, EnforcerOrApprover, Member};
use crate::gateway::error::{Error, Throttled};
use crate::gateway::limit::Kind;

/// `POST /v1/pairing/initiate`.
pub fn initiate(context: &Context<'_>) -> Operation {
    Operation::new("initiatePairing", Tag::Pairing, "Begin to pair")
        .text("Makes a code for a person to type at the approver's side, good for one pairing.")
        .by::<Enforcer>(context, Kind::Submission)
        .takes(
            Body::new(
                pairing::initiate(),
                [("initiate", pairing::initiate_example())],
            ),
            context.config.limits.body_bytes,
        )
        .answers(
            200,
            "The code to show, and the nonce to ask about.",
            pairing::initiated(),
            json!({ "code": "7KQM-3XWD", "nonce": NONCE, "expiresAt": context.later() }),
        )
        .refuses([not_yours("/enforcerId")])
}

/// `GET /v1/pairing/resolve/{code}`.
pub fn resolve(context: &Context<'_>) -> Operation {
    Operation::new("resolvePairing", Tag::Pairing, "Use a pairing code")
        .text(
            "Shows who asks. Case and dashes do not matter, `O` is read as `0`, `I` and `L` as `1`. Too many wrong codes and \
             answers stop for a while.",
        )
        .by::<Approver>(context, Kind::Read)
        .path("code", text(), "7KQM-3XWD")
        .answers(
            200,
            "Who asks.",
            pairing::resolved(),
            json!({ "nonce": NONCE, "enforcerLabel": "The build bot", "workspaceName": "widgets" }),
        )
        .refuses([
            Error::NotFound,
            Error::Throttled(Throttled {
                policy: "guesses",
                calls: "wrong codes".into(),
                quota: context.config.pairing.guesses_per_principal,
                window_seconds: 60,
                retry_after: Duration::from_secs(30),
            }),
        ])
}

/// `POST /v1/pairing/complete`.
pub fn complete(context: &Context<'_>) -> Operation {
    Operation::new("completePairing", Tag::Pairing, "Agree to be paired")
        .text("Once, by whoever comes first. Pairing the same two again replaces the token between them.")
        .by::<Approver>(context, Kind::Decision)
        .takes(
            Body::new(pairing::complete(), [("complete", pairing::complete_example())]),
            context.config.limits.body_bytes,
        )
        .answers(
            200,
            "The token that stands for the pairing in `metadata.routingToken`.",
            pairing::completed(),
            json!({ "routingToken": TOKEN, "enforcerLabel": "The build bot", "workspaceName": "widgets" }),
        )
        .refuses([
            not_yours("/approverId"),
            Error::NotFound,
            Error::AlreadyPaired,
        ])
}

/// `GET /v1/pairing/status/{nonce}`, also spelled `GET /v1/pairing/{nonce}/status`.
pub fn status(context: &Context<'_>) -> Operation {
    let pending = json!({ "nonce": NONCE, "status": "pending", "expiresAt": context.later() });
    Operation::new(
        "readPairing",
        Tag::Pairing,
        "Ask how far a pairing has come",
    )
    .text("For the enforcer that began it; anyone else finds nothing.")
    .by::<Member>(context, Kind::Read)
    .path("nonce", text(), NONCE)
    .answers(200, "How far it has come.", pairing::status(), pending)
    .refuses([Error::NotFound])
}

/// `POST /v1/pairing/revoke`.
pub fn revoke(context: &Context<'_>) -> Operation {
    let schema = object([("routingToken", text())], []);
    let answer = object([("status", word("revoked"))], []);
    Operation::new("revokePairing", Tag::Pairing, "End a pairing")
        .text("By either side. Submissions with its token are refused from then on.")
        .by::<Member>(context, Kind::Decision)
        .takes(
            Body::new(schema, [("revoke", json!({ "routingToken": TOKEN }))]),
            context.config.limits.body_bytes,
        )
        .answers(200, "It has ended.", answer, json!({ "status": "revoked" }))
        .refuses([Error::NotFound])
}

/// `GET /v1/pairings`.
pub fn list(context: &Context<'_>) -> Operation {
    Operation::new("listPairings", Tag::Pairing, "List pairings")
        .text("The caller's own in force, oldest first.")
        .by::<EnforcerOrApprover>(context, Kind::Read)
        .paged(context)
        .answers(
            200,
            "A page.",
            page(pairing::line()),
            json!({ "items": [pairing::line_example(context)], "nextCursor": null }),
        )
}
