//! The policy: calls that need not be asked about. The user's `policy.toml` lists them; a project's
//! `.countersign.toml` can only ask for more.

use std::path::{Path, PathBuf};

use countersign_client::shell::{chooses_something, plain_words, shell_words};
use serde::Deserialize;

use crate::agent::Agent;
use crate::commands::{CommandRule, RuleCoverage};
use crate::event::{ToolAction, ToolCall};
use crate::places::{NamedPath, WorkDirectories};

/// Classes that are free unless the policy names others: they read, or change only the agent's own
/// state.
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
    /// Commands are named by their first words.
    ask: RuleList<Vec<String>>,
    /// Why everything is asked, if it is.
    ask_all_reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct RuleList<C> {
    tools: Vec<ToolRule>,
    commands: Vec<C>,
    paths: Vec<PathBuf>,
}

/// The judgement of a policy about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyJudgement {
    NotAsked,
    /// Unless an earlier approval of something like it counts.
    Asked,
    /// Regardless of earlier approvals.
    AlwaysAsked,
    Denied(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyFile {
    #[serde(default)]
    allow: PolicyTable,
    #[serde(default)]
    ask: PolicyTable,
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
            allow: RuleList::of(FREE.map(ToolRule::Class).to_vec()),
            ask: RuleList::of(Vec::new()),
            ask_all_reason: None,
        }
    }
}

impl HookPolicy {
    /// The user's own.
    pub fn parse(text: &str, places: &WorkDirectories) -> Result<Self, String> {
        let file: PolicyFile = toml::from_str(text).map_err(|error| problem(text, &error))?;
        let mut policy = Self::default();
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

    /// Classes that let something run of which the policy says nothing.
    pub fn wide_classes(&self) -> Vec<&'static str> {
        let wide = ["command", "mcp", "other"].into_iter();
        wide.filter(|class| self.allow.tools.contains(&ToolRule::Class(class)))
            .collect()
    }

    pub fn ask_all_reason(&self) -> Option<&str> {
        self.ask_all_reason.as_deref()
    }

    /// `named` are the paths of [`ToolCall::named_paths`], resolved; `None` if that failed.
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
                "agents may not touch Countersign's own files: an agent that can read or change them could approve its own calls"
                    .to_owned(),
            );
        }
        let is_sensitive = |it: &NamedPath| it.always_asked(places, &call.action).is_some();
        if self.ask_all_reason.is_some() || named.iter().any(is_sensitive) {
            return PolicyJudgement::AlwaysAsked;
        }
        // `None` also for a command that is not plain.
        let words = match &call.action {
            ToolAction::Command { command, .. } if !call.has_options() => plain_words(command),
            _ => None,
        };
        if self.ask.has(agent, call, words.as_deref(), named) {
            return PolicyJudgement::Asked;
        }
        if self.is_free(agent, call, places, words.as_deref(), named) {
            PolicyJudgement::NotAsked
        } else {
            PolicyJudgement::Asked
        }
    }

    fn is_free(
        &self,
        agent: Agent,
        call: &ToolCall,
        places: &WorkDirectories,
        words: Option<&[String]>,
        named: &[NamedPath],
    ) -> bool {
        let is_in_project = |it: &NamedPath| it.is_in_project(places);
        let is_readable = |it: &NamedPath| {
            is_in_project(it) || self.allow.paths.iter().any(|place| it.is_within(place))
        };
        let has_tool = || self.allow.has_tool(agent, call);
        match &call.action {
            ToolAction::Command { directory, .. } => {
                // Below the project there may be another one, with settings of its own. And nobody
                // can tell which files a command that is not plain touches.
                let is_usual = places.is_usual_directory(directory.as_deref());
                let Some(words) = words.filter(|_| is_usual) else {
                    return false;
                };
                let program = words.first().map_or("", String::as_str);
                let in_scope = || {
                    if READERS.contains(&program) {
                        named.iter().all(is_readable)
                    } else {
                        named.iter().all(is_in_project)
                    }
                };
                let rules = self.allow.commands.iter();
                let mut coverages = rules.filter_map(|rule| rule.coverage(words));
                let chooses = |word: &String| chooses_something(program, word);
                coverages.any(|it| it == RuleCoverage::Whole || in_scope())
                    || (has_tool() && !words.iter().skip(1).any(chooses) && in_scope())
            }
            ToolAction::Read => has_tool() && named.iter().all(is_readable),
            action if action.class() == "edit" => {
                has_tool() && !named.is_empty() && named.iter().all(is_in_project)
            }
            _ => has_tool(),
        }
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

    fn has_tool(&self, agent: Agent, call: &ToolCall) -> bool {
        self.tools.iter().any(|rule| rule.matches(agent, call))
    }
}

impl RuleList<Vec<String>> {
    /// Whether any rule is about the call. A command that is not plain could be any command.
    fn has(
        &self,
        agent: Agent,
        call: &ToolCall,
        words: Option<&[String]>,
        named: &[NamedPath],
    ) -> bool {
        let is_command = matches!(call.action, ToolAction::Command { .. });
        let by_command = match words {
            Some(words) => self.commands.iter().any(|first| words.starts_with(first)),
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

impl ToolRule {
    fn parse(text: &str) -> Result<Self, String> {
        if text == EDIT_PROJECT {
            return Ok(Self::Class("edit"));
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

/// The line and the message of an error, without the lines around it.
fn problem(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map_or(1, |before| before.matches('\n').count() + 1);
    format!("line {line}: {}", error.message())
}
