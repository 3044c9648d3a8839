//! Prompts for an agent.

mod body;
mod life;

pub use self::body::{MAX_REPO_CHARS, Prompt, PromptRules, PromptStatus, SentAck, TARGETS};
pub use self::life::{
    AcceptedPrompt, AckBody, AckFact, PromptFact, PromptNotWritten, PromptRecord, QueuedPrompt,
    judge_ack, judge_prompt,
};
