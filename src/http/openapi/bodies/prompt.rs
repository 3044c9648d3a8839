//! Prompts and their acknowledgements.

use serde_json::{Value, json};

use super::super::Context;
use super::super::schema::{
    Member, and_more, any_object, either, hash, id, meaning, object, one_of, shared, text_of, time,
    word,
};
use super::artifact::{ciphertext, extensions};
use super::envelope::{self, From};
use super::{APPROVER, ENFORCER, MESSAGE, PROMPT, hashed};
use crate::protocol::prompt::{MAX_REPO_CHARS, PromptStatus, TARGETS};

fn sent(context: &Context<'_>, content: Member) -> Value {
    let ends = and_more(object([], [("expiresAt", time())]));
    object(
        [
            ("requestId", shared("UuidOrUlid")),
            ("artifactType", word("prompt.send")),
            ("createdAt", time()),
            ("target", one_of(&TARGETS)),
            ("promptHashAlg", word("SHA-256")),
            ("promptHash", hash()),
            content,
        ],
        [
            ("sessionId", id()),
            ("repoRef", text_of(0, MAX_REPO_CHARS)),
            ("metadata", any_object()),
            ("extensions", extensions(&context.names.prompt, ends)),
        ],
    )
}

/// The schemas that others refer to.
pub fn shared_schemas(context: &Context<'_>) -> Vec<Member> {
    let limit = context.config.limits.prompt_bytes;
    let open = sent(context, ("text", text_of(1, limit)));
    let open = meaning(
        open,
        "open: `promptHash` is verified, over the canonical prompt without it",
    );
    let sealed = sent(context, ("ciphertext", ciphertext(limit)));
    let sealed = meaning(sealed, "sealed: `promptHash` is taken as given");
    let ack = object(
        [
            ("requestId", id()),
            ("promptHash", hash()),
            (
                "status",
                one_of(&PromptStatus::ALL.map(PromptStatus::as_str)),
            ),
            ("ackAt", time()),
        ],
        [("details", any_object())],
    );
    vec![
        ("OpenPrompt", open),
        ("SealedPrompt", sealed),
        ("PromptAck", ack),
    ]
}

/// The body of `prompt.send`.
pub fn body() -> Value {
    either([shared("OpenPrompt"), shared("SealedPrompt")])
}

/// What the prompt endpoint takes.
pub fn taken() -> Value {
    either([
        shared("OpenPrompt"),
        shared("SealedPrompt"),
        shared("PromptAck"),
        envelope::core(&["prompt.send"], body()),
        envelope::core(&["prompt.ack"], shared("PromptAck")),
        envelope::sent("prompt.send", From::Either, body()),
        envelope::sent("prompt.ack", From::Either, shared("PromptAck")),
    ])
}

/// An example of a prompt.
pub fn example(context: &Context<'_>) -> Value {
    let prompt = json!({
        "requestId": PROMPT, "artifactType": "prompt.send", "createdAt": context.earlier(), "target": "agentChat",
        "text": "Please summarise the plan.", "promptHashAlg": "SHA-256", "metadata": { "enforcerId": ENFORCER },
    });
    hashed(prompt, "promptHash")
}

/// An example of a prompt in its envelope.
pub fn sent_example(context: &Context<'_>) -> Value {
    let sender = json!({ "approverId": APPROVER });
    envelope::from(context, "prompt.send", PROMPT, &sender, &example(context))
}

/// An example of an acknowledgement.
pub fn ack_example(context: &Context<'_>, status: &str) -> Value {
    let hash = &example(context)["promptHash"];
    json!({ "requestId": PROMPT, "promptHash": hash, "status": status, "ackAt": context.earlier() })
}

/// An example of a prompt on its way to the enforcer.
pub fn delivery_example(context: &Context<'_>) -> Value {
    let mut delivery = envelope::answer(context, "prompt.send", PROMPT, &example(context));
    delivery["msgId"] = MESSAGE.into();
    delivery["sender"]["approverId"] = APPROVER.into();
    delivery["recipient"] = json!({ "enforcerId": ENFORCER });
    delivery
}
