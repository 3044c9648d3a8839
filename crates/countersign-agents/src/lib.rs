//! The agents that Countersign stands in front of: what their hooks say, and how they are answered. Pure: no I/O, no clock.
//!
//! | file | contents |
//! |---|---|
//! | `event`, `read` | an agent's JSON as an [`HookEvent`]; a tool call as an [`ToolAction`] |
//! | `names`, `places`, `policy` | which files it names, and whether it needs to be asked about |
//! | `commands` | the prefixes of commands that a person may permit |
//! | `change`, `patch`, `proposal` | what an approver is shown |
//! | `answer` | the answer in the agent's own form |

mod answer;
mod change;
mod commands;
pub mod edit;
mod event;
mod names;
mod patch;
mod places;
mod policy;
mod proposal;
mod read;

pub use self::answer::{BLOCK, HookOutput, HookVerdict, guarded, takes_context};
pub use self::event::{
    CellChange, EventKind, HookEvent, MAX_INPUT_BYTES, MatchCount, TextReplacement, ToolAction,
    ToolCall, UnreadableEvent,
};
pub use self::places::{NamedPath, WorkDirectories, normal};
pub use self::policy::{HookPolicy, PolicyJudgement};
pub use self::proposal::{BaseFile, ChangeProposal, MAX_PAYLOAD_BYTES};

use std::fmt;
use std::str::FromStr;

/// An agent that can be made to ask before it acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Agent {
    Claude,
    Codex,
    Copilot,
    Gemini,
    Opencode,
    Cursor,
}

impl Agent {
    pub const ALL: [Self; 6] = [
        Self::Claude,
        Self::Codex,
        Self::Copilot,
        Self::Gemini,
        Self::Opencode,
        Self::Cursor,
    ];

    /// As it is called on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Copilot => "copilot",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Cursor => "cursor",
        }
    }

    /// As people call it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex CLI",
            Self::Copilot => "Copilot CLI",
            Self::Gemini => "Gemini CLI",
            Self::Opencode => "opencode",
            Self::Cursor => "Cursor",
        }
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Agent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|agent| agent.as_str() == text);
        found.ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            format!("expected one of {known}")
        })
    }
}
