//! The policy as its files have it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use countersign_client::enforcer::ReceiptFolder;
use serde::Deserialize;

use super::call_rule::{CallRule, RuleTable};
use super::command_rule::CommandRule;
use super::project_rules::{FileDigests, ProjectRules, ProjectTable};
use super::rule_list::{PolicyTable, RuleList, first_words};
use super::tool_rule::{EDIT_PROJECT, ToolRule};
use crate::places::WorkDirectories;

/// Classes that are free unless the policy names others: they read, or change only the agent's own
/// state.
const FREE: [&str; 2] = ["read", "internal"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookPolicy {
    pub(super) allow: RuleList<CommandRule>,
    /// Commands are named by their first words.
    pub(super) ask: RuleList<Vec<String>>,
    /// Calls that need more than one approval.
    pub(super) rules: Vec<CallRule>,
    /// The rules of the project that the agent works in.
    pub(super) project: Option<ProjectRules>,
    /// Whether a change that nothing allows is denied without asking anyone.
    pub(super) denies_changes: bool,
    /// Why everything is asked, if it is.
    pub(super) ask_all_reason: Option<String>,
    /// Where receipts are kept.
    pub receipts: Option<ReceiptFolder>,
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
    #[serde(default)]
    rule: Vec<RuleTable>,
    receipts: Option<ReceiptTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReceiptTable {
    directory: String,
    #[serde(default)]
    required: bool,
    artifact: Option<bool>,
}

impl ReceiptTable {
    fn folder(self, places: &WorkDirectories) -> Result<ReceiptFolder, String> {
        if !self.directory.starts_with('/') && !self.directory.starts_with("~/") {
            let directory = self.directory;
            return Err(format!(
                "receipts: directory: {directory:?} must begin with / or ~/"
            ));
        }
        Ok(ReceiptFolder {
            directory: places.absolute(&self.directory),
            is_required: self.required,
            has_content: self.artifact.unwrap_or(true),
        })
    }
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
    #[serde(default)]
    rule: Vec<RuleTable>,
}

impl Default for HookPolicy {
    fn default() -> Self {
        Self {
            allow: RuleList::of(FREE.map(ToolRule::Class).to_vec()),
            ask: RuleList::of(Vec::new()),
            rules: Vec::new(),
            project: None,
            denies_changes: false,
            ask_all_reason: None,
            receipts: None,
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
        policy.add_rules(file.rule, places, None)?;
        policy.receipts = (file.receipts.map(|it| it.folder(places))).transpose()?;
        for (project, table) in &file.project {
            let rules = ProjectRules::parse(table, project)?;
            if Path::new(project) == places.project {
                policy.project = Some(rules);
            }
        }
        Ok(policy)
    }

    /// A project's, found in `directory`. With a mistake in it everything is asked. If it has rules,
    /// the mistake is an error: nobody knows how many people they demand.
    pub fn tighten(
        &mut self,
        text: &str,
        places: &WorkDirectories,
        directory: &Path,
    ) -> Result<(), String> {
        let file = toml::from_str::<ProjectFile>(text).map_err(|error| problem(text, &error));
        let added = file.and_then(|file| {
            (self.ask).add(file.ask, places, Some(directory), first_words)?;
            self.add_rules(file.rule, places, Some(directory))
        });
        let Err(problem) = added else {
            return Ok(());
        };
        let file = directory.join(".countersign.toml");
        let problem = format!("{}: {problem}", file.display());
        let has_rules = match toml::from_str::<toml::Table>(text) {
            Ok(table) => table.contains_key("rule"),
            Err(_) => text.contains("rule"),
        };
        if has_rules {
            return Err(problem);
        }
        self.ask_everything(problem);
        Ok(())
    }

    /// Rules of a project's file come with its `directory`.
    fn add_rules(
        &mut self,
        tables: Vec<RuleTable>,
        places: &WorkDirectories,
        directory: Option<&Path>,
    ) -> Result<(), String> {
        for table in tables {
            let (matchers, demand) = table.split(directory.is_some())?;
            let mut list = RuleList::of(Vec::new());
            list.add(matchers, places, directory, first_words)?;
            self.rules.push(CallRule::new(list, demand)?);
        }
        Ok(())
    }

    /// A path to be asked about has another name where links lead; `real` finds it.
    pub fn follow_links(&mut self, real: impl Fn(&Path) -> Option<PathBuf>) {
        let rules = self.rules.iter_mut().map(|rule| &mut rule.list.paths);
        for paths in rules.chain([&mut self.ask.paths]) {
            let followed: Vec<_> = paths.iter().filter_map(|it| real(it)).collect();
            paths.extend(followed);
        }
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

    /// Each rule with `commands`: these, and what it demands.
    pub fn command_rules(&self) -> impl Iterator<Item = (String, String)> {
        let rules = self.rules.iter();
        let rules = rules.filter(|rule| !rule.list.commands.is_empty());
        rules.map(|rule| {
            let commands = rule.list.commands.iter().map(|words| words.join(" "));
            (commands.collect::<Vec<_>>().join(", "), rule.to_string())
        })
    }

    pub fn ask_all_reason(&self) -> Option<&str> {
        self.ask_all_reason.as_deref()
    }
}

/// The line and the message of an error, without the lines around it.
fn problem(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map_or(1, |before| before.matches('\n').count() + 1);
    format!("line {line}: {}", error.message())
}
