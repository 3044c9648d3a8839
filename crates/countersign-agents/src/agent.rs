//! The table of agents.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};

use crate::agents::claude::CLAUDE;
use crate::agents::codex::CODEX;
use crate::agents::copilot::COPILOT;
use crate::agents::cursor::CURSOR;
use crate::agents::gemini::GEMINI;
use crate::agents::opencode::OPENCODE;
use crate::definition::AgentDefinition;
use crate::event::HookEvent;
use crate::members::EventMembers;

/// More than the largest edit that could be shown to anyone.
pub const MAX_INPUT_BYTES: usize = 8 << 20;

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

    pub fn definition(self) -> &'static AgentDefinition {
        match self {
            Self::Claude => &CLAUDE,
            Self::Codex => &CODEX,
            Self::Copilot => &COPILOT,
            Self::Gemini => &GEMINI,
            Self::Opencode => &OPENCODE,
            Self::Cursor => &CURSOR,
        }
    }

    /// As it is called on the command line.
    pub fn as_str(self) -> &'static str {
        self.definition().name
    }

    /// As people call it.
    pub fn title(self) -> &'static str {
        self.definition().title
    }

    /// Whether its events tell where a command would run, and not where the agent works. Its hooks
    /// run where it works.
    pub fn names_call_directory(self) -> bool {
        self == Self::Codex
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

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{title} sent something that Countersign does not understand: {problem}")]
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
        (agent.definition().read)(members).map_err(unreadable)
    }
}
