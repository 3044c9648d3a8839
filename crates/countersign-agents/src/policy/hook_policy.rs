//! The policy as its files have it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use countersign_client::shell::{CommandPart, shell_words};
use serde::Deserialize;

use super::command_rule::CommandRule;
use super::project_rules::{FileDigests, ProjectRules, ProjectTable};
use super::tool_rule::{EDIT_PROJECT, ToolRule};
use crate::agent::Agent;
use crate::event::{ToolAction, ToolCall};
use crate::places::{NamedPath, WorkDirectories};

/// Classes that are free unless the policy names others: they read, or change only the agent's own
/// state.
const FREE: [&str; 2] = ["read", "internal"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookPolicy {
    pub(super) allow: RuleList<CommandRule>,
    /// Commands are named by their first words.
    pub(super) ask: RuleList<Vec<String>>,
    /// The rules of the project that the agent works in.
    pub(super) project: Option<ProjectRules>,
    /// Whether a change that nothing allows is denied without asking anyone.
    pub(super) denies_changes: bool,
    /// Why everything is asked, if it is.
    pub(super) ask_all_reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RuleList<C> {
    pub tools: Vec<ToolRule>,
    pub commands: Vec<C>,
    pub paths: Vec<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyFile {
    #[serde(default)]
    changes: OtherChanges,
    #[serde(default)]
    allow: PolicyTable,
    #[serde(default)]
    ask: PolicyTable,
    #[serde(default)]
    project: BTreeMap<String, ProjectTable>,
}

#[derive(Deserialize, Default, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum OtherChanges {
    #[default]
    Ask,
    Deny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProjectFile {
    #[serde(default)]
    ask: PolicyTable,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct PolicyTable {
    tools: Option<Vec<String>>,
    commands: Vec<String>,
    paths: Vec<String>,
}

impl Default for HookPolicy {
    fn default() -> Self {
        Self {
            allow: RuleList::of(FREE.map(ToolRule::Class).to_vec()),
            ask: RuleList::of(Vec::new()),
            project: None,
            denies_changes: false,
            ask_all_reason: None,
        }
    }
}

impl HookPolicy {
    /// The user's own.
    pub fn parse(text: &str, places: &WorkDirectories) -> Result<Self, String> {
        let file: PolicyFile = toml::from_str(text).map_err(|error| problem(text, &error))?;
        let mut policy = Self {
            denies_changes: file.changes == OtherChanges::Deny,
            ..Self::default()
        };
        if let Some(tools) = &file.allow.tools {
            policy.allow.tools.clear();
            if tools.iter().any(|tool| tool == "edit") {
                return Err(format!(
                    "allow.tools: \"edit\" would cover every file; write \"{EDIT_PROJECT}\" for those of the project"
                ));
            }
        }
        (policy.allow).add(file.allow, places, None, CommandRule::parse)?;
        if policy.allow.tools.iter().any(ToolRule::is_everything) {
            return Err(
                "allow.tools: \"*\" would allow everything; remove the hook instead".to_owned(),
            );
        }
        policy.ask.add(file.ask, places, None, first_words)?;
        for (project, table) in &file.project {
            let rules = ProjectRules::parse(table, project)?;
            if Path::new(project) == places.project {
                policy.project = Some(rules);
            }
        }
        Ok(policy)
    }

    /// A project's, found in `directory`. With a mistake in it everything is asked.
    pub fn tighten(&mut self, text: &str, places: &WorkDirectories, directory: &Path) {
        let file = toml::from_str::<ProjectFile>(text).map_err(|error| problem(text, &error));
        let added =
            file.and_then(|file| (self.ask).add(file.ask, places, Some(directory), first_words));
        if let Err(problem) = added {
            let file = directory.join(".countersign.toml");
            self.ask_everything(format!("{}: {problem}", file.display()));
        }
    }

    /// A path to be asked about has another name where links lead; `real` finds it.
    pub fn follow_links(&mut self, real: impl Fn(&Path) -> Option<PathBuf>) {
        let followed: Vec<_> = self.ask.paths.iter().filter_map(|it| real(it)).collect();
        self.ask.paths.extend(followed);
    }

    pub fn ask_everything(&mut self, reason: String) {
        self.ask_all_reason = Some(reason);
    }

    /// The commands of the project count only if the files that define them are as they were.
    /// `digests` reads these files as they are.
    pub fn compare_files(&mut self, digests: impl FnOnce() -> FileDigests) {
        if let Some(project) = &mut self.project {
            project.compare_with(digests());
        }
    }

    /// Classes that let something run of which the policy says nothing.
    pub fn wide_classes(&self) -> Vec<&'static str> {
        let wide = ["command", "mcp", "other"].into_iter();
        wide.filter(|class| self.allow.tools.contains(&ToolRule::Class(class)))
            .collect()
    }

    pub fn ask_all_reason(&self) -> Option<&str> {
        self.ask_all_reason.as_deref()
    }
}

impl<C> RuleList<C> {
    fn of(tools: Vec<ToolRule>) -> Self {
        Self {
            tools,
            commands: Vec::new(),
            paths: Vec::new(),
        }
    }

    /// Relative paths are allowed in a project's file only, and begin in `directory`.
    fn add(
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
fn first_words(text: &str) -> Result<Vec<String>, String> {
    let words = shell_words(text);
    words.ok_or_else(|| format!("commands: {text:?} is more than plain words"))
}

/// The line and the message of an error, without the lines around it.
fn problem(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map_or(1, |before| before.matches('\n').count() + 1);
    format!("line {line}: {}", error.message())
}
