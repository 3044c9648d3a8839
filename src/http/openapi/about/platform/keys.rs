//! Signing keys.

use super::super::super::Context;
use super::super::super::bodies::platform;
use super::super::super::content::Body;
use super::super::super::operation::Operation;
use super::super::super::tag::Tag;
use super::super::not_yours;
use crate::gateway::caller::ApproverOrAdmin;
use crate::gateway::error::Error;
use crate::gateway::limit::Kind;

/// Another approver than that of the decisions: theirs would have to verify.
const APPROVER: &str = "carol";

/// `GET /platform/v1/approvers/{approverId}/keys`.
pub fn list_keys(context: &Context<'_>) -> Operation {
    Operation::new(
        "listKeys",
        Tag::Administration,
        "List an approver's signing keys",
    )
    .by::<ApproverOrAdmin>(context, Kind::Read)
    .path_id("approverId", APPROVER)
    .answers(
        200,
        "The keys, revoked ones included.",
        platform::keys(),
        platform::keys_example(context),
    )
    .refuses([not_yours("approverId")])
}

/// `PUT /platform/v1/approvers/{approverId}/keys/{signerKeyId}`.
pub fn put_key(context: &Context<'_>) -> Operation {
    Operation::new("registerKey", Tag::Administration, "Register a signing key")
        .text("An approver its own first one; more need an administrator. Decisions must verify from then on.")
        .by::<ApproverOrAdmin>(context, Kind::Decision)
        .path_id("approverId", APPROVER)
        .path_id("signerKeyId", "laptop")
        .takes(
            Body::new(platform::new_key(), [("key", platform::new_key_example())]),
            context.config.limits.body_bytes,
        )
        .timed()
        .answers(
            200,
            "The key is registered.",
            platform::registered_key(),
            platform::registered_example(),
        )
        .refuses([
            not_yours("approverId"),
            Error::Taken {
                pointer: "/publicKey",
            },
        ])
}

/// `DELETE /platform/v1/approvers/{approverId}/keys/{signerKeyId}`.
pub fn revoke_key(context: &Context<'_>) -> Operation {
    Operation::new("revokeKey", Tag::Administration, "Revoke a signing key")
        .text("Decisions that are being taken under it are refused too.")
        .by::<ApproverOrAdmin>(context, Kind::Decision)
        .path_id("approverId", APPROVER)
        .path_id("signerKeyId", "laptop")
        .answers_empty(204, "It is revoked.")
        .refuses([not_yours("approverId"), Error::NotFound])
}
