//! A tenant's audit.

use serde_json::json;

use super::super::Context;
use super::super::bodies::platform;
use super::super::operation::Operation;
use super::super::schema::page;
use super::super::tag::Tag;
use crate::gateway::caller::Admin;
use crate::gateway::limit::Kind;

/// `GET /platform/v1/audit`.
pub fn list(context: &Context<'_>) -> Operation {
    Operation::new("readAudit", Tag::Administration, "Read the audit")
        .text("Who did what in the tenant, oldest first.")
        .by::<Admin>(context, Kind::Read)
        .paged(context)
        .answers(
            200,
            "A page.",
            page(platform::audited()),
            json!({ "items": [platform::audited_example(context)], "nextCursor": null }),
        )
}
