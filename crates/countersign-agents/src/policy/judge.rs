//! Judges a call by the policy: a command part by part, anything else as a whole.

use std::path::{Path, PathBuf};

use countersign_client::shell::wrappers::hides_what_runs;
use countersign_client::shell::{CommandPart, chooses_something, command_parts};

use super::command_rule::{CommandRule, RuleCoverage};
use super::hook_policy::HookPolicy;
use super::project_rules::is_bound_file;
use super::reading::{is_filter, only_makes_files, only_reads, removed};
use super::tool_rule::ToolRule;
use crate::agent::Agent;
use crate::event::{ToolAction, ToolCall};
use crate::places::{NamedPath, WorkDirectories, normal};

/// Commands that only read the files which they name, so that `allow.paths` counts for them too.
const READERS: &[&str] = &[
    "cat", "cmp", "du", "file", "grep", "head", "ls", "rg", "stat", "tail", "tree", "wc",
];

const OWN_FILES: &str = "agents may not touch Countersign's own files: an agent that can read or change them could approve its own calls";
const CHANGES_DENIED: &str = "the policy lets this agent read, not change anything; a person can change that with: countersign policy init";

const NO_RULE: &str = "no rule of the policy allows it";

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

/// A part of a call, and why it may or may not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedPart {
    /// The words of a command, or the name of a tool.
    pub part: String,
    pub is_free: bool,
    pub reason: String,
    /// The entry of a policy that would let it pass, if there is one.
    pub entry: Option<String>,
}

/// The call, as every part of it is judged.
struct JudgedCall<'a> {
    agent: Agent,
    call: &'a ToolCall,
    places: &'a WorkDirectories,
    named: &'a [NamedPath],
}

/// Why a part passes, or why not.
pub(super) type PartReason = Result<String, String>;

impl HookPolicy {
    /// `named` are the paths of [`ToolCall::named_paths`], resolved; `None` if that failed.
    pub fn judge(
        &self,
        agent: Agent,
        call: &ToolCall,
        places: &WorkDirectories,
        named: Option<&[NamedPath]>,
    ) -> PolicyJudgement {
        self.explain(agent, call, places, named).0
    }

    pub(super) fn explain_without_rules(
        &self,
        agent: Agent,
        call: &ToolCall,
        places: &WorkDirectories,
        named: Option<&[NamedPath]>,
    ) -> (PolicyJudgement, Vec<JudgedPart>) {
        let whole = |judgement, reason: &str| {
            let part = JudgedPart {
                part: whole_text(call),
                is_free: judgement == PolicyJudgement::NotAsked,
                reason: reason.to_owned(),
                entry: None,
            };
            (judgement, vec![part])
        };
        let always = |reason: &str| {
            if self.denies_changes && call.action.may_change_files() {
                return whole(PolicyJudgement::Denied(CHANGES_DENIED.to_owned()), reason);
            }
            whole(PolicyJudgement::AlwaysAsked, reason)
        };
        let Some(named) = named else {
            return always("it's unclear which files it names");
        };
        if named.iter().any(|it| it.is_own(places)) {
            return whole(PolicyJudgement::Denied(OWN_FILES.to_owned()), OWN_FILES);
        }
        if let Some(reason) = &self.ask_all_reason {
            return always(reason);
        }
        let parts = certain_parts(call);
        let edits = call.action.class() == "edit" || parts.iter().flatten().any(writes_file);
        let sensitive = |it: &NamedPath| it.always_asked(places, &call.action, edits);
        if let Some(reason) = named.iter().find_map(sensitive) {
            return always(reason);
        }
        if self.ask.has(agent, call, parts.as_deref(), named) {
            return whole(PolicyJudgement::Asked, "the policy asks about this");
        }
        let judged = JudgedCall {
            agent,
            call,
            places,
            named,
        };
        let parts = self.judge_parts(&judged, parts.as_deref());
        let judgement = if parts.iter().all(|part| part.is_free) {
            PolicyJudgement::NotAsked
        } else if self.denies_changes && call.action.may_change_files() {
            PolicyJudgement::Denied(CHANGES_DENIED.to_owned())
        } else {
            PolicyJudgement::Asked
        };
        (judgement, parts)
    }

