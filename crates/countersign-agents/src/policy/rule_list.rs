//! The calls that a table of a policy names: by tools, by commands and by paths.

use std::path::{Path, PathBuf};

use countersign_client::shell::{CommandPart, shell_words};
use serde::Deserialize;

use super::tool_rule::ToolRule;
use crate::agent::Agent;
use crate::event::{ToolAction, ToolCall};
use crate::places::{NamedPath, WorkDirectories};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RuleList<C> {
    pub tools: Vec<ToolRule>,
    pub commands: Vec<C>,
    pub paths: Vec<PathBuf>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PolicyTable {
    pub tools: Option<Vec<String>>,
    pub commands: Vec<String>,
    pub paths: Vec<String>,
}

impl<C> RuleList<C> {
    pub fn of(tools: Vec<ToolRule>) -> Self {
        Self {
            tools,
            commands: Vec::new(),
            paths: Vec::new(),
        }
    }

    /// Relative paths are allowed in a project's file only, and begin in `directory`.
    pub fn add(
        &mut self,
        table: PolicyTable,
        places: &WorkDirectories,
        directory: Option<&Path>,
        parse_command: impl Fn(&str) -> Result<C, String>,
    ) -> Result<(), String> {
        for text in table.tools.unwrap_or_default() {
            self.tools.push(ToolRule::parse(&text)?);
        }
        for text in table.commands {
            self.commands.push(parse_command(&text)?);
        }
        for text in table.paths {
            let place = match directory {
                Some(directory) if !text.starts_with(['/', '~']) => directory.join(&text),
                None if !text.starts_with(['/', '~']) => {
                    return Err(format!("paths: {text:?} must begin with / or ~/"));
                }
                _ => PathBuf::from(&text),
            };
            self.paths.push(places.absolute(&place.to_string_lossy()));
        }
        Ok(())
    }

    pub fn has_tool(&self, agent: Agent, call: &ToolCall) -> bool {
        self.tools.iter().any(|rule| rule.matches(agent, call))
    }
}

impl RuleList<Vec<String>> {
    /// Whether any rule is about the call. A command that cannot be parsed could be any command.
    pub fn has(
        &self,
        agent: Agent,
        call: &ToolCall,
        parts: Option<&[CommandPart]>,
        named: &[NamedPath],
    ) -> bool {
        let is_command = matches!(call.action, ToolAction::Command { .. });
        let begins = |part: &CommandPart| {
            let mut rules = self.commands.iter();
            rules.any(|first| part.words.starts_with(first))
        };
        let by_command = match parts {
            Some(parts) => parts.iter().any(begins),
            None => is_command && !self.commands.is_empty(),
        };
        let by_path = |place: &PathBuf| named.iter().any(|it| it.touches(place));
        by_command || self.has_tool(agent, call) || self.paths.iter().any(by_path)
    }
}

/// A command that runs another one is asked anyway, so its name is no mistake here.
pub(super) fn first_words(text: &str) -> Result<Vec<String>, String> {
    let words = shell_words(text);
    words.ok_or_else(|| format!("commands: {text:?} is more than plain words"))
}
