//! The events of agents' hooks, in one form for all agents. An event that is not understood is an
//! error, which denies, or an action that is asked about.

use countersign_client::shell;
use serde_json::{Map, Value};

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
    /// It begins, or goes on.
    SessionStart,
    /// It begins anew: nothing of it goes on.
    SessionClear,
    /// It may go on later.
    SessionEnd,
    /// It does not come back.
    SessionClose,
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
    /// The part of the input that is not in `action`.
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
    /// Asks the agent's user.
    Question {
        questions: Vec<AgentQuestion>,
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
pub struct AgentQuestion {
    pub text: String,
    pub header: Option<String>,
    pub choices: Vec<QuestionChoice>,
    pub takes_several: bool,
    /// Members that are not understood.
    pub rest: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionChoice {
    pub label: String,
    pub description: Option<String>,
    pub rest: Map<String, Value>,
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

impl HookEvent {
    /// Makes the directory of the event that of its command, and `agents` that of the agent: some
    /// agents tell only where the command would run, and so the model would choose its project.
    pub fn set_agent_directory(&mut self, agents: String) {
        if let EventKind::Call(call) = &mut self.kind
            && let ToolAction::Command { directory, .. } = &mut call.action
            && directory.is_none()
        {
            *directory = self.directory.replace(agents);
        }
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
        shell::has_options(&self.rest)
    }
}

impl ToolAction {
    /// Its name in a policy.
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
            Self::Question { .. } => "question",
            Self::Web => "web",
            Self::Read => "read",
            Self::Internal => "internal",
            Self::Other => "other",
        }
    }

    pub fn may_change_files(&self) -> bool {
        !matches!(
            self,
            Self::Read | Self::Internal | Self::Web | Self::Plan { .. } | Self::Question { .. }
        )
    }

    pub const CLASSES: [&str; 9] = [
        "command", "edit", "mcp", "plan", "question", "web", "read", "internal", "other",
    ];
}