    fn judge_parts(
        &self,
        judged: &JudgedCall<'_>,
        parts: Option<&[CommandPart]>,
    ) -> Vec<JudgedPart> {
        let text = whole_text(judged.call);
        let ToolAction::Command { directory, .. } = &judged.call.action else {
            return vec![JudgedPart::of(text, self.judge_tool(judged))];
        };
        let as_whole = |reason: &str| vec![JudgedPart::of(text.clone(), Err(reason.to_owned()))];
        if judged.call.has_options() {
            return as_whole("it comes with options that change how it runs");
        }
        let Some(parts) = parts else {
            return as_whole("it has more than plain words, pipes and redirections to files");
        };
        // Below the project there may be another one, with settings of its own.
        if !judged.places.is_usual_directory(directory.as_deref()) {
            return as_whole("it runs in another directory than that of the agent or the project");
        }
        let judge = |part: &CommandPart| {
            let reason = self.judge_part(judged, parts, part);
            let is_open = reason.as_ref().is_err_and(|reason| reason == NO_RULE);
            JudgedPart {
                entry: is_open
                    .then(|| CommandRule::entry_for(&part.words))
                    .flatten(),
                ..JudgedPart::of(part.words.join(" "), reason)
            }
        };
        parts.iter().map(judge).collect()
    }

    fn judge_part(
        &self,
        judged: &JudgedCall<'_>,
        parts: &[CommandPart],
        part: &CommandPart,
    ) -> PartReason {
        let program = part.program();
        let is_alone = parts.len() == 1 && part.redirections.is_empty();
        if !is_alone && matches!(program, "cd" | "chdir") {
            // Then every later name means another file.
            return match part.words.get(1).map(Path::new) {
                Some(to) if part.words.len() == 2 && judged.places.is_own_directory(to) => {
                    Ok("the agent is there already".to_owned())
                }
                _ => Err("it changes the directory".to_owned()),
            };
        }
        if part.reads_pipe && !is_filter(program) {
            return Err("it isn't a known filter for piped input".to_owned());
        }
        let (in_project, readable) = (judged.all_in_project(), self.all_readable(judged));
        let edits = self.allow.tools.contains(&ToolRule::Class("edit"));
        if part.writes() && !(edits && in_project) {
            return Err("it writes a file, which the policy does not allow here".to_owned());
        }
        if !part.redirections.is_empty() && !readable {
            return Err("it reads a file outside of the project".to_owned());
        }
        let scope = if READERS.contains(&program) {
            readable
        } else {
            in_project
        };
        if let Some(reason) = self.judge_by_rules(judged, parts, part, scope) {
            return reason;
        }
        if self.allow.tools.contains(&ToolRule::ReadCommands) && only_reads(&part.words) {
            return if readable {
                Ok("it only reads".to_owned())
            } else {
                Err("it reads something outside of the project".to_owned())
            };
        }
        if edits && only_makes_files(&part.words) {
            return if in_project {
                Ok("it makes files in the project".to_owned())
            } else {
                Err("it makes a file outside of the project".to_owned())
            };
        }
        if let Some(reason) = self.judge_removal(judged, part) {
            return reason;
        }
        let chooses = |word: &String| chooses_something(program, word);
        if is_alone
            && self.allow.has_tool(judged.agent, judged.call)
            && !hides_what_runs(&part.words)
            && !part.words.iter().skip(1).any(chooses)
            && in_project
        {
            return Ok("the policy allows every command of plain words".to_owned());
        }
        Err(NO_RULE.to_owned())
    }

    /// `None` if no rule is about it.
    fn judge_by_rules(
        &self,
        judged: &JudgedCall<'_>,
        parts: &[CommandPart],
        part: &CommandPart,
        in_scope: bool,
    ) -> Option<PartReason> {
        let words = &part.words;
        if hides_what_runs(words) {
            return None;
        }
        let project = self.project.as_ref();
        let own = self.allow.commands.iter().map(|rule| (rule, false));
        let of_project = project.into_iter().flat_map(|it| &it.commands);
        let rules = own.chain(of_project.map(|rule| (rule, true)));
        let mut problem = None;
        for (rule, is_of_project) in rules {
            let Some(coverage) = rule.coverage(words) else {
                continue;
            };
            let changed = project.and_then(|it| it.changed_file(part.program()));
            match changed.filter(|_| is_of_project) {
                Some(file) => {
                    problem = Some(format!(
                        "{file} has changed; look at it, then run: countersign policy init project"
                    ));
                }
                None if is_of_project && !judged.is_in_root() => {
                    problem = Some("it is allowed in the root of the project only".to_owned());
                }
                None if is_of_project && judged.writes_bound_file(parts) => {
                    problem = Some("the same command changes what it does".to_owned());
                }
                None if coverage == RuleCoverage::Whole || in_scope => {
                    return Some(Ok(format!("the policy allows `{rule}`")));
                }
                None => problem = Some("it names something outside of the project".to_owned()),
            }
        }
        problem.map(Err)
    }

