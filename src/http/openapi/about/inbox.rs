//! Inboxes.

use serde_json::{Value, json};

use super::super::Context;
use super::super::bodies::envelope::{answer, answer_until, printed};
use super::super::bodies::{APPROVER, REFRESHED, artifact};
use super::super::operation::Operation;
use super::super::schema::{id, object, page, shared};
use super::super::tag::Tag;
use super::{not_yours, path_request};
use crate::gateway::caller::Approver;
use crate::gateway::limit::Kind;

/// The id under which an answer about no exchange shows its HTTP request.
const HTTP_REQUEST: &str = "01a1dd2f-6000-7004-b20c-8d6678c773dd";

fn listing(
    context: &Context<'_>,
    id: &'static str,
    summary: &'static str,
    items: &Value,
) -> Operation {
    let body = json!({ "items": items, "nextCursor": null });
    Operation::new(id, Tag::Inbox, summary)
        .by::<Approver>(context, Kind::Read)
        .path_id("approverId", APPROVER)
        .paged(context)
        .answers(
            200,
            "A page, oldest first.",
            printed("inbox.page", page(shared("ApprovalRequest"))),
            answer(context, "inbox.page", HTTP_REQUEST, &body),
        )
        .refuses([not_yours("approverId")])
}

/// `GET /v1/approvers/{approverId}/inbox`.
pub fn active(context: &Context<'_>) -> Operation {
    let items = json!([artifact::request_example(context)]);
    listing(context, "readInbox", "Read an inbox", &items)
        .text("What waits for a decision of this approver, as it is pushed.")
}

/// `GET /v1/approvers/{approverId}/inbox/expired`.
pub fn expired(context: &Context<'_>) -> Operation {
    listing(context, "readExpiredInbox", "Read what expired", &json!([]))
        .text("What nobody decided in time, with `body.state` = `expired`.")
}

/// `DELETE /v1/approvers/{approverId}/inbox/{requestId}`.
pub fn remove(context: &Context<'_>) -> Operation {
    let operation = Operation::new(
        "removeInboxItem",
        Tag::Inbox,
        "Remove an item from an inbox",
    )
    .text("Hides it from this approver and stops its redelivery; the exchange stays decidable.")
    .by::<Approver>(context, Kind::Decision)
    .path_id("approverId", APPROVER)
    .answers(
        200,
        "The item is gone.",
        printed("inbox.removed", object([("requestId", id())], [])),
        answer_until(
            context,
            "inbox.removed",
            REFRESHED,
            &json!({ "requestId": REFRESHED }),
        ),
    )
    .refuses([not_yours("approverId")]);
    path_request(operation, REFRESHED)
}
