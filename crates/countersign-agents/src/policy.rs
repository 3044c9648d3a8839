//! What need not be asked. The user's `policy.toml` says so; a project's `.countersign.toml` can only ask for more.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::agent::Agent;
use crate::commands::{CommandRule, RuleCoverage};
use crate::event::{ToolAction, ToolCall};
use crate::places::{NamedPath, WorkDirectories};
use countersign_client::shell::chooses_something;
use countersign_client::shell::{plain_words, shell_words};

/// Classes that are free unless the policy names others: what reads, and what changes only the agent's own state.
const FREE: [&str; 2] = ["read", "internal"];

/// Commands that only read the files which they name, so that `allow.paths` counts for them too.
const READERS: &[&str] = &[
    "cat", "cmp", "du", "file", "grep", "head", "ls", "rg", "stat", "tail", "tree", "wc",
];

/// Edits within the project. `edit` alone would cover every file that the user can write.
const EDIT_PROJECT: &str = "edit.project";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookPolicy {
    allow: RuleList<CommandRule>,
    ask: RuleList<CommandStart>,
    /// Why everything is asked, if it is.
    ask_all_reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct RuleList<C> {
    tools: Vec<ToolRule>,
    commands: Vec<C>,
    paths: Vec<PathBuf>,
}

/// The first words of commands that are asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CommandStart(Vec<String>);

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyJudgement {
    NotAsked,
    /// Unless an earlier approval of something like it counts.
    Asked,
    /// Whatever was approved before.
    AlwaysAsked,
    Denied(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyFile {
    allow: Option<PolicyTable>,
    ask: Option<PolicyTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProjectFile {
    ask: Option<PolicyTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyTable {
    tools: Option<Vec<String>>,
    commands: Option<Vec<String>>,
    paths: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ToolRule {
    Class(&'static str),
    Name {
        agent: Option<Agent>,
        name: String,
        /// Whether other names that begin so are meant too.
        is_prefix: bool,
    },
}

impl Default for HookPolicy {
    fn default() -> Self {
        Self {
            allow: RuleList {
                tools: FREE.map(ToolRule::Class).to_vec(),
                commands: Vec::new(),
                paths: Vec::new(),
            },
            ask: RuleList {
                tools: Vec::new(),
                commands: Vec::new(),
                paths: Vec::new(),
            },
            ask_all_reason: None,
        }
    }
}

impl HookPolicy {
    /// The user's own.
    pub fn parse(text: &str, places: &WorkDirectories) -> Result<Self, String> {
        let file: PolicyFile = toml::from_str(text).map_err(|error| problem(text, &error))?;
        let mut policy = Self::default();
        if let Some(table) = file.allow {
            if table.tools.is_some() {
                policy.allow.tools.clear();
            }
            if table.tools.iter().flatten().any(|tool| tool == "edit") {
                return Err(format!(
                    "allow.tools: \"edit\" would cover every file; write \"{EDIT_PROJECT}\" for those of the project"
                ));
            }
            policy.allow.add(table, places, None, CommandRule::parse)?;
        }
        if policy.allow.tools.iter().any(ToolRule::is_everything) {
            return Err(
                "allow.tools: \"*\" would let everything pass; remove the hook instead".to_owned(),
            );
        }
        if let Some(table) = file.ask {
            policy.ask.add(table, places, None, CommandStart::parse)?;
        }
        Ok(policy)
    }

    /// A project's, found in `directory`. What is wrong with it makes everything asked.
    pub fn tighten(&mut self, text: &str, places: &WorkDirectories, directory: &Path) {
        let added = toml::from_str::<ProjectFile>(text)
            .map_err(|error| problem(text, &error))
            .and_then(|file| match file.ask {
                Some(table) => self
                    .ask
                    .add(table, places, Some(directory), CommandStart::parse),
                None => Ok(()),
            });
        if let Err(problem) = added {
            let file = directory.join(".countersign.toml");
            self.ask_everything(format!("{}: {problem}", file.display()));
        }
    }

    /// What is to be asked about has another name where links lead; `real` finds it.
    pub fn follow_links(&mut self, real: impl Fn(&Path) -> Option<PathBuf>) {
        let followed: Vec<_> = self.ask.paths.iter().filter_map(|it| real(it)).collect();
        self.ask.paths.extend(followed);
    }

    pub fn ask_everything(&mut self, reason: String) {
        self.ask_all_reason = Some(reason);
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

    /// `named` is what [`ToolCall::named_paths`] has, resolved; `None` if that failed.
    pub fn judge(
        &self,
        agent: Agent,
        call: &ToolCall,
        places: &WorkDirectories,
        named: Option<&[NamedPath]>,
    ) -> PolicyJudgement {
        let Some(named) = named else {
            return PolicyJudgement::AlwaysAsked;
        };
        if named.iter().any(|it| it.is_own(places)) {
            return PolicyJudgement::Denied(
                "Countersign's own files are not for agents: whoever can read or change them could approve its own calls"
                    .to_owned(),
            );
        }
        let is_sensitive = |it: &NamedPath| it.always_asked(places, &call.action).is_some();
        if self.ask_all_reason.is_some() || named.iter().any(is_sensitive) {
            return PolicyJudgement::AlwaysAsked;
        }
        let words = match &call.action {
            ToolAction::Command { command, .. } => {
                Some(plain_words(command).filter(|_| !call.has_options()))
            }
            _ => None,
        };
        if self.ask.has(agent, call, words.as_ref(), named) {
            return PolicyJudgement::Asked;
        }
        let is_in_project = |it: &NamedPath| it.is_in_project(places);
        let is_readable = |it: &NamedPath| {
            is_in_project(it) || self.allow.paths.iter().any(|place| it.is_within(place))
        };
        let is_free = match (&call.action, &words) {
            // Below the project there may be another one, with settings of its own.
            (ToolAction::Command { directory, .. }, _)
                if !places.is_usual_directory(directory.as_deref()) =>
            {
                false
            }
            (ToolAction::Command { .. }, Some(Some(words))) => {
                let in_scope = || {
                    let is_reader = words
                        .first()
                        .is_some_and(|it| READERS.contains(&it.as_str()));
                    let is_scope = |it: &NamedPath| {
                        if is_reader {
                            is_readable(it)
                        } else {
                            is_in_project(it)
                        }
                    };
                    named.iter().all(is_scope)
                };
                let by_tool = || {
                    let program = words.first().map_or("", String::as_str);
                    let chooses = |word: &String| chooses_something(program, word);
                    let chooses = words.iter().skip(1).any(chooses);
                    self.allow.has_tool(agent, call) && !chooses && in_scope()
                };
                let by_rule = self
                    .allow
                    .commands
                    .iter()
                    .filter_map(|rule| rule.coverage(words));
                let is_whole = |it: RuleCoverage| it == RuleCoverage::Whole;
                by_rule.into_iter().any(|it| is_whole(it) || in_scope()) || by_tool()
            }
            // Nobody can tell which files such a command touches.
            (ToolAction::Command { .. }, _) => false,
            (ToolAction::Read, _) => {
                self.allow.has_tool(agent, call) && named.iter().all(is_readable)
            }
            (action, _) if action.class() == "edit" => {
                let is_scoped = !named.is_empty() && named.iter().all(is_in_project);
                self.allow.has_tool(agent, call) && is_scoped
            }
            _ => self.allow.has_tool(agent, call),
        };
        if is_free {
            PolicyJudgement::NotAsked
        } else {
            PolicyJudgement::Asked
        }
    }
}

impl<C> RuleList<C> {
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
        for text in table.commands.unwrap_or_default() {
            self.commands.push(parse_command(&text)?);
        }
        for text in table.paths.unwrap_or_default() {
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

    fn has_tool(&self, agent: Agent, call: &ToolCall) -> bool {
        self.tools.iter().any(|rule| rule.matches(agent, call))
    }
}

impl RuleList<CommandStart> {
    /// Whether any rule is about the call. A command that is not plain could be any command.
    fn has(
        &self,
        agent: Agent,
        call: &ToolCall,
        words: Option<&Option<Vec<String>>>,
        named: &[NamedPath],
    ) -> bool {
        let by_command = match words {
            Some(Some(words)) => self.commands.iter().any(|it| words.starts_with(&it.0)),
            Some(None) => !self.commands.is_empty(),
            None => false,
        };
        let by_path = |place: &PathBuf| named.iter().any(|it| it.touches(place));
        by_command || self.has_tool(agent, call) || self.paths.iter().any(by_path)
    }
}

impl CommandStart {
    fn parse(text: &str) -> Result<Self, String> {
        // A command that runs another one is asked anyway. Its name here is no mistake.
        let words = shell_words(text);
        let words = words.ok_or_else(|| format!("commands: {text:?} is not made of plain words"));
        words.map(Self)
    }
}

impl ToolRule {
    fn parse(text: &str) -> Result<Self, String> {
        if text == EDIT_PROJECT {
            return Ok(Self::Class("edit"));
        }
        if let Some(class) = ToolAction::CLASSES.into_iter().find(|class| *class == text) {
            return Ok(Self::Class(class));
        }
        let (agent, name) = match text.split_once(':') {
            Some((agent, name)) if agent.parse::<Agent>().is_ok() => (agent.parse().ok(), name),
            _ => (None, text),
        };
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

    fn is_everything(&self) -> bool {
        matches!(self, Self::Name { name, .. } if name.is_empty())
    }

    fn matches(&self, of: Agent, call: &ToolCall) -> bool {
        match self {
            Self::Class(class) => call.action.class() == *class,
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

/// Where it is and what it is, without the lines around it.
fn problem(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map_or(1, |before| before.matches('\n').count() + 1);
    format!("line {line}: {}", error.message())
}