    /// Removal of build output. `None` if it is something else.
    fn judge_removal(&self, judged: &JudgedCall<'_>, part: &CommandPart) -> Option<PartReason> {
        let files = removed(&part.words)?;
        let output = self.project.as_ref().map_or(&[][..], |it| &it.output);
        let is_below = |it: &NamedPath| output.iter().any(|output| it.is_within(output));
        let is_output = |file: &&str| {
            let path = normal(&judged.directory().join(file));
            let mut found = judged.named.iter().filter(|it| it.path == path).peekable();
            found.peek().is_some() && found.all(is_below)
        };
        Some(if files.iter().all(is_output) {
            Ok("it removes build output".to_owned())
        } else {
            Err("it removes something other than build output".to_owned())
        })
    }

    fn judge_tool(&self, judged: &JudgedCall<'_>) -> PartReason {
        if !self.allow.has_tool(judged.agent, judged.call) {
            return Err(NO_RULE.to_owned());
        }
        let in_scope = match &judged.call.action {
            ToolAction::Read => self.all_readable(judged),
            action if action.class() == "edit" => {
                !judged.named.is_empty() && judged.all_in_project()
            }
            _ => true,
        };
        if in_scope {
            Ok("the policy allows such calls".to_owned())
        } else {
            Err("it names something outside of the project".to_owned())
        }
    }

    fn all_readable(&self, judged: &JudgedCall<'_>) -> bool {
        let is_allowed = |it: &NamedPath| self.allow.paths.iter().any(|place| it.is_within(place));
        let mut named = judged.named.iter();
        named.all(|it| it.is_in_project(judged.places) || is_allowed(it))
    }
}

impl JudgedCall<'_> {
    /// Where a command runs, links not followed.
    fn directory(&self) -> PathBuf {
        let own = match &self.call.action {
            ToolAction::Command { directory, .. } => directory.as_deref(),
            _ => None,
        };
        normal(&self.places.directory.join(own.unwrap_or(".")))
    }

    /// Below the root, other files say what commands do.
    fn is_in_root(&self) -> bool {
        let directory = self.directory();
        let mut named = (self.named.iter()).filter(|it| it.path == directory);
        named.all(|it| it.real == self.places.project)
    }

    /// Whether it writes, and names a file that says what commands do, by whatever name.
    fn writes_bound_file(&self, parts: &[CommandPart]) -> bool {
        let is_bound = |path: &Path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(is_bound_file)
        };
        let mut named = self.named.iter();
        parts.iter().any(writes_file) && named.any(|it| is_bound(&it.path) || is_bound(&it.real))
    }

    fn all_in_project(&self) -> bool {
        self.named.iter().all(|it| it.is_in_project(self.places))
    }
}

impl JudgedPart {
    pub(super) fn of(part: String, reason: PartReason) -> Self {
        let is_free = reason.is_ok();
        Self {
            part,
            is_free,
            reason: reason.unwrap_or_else(|reason| reason),
            entry: None,
        }
    }
}

/// The parts of a command. `None` also if it cannot be parsed with certainty.
pub(super) fn certain_parts(call: &ToolCall) -> Option<Vec<CommandPart>> {
    match &call.action {
        ToolAction::Command { command, .. } if !call.has_options() => command_parts(command),
        _ => None,
    }
}

pub(super) fn whole_text(call: &ToolCall) -> String {
    match &call.action {
        ToolAction::Command { command, .. } => command.clone(),
        _ => call.tool.clone(),
    }
}

fn writes_file(part: &CommandPart) -> bool {
    part.writes() || only_makes_files(&part.words)
}
