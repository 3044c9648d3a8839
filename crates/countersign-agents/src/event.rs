//! What an agent's hook says, in one form for all agents. Whatever is not understood is an error, which denies, or an action
//! that is asked about.

use serde_json::{Map, Value};

use super::Agent;
use super::read::{self, EventMembers};

/// More than the largest edit that could be shown to anyone.
pub const MAX_INPUT_BYTES: usize = 8 << 20;

/// One call of the hook.
#[derive(Debug, Clone, PartialEq)]
pub struct HookEvent {
    /// As the agent calls it.
    pub name: String,
    pub session: Option<String>,
    /// The turn of the session, if the agent names it.
    pub turn: Option<String>,
    /// Where the agent works.
    pub directory: Option<String>,
    pub kind: EventKind,
}

#[derive(Debug, Clone, PartialEq)]
pub enum EventKind {
    /// The agent waits for an answer before it goes on.
    Call(Box<ToolCall>),
    SessionStart,
    SessionEnd,
    /// A person typed something.
    Prompt,
    /// The turn has ended, so nobody waits for its calls.
    TurnEnd,
    /// Something that needs no answer.
    Other,
}

/// A tool that is about to be used.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// As the agent calls it.
    pub tool: String,
    /// Whole, as the agent gave it.
    pub input: Map<String, Value>,
    /// What of the input is not part of `action`.
    pub rest: Map<String, Value>,
    pub action: ToolAction,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolAction {
    Command {
        command: String,
        /// If it is not the agent's own.
        directory: Option<String>,
        background: bool,
    },
    /// Replaces a whole file, or creates it.
    Write {
        path: String,
        content: String,
    },
    Replace {
        path: String,
        edits: Vec<TextReplacement>,
    },
    /// Changes a cell of a notebook.
    Cell {
        path: String,
        cell: Option<String>,
        change: CellChange,
        source: String,
    },
    Delete {
        path: String,
    },
    /// A patch in the format of `apply_patch`.
    Patch {
        patch: String,
    },
    Mcp {
        server: Option<String>,
        tool: String,
    },
    Plan {
        text: String,
    },
    /// Fetches from the network, or searches there.
    Web,
    /// Reads or searches files.
    Read,
    /// Changes nothing but the agent's own notes and state.
    Internal,
    /// Nothing is known of it.
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextReplacement {
    pub old: String,
    pub new: String,
    pub occurrences: MatchCount,
}

/// How often the old text must be in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchCount {
    One,
    All,
    Exactly(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellChange {
    Replace,
    Insert,
    Delete,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{title} sent something that is not understood: {problem}")]
pub struct UnreadableEvent {
    title: &'static str,
    problem: String,
}

impl HookEvent {
    pub fn read(agent: Agent, text: &[u8]) -> Result<Self, UnreadableEvent> {
        let unreadable = |problem: String| UnreadableEvent {
            title: agent.title(),
            problem,
        };
        if text.len() > MAX_INPUT_BYTES {
            let limit = MAX_INPUT_BYTES >> 20;
            return Err(unreadable(format!("it is larger than {limit} MiB")));
        }
        let members: Map<String, Value> =
            serde_json::from_slice(text).map_err(|error| unreadable(error.to_string()))?;
        let members = EventMembers::new("", members);
        let event = match agent {
            Agent::Claude => read::claude::event(members),
            Agent::Codex => read::codex::event(members),
            Agent::Copilot => read::copilot::event(members),
            Agent::Gemini => read::gemini::event(members),
            Agent::Opencode => read::opencode::event(members),
            Agent::Cursor => read::cursor::event(members),
        };
        event.map_err(unreadable)
    }

    pub fn call(&self) -> Option<&ToolCall> {
        match &self.kind {
            EventKind::Call(call) => Some(call),
            _ => None,
        }
    }
}

/// The tools of `countersign mcp`.
const OWN_TOOLS: [&str; 3] = ["check_approval", "request_approval", "withdraw_approval"];

impl ToolCall {
    /// Whether a command comes with more than itself, such as a switch that turns a sandbox off.
    pub fn has_options(&self) -> bool {
        countersign_client::shell::has_options(&self.rest)
    }
}

impl ToolAction {
    /// What a policy calls it.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Command { .. } => "command",
            Self::Write { .. }
            | Self::Replace { .. }
            | Self::Cell { .. }
            | Self::Delete { .. }
            | Self::Patch { .. } => "edit",
            // They ask a person themselves.
            Self::Mcp { server, tool }
                if server.as_deref() == Some("countersign")
                    && OWN_TOOLS.contains(&tool.as_str()) =>
            {
                "internal"
            }
            Self::Mcp { .. } => "mcp",
            Self::Plan { .. } => "plan",
            Self::Web => "web",
            Self::Read => "read",
            Self::Internal => "internal",
            Self::Other => "other",
        }
    }

    pub fn may_change_files(&self) -> bool {
        !matches!(
            self,
            Self::Read | Self::Internal | Self::Web | Self::Plan { .. }
        )
    }

    pub const CLASSES: [&str; 8] = [
        "command", "edit", "mcp", "plan", "web", "read", "internal", "other",
    ];
}
