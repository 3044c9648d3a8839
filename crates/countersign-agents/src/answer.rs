//! Answers in the form of each agent. A denial is said in every way at once, since no single one
//! stops all agents: JSON on standard output, the reason on standard error, exit status 2.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;

use crate::agent::Agent;
use crate::event::{EventKind, HookEvent, ToolCall};
use crate::question::{QuestionAnswers, answer_text};

/// The exit status that agents take for a denial.
pub const BLOCK: u8 = 2;

/// The outputs and the exit status of the hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookOutput {
    /// One JSON document, or nothing.
    pub stdout: String,
    pub stderr: String,
    pub status: u8,
}

/// Whether the agent may go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookVerdict {
    Denied(String),
    /// A person has approved it. The text names the approver.
    Approved(String),
    /// A person has answered the agent's questions.
    Answered {
        by: String,
        answers: QuestionAnswers,
    },
    /// Nobody had to be asked. The agent's own rules still hold.
    NotAsked,
}

impl HookOutput {
    /// `event` is `None` if it could not be read.
    pub fn denied(agent: Agent, event: Option<&HookEvent>, reason: &str) -> Self {
        let name = event.map_or("PreToolUse", |event| event.name.as_str());
        Self {
            stdout: (agent.definition().denial)(name, reason).to_string(),
            stderr: format!("countersign: denied: {reason}"),
            status: BLOCK,
        }
    }

    /// `context` is for the model, where the agent has a way to give it that.
    pub fn of(
        agent: Agent,
        event: &HookEvent,
        verdict: &HookVerdict,
        context: Option<&str>,
    ) -> Self {
        let context = context.filter(|_| takes_context(agent, event));
        if let HookVerdict::Answered { by, answers } = verdict {
            return Self::answered(agent, event, by, answers, context);
        }
        let approved = match verdict {
            HookVerdict::Denied(reason) => {
                let further = context.map(|context| format!("\n\n{context}"));
                let reason = format!("{reason}{}", further.unwrap_or_default());
                return Self::denied(agent, Some(event), &reason);
            }
            HookVerdict::Approved(by) if event.call().is_some() => {
                Some(format!("approved by {by}"))
            }
            HookVerdict::Approved(_) | HookVerdict::Answered { .. } | HookVerdict::NotAsked => None,
        };
        let answer = (agent.definition().permission)(event, approved, context);
        Self {
            stdout: answer.map(|answer| answer.to_string()).unwrap_or_default(),
            stderr: String::new(),
            status: 0,
        }
    }

    fn answered(
        agent: Agent,
        event: &HookEvent,
        by: &str,
        answers: &QuestionAnswers,
        context: Option<&str>,
    ) -> Self {
        let definition = agent.definition();
        let questions = event.call().and_then(ToolCall::questions);
        let (Some(call), Some(questions)) = (event.call(), questions) else {
            return Self::denied(agent, Some(event), "it asks nothing");
        };
        let permission = (definition.permission)(event, Some(format!("answered by {by}")), context);
        match permission {
            Some(mut answer) if definition.takes_answers => {
                answer["hookSpecificOutput"]["updatedInput"] = call.answered_input(answers);
                Self {
                    stdout: answer.to_string(),
                    stderr: String::new(),
                    status: 0,
                }
            }
            _ => {
                let further = context.map(|context| format!("\n\n{context}"));
                let text = answer_text(by, questions, answers);
                let text = format!("{text}{}", further.unwrap_or_default());
                Self::denied(agent, Some(event), &text)
            }
        }
    }
}

/// Whether the model gets to see additional context with the answer to this event.
pub fn takes_context(agent: Agent, event: &HookEvent) -> bool {
    let is_told = matches!(
        event.kind,
        EventKind::Call(_) | EventKind::SessionStart | EventKind::SessionClear | EventKind::Prompt
    );
    agent.definition().takes_context && is_told
}

/// The output of `work`, or a denial if it panics.
pub async fn guarded(agent: Agent, work: impl Future<Output = HookOutput>) -> HookOutput {
    let ended = AssertUnwindSafe(work).catch_unwind().await;
    ended.unwrap_or_else(|_| {
        let reason = "countersign failed internally; this is a bug, please report it";
        HookOutput::denied(agent, None, reason)
    })
}
