//! Answers in the form of each agent. A denial is said in every way at once, since no single one stops all agents: JSON on
//! standard output, the reason on standard error, exit status 2.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use serde_json::{Value, json};

use super::Agent;
use super::event::{EventKind, HookEvent};

/// The exit status that agents take for a denial.
pub const BLOCK: u8 = 2;

/// What the hook leaves behind.
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
    /// A person has decided: with who it was.
    Approved(String),
    /// Nobody had to be asked. The agent's own rules still hold.
    NotAsked,
}

impl HookOutput {
    fn allowed(answer: Option<Value>) -> Self {
        Self {
            stdout: answer.map(|answer| answer.to_string()).unwrap_or_default(),
            stderr: String::new(),
            status: 0,
        }
    }

    /// `event` is `None` if it could not be read.
    pub fn denied(agent: Agent, event: Option<&HookEvent>, reason: &str) -> Self {
        let answer = match agent {
            Agent::Claude | Agent::Codex => json!({ "hookSpecificOutput": {
                "hookEventName": event.map_or("PreToolUse", |event| event.name.as_str()),
                "permissionDecision": "deny",
                "permissionDecisionReason": reason,
            } }),
            Agent::Copilot => {
                json!({ "permissionDecision": "deny", "permissionDecisionReason": reason })
            }
            Agent::Gemini | Agent::Opencode => json!({ "decision": "deny", "reason": reason }),
            Agent::Cursor => json!({
                "permission": "deny",
                "user_message": format!("Countersign: {reason}"),
                "agent_message": reason,
            }),
        };
        Self {
            stdout: answer.to_string(),
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
        if let HookVerdict::Denied(reason) = verdict {
            let reason = match context.filter(|_| takes_context(agent, event)) {
                Some(context) => format!("{reason}\n\n{context}"),
                None => reason.clone(),
            };
            return Self::denied(agent, Some(event), &reason);
        }
        let is_call = matches!(event.kind, EventKind::Call(_));
        let approved = match verdict {
            HookVerdict::Approved(by) if is_call => Some(format!("approved by {by}")),
            _ => None,
        };
        let context = context.filter(|_| takes_context(agent, event));
        Self::allowed(match agent {
            Agent::Claude | Agent::Codex => {
                // Codex takes an explicit allow for a failure.
                let approved = approved.filter(|_| agent == Agent::Claude);
                (approved.is_some() || context.is_some()).then(|| {
                    let mut own = json!({ "hookEventName": event.name });
                    if let Some(approved) = approved {
                        own["permissionDecision"] = "allow".into();
                        own["permissionDecisionReason"] = approved.into();
                    }
                    if let Some(context) = context {
                        own["additionalContext"] = context.into();
                    }
                    json!({ "hookSpecificOutput": own })
                })
            }
            Agent::Copilot => approved.map(|_| json!({ "permissionDecision": "allow" })),
            Agent::Gemini => approved.map(|_| json!({ "decision": "allow" })),
            // Our own plugin goes on after nothing else.
            Agent::Opencode => Some(json!({ "decision": "allow" })),
            Agent::Cursor => Some(match (approved, &event.kind) {
                (Some(_), _) => json!({ "permission": "allow" }),
                (None, EventKind::Prompt) => json!({ "continue": true }),
                // It may be told to block when a hook prints nothing.
                (None, _) => json!({}),
            }),
        })
    }
}

/// Whether the model gets to see additional context with the answer to this event.
pub fn takes_context(agent: Agent, event: &HookEvent) -> bool {
    let is_told = matches!(
        event.kind,
        EventKind::Call(_) | EventKind::SessionStart | EventKind::Prompt
    );
    matches!(agent, Agent::Claude | Agent::Codex) && is_told
}

/// The output of `work`, or a denial if it panics.
pub async fn guarded(agent: Agent, work: impl Future<Output = HookOutput>) -> HookOutput {
    let ended = AssertUnwindSafe(work).catch_unwind().await;
    ended.unwrap_or_else(|_| {
        let reason = "countersign failed inside; this is a bug, please report it";
        HookOutput::denied(agent, None, reason)
    })
}
