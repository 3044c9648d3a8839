//! Tools that a policy names: by class, by name, of one agent, or by the beginning of a name.

use crate::agent::Agent;
use crate::event::{ToolAction, ToolCall};

/// Edits within the project. `edit` alone would cover every file that the user can write.
pub(super) const EDIT_PROJECT: &str = "edit.project";

/// Commands that are known to do nothing but read.
const READ_COMMANDS: &str = "read.commands";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ToolRule {
    Class(&'static str),
    ReadCommands,
    Name {
        agent: Option<Agent>,
        name: String,
        /// Whether other names that begin so are meant too.
        is_prefix: bool,
    },
}

impl ToolRule {
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == EDIT_PROJECT {
            return Ok(Self::Class("edit"));
        }
        if text == READ_COMMANDS {
            return Ok(Self::ReadCommands);
        }
        if let Some(class) = ToolAction::CLASSES.into_iter().find(|class| *class == text) {
            return Ok(Self::Class(class));
        }
        let of_agent = text.split_once(':');
        let of_agent = of_agent.and_then(|(agent, name)| Some((agent.parse().ok()?, name)));
        let (agent, name) = of_agent.map_or((None, text), |(agent, name)| (Some(agent), name));
        let (name, is_prefix) = match name.strip_suffix('*') {
            Some(name) => (name, true),
            None => (name, false),
        };
        if name.contains('*') || (name.is_empty() && !is_prefix) {
            let expected = "a class, a tool's name, AGENT:NAME, or a name that ends in *";
            return Err(format!("tools: {text:?}: expected {expected}"));
        }
        Ok(Self::Name {
            agent,
            name: name.to_owned(),
            is_prefix,
        })
    }

    pub fn is_everything(&self) -> bool {
        matches!(self, Self::Name { name, .. } if name.is_empty())
    }

    pub fn matches(&self, of: Agent, call: &ToolCall) -> bool {
        match self {
            Self::Class(class) => call.action.class() == *class,
            // They are judged part by part.
            Self::ReadCommands => false,
            Self::Name {
                agent,
                name,
                is_prefix,
            } => {
                let is_named = if *is_prefix {
                    call.tool.starts_with(name)
                } else {
                    call.tool == *name
                };
                is_named && agent.is_none_or(|agent| agent == of)
            }
        }
    }
}
