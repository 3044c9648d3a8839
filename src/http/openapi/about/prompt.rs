//! Prompts.

use super::super::Context;
use super::super::bodies::{PROMPT, prompt};
use super::super::content::Body;
use super::super::operation::Operation;
use super::super::schema::shared;
use super::super::tag::Tag;
use super::{idempotent, not_yours, path_request, replayed};
use crate::gateway::caller::Member;
use crate::gateway::error::Error;
use crate::gateway::limit::Kind;

/// `POST /v1/prompt`.
pub fn post(context: &Context<'_>) -> Operation {
    let limits = &context.config.limits;
    let examples = [
        ("1-send", prompt::sent_example(context)),
        ("2-acknowledge", prompt::ack_example(context, "delivered")),
    ];
    let operation = Operation::new("sendPrompt", Tag::Prompts, "Send a prompt, or acknowledge one")
        .text(
            "A `prompt.send` comes from an approver or administrator and goes to `recipient.enforcerId`, else to the enforcer \
             of its `sessionId`, else to `metadata.enforcerId`. A `prompt.ack` comes from that enforcer. Any framing will do.",
        )
        .by::<Member>(context, Kind::Submission)
        .takes(
            Body::new(prompt::taken(), examples),
            limits.prompt_bytes + limits.envelope_bytes,
        )
        .timed()
        .versioned("/body/promptHashAlg", "SHA-256")
        .answers(
            202,
            "The prompt is queued, or was before: what became of it.",
            shared("PromptAck"),
            prompt::ack_example(context, "queued"),
        )
        .with("Idempotency-Replayed", replayed())
        .answers(
            200,
            "The acknowledgement is taken.",
            shared("PromptAck"),
            prompt::ack_example(context, "delivered"),
        )
        .refuses([
            not_yours("/sender/approverId"),
            Error::PayloadTooLarge {
                pointer: "/body/text",
                limit: limits.prompt_bytes,
            },
            Error::PromptHash,
            Error::PromptExpired {
                pointer: "/expiresAt".to_owned(),
            },
            Error::NoRecipient,
            Error::PromptExists,
            Error::PromptMismatch,
            Error::PromptSettled("delivered"),
            Error::NotFound,
        ]);
    // An acknowledgement needs no key, so that the header is never required of everyone.
    idempotent(operation, context, false)
}

/// `GET /v1/prompt/{requestId}`.
pub fn get(context: &Context<'_>) -> Operation {
    let operation = Operation::new("readPrompt", Tag::Prompts, "Read what became of a prompt")
        .by::<Member>(context, Kind::Read)
        .answers(
            200,
            "What became of it.",
            shared("PromptAck"),
            prompt::ack_example(context, "delivered"),
        );
    path_request(operation, PROMPT)
}
