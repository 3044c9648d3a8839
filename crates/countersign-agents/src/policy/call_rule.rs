//! `[[rule]]`: calls that need more than one approval, or the approval of certain people. Every
//! rule that matches counts. A spelling that hides what a call does matches all of them.

use std::collections::BTreeSet;
use std::fmt;

use countersign_client::enforcer::{
    CommentDuty, EscalationDemand, MAX_PARK_SECONDS, RuleDemand, team_name,
};
use countersign_client::shell::CommandPart;
use countersign_client::shell::wrappers::hides_what_runs;
use countersign_protocol::id::{ApproverId, TextId as _};
use serde::Deserialize;
use serde_json::Value;

use super::reading::only_reads;
use super::rule_list::{PolicyTable, RuleList};
use super::tool_rule::ToolRule;
use crate::agent::Agent;
use crate::event::{ToolAction, ToolCall};
use crate::install::shell::parse_duration;
use crate::places::NamedPath;

/// Hooks wait this long. Unless the rule parks, a later step would never be asked.
const MAX_AFTER_SECONDS: u64 = 9 * 60;
/// Of one call, so that its signed outcome stays within its limit.
const MAX_APPROVALS: u32 = 56;
const MAX_PEOPLE: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CallRule {
    pub list: RuleList<Vec<String>>,
    pub demand: RuleDemand,
}

/// A rule as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleTable {
    tools: Option<Vec<String>>,
    #[serde(default)]
    commands: Vec<String>,
    #[serde(default)]
    paths: Vec<String>,
    #[serde(default)]
    from: Vec<String>,
    approvals: Option<u32>,
    rejections: Option<u32>,
    comment: Option<CommentDuty>,
    #[serde(default)]
    separate: bool,
    #[serde(default)]
    escalate: Vec<StepTable>,
    park: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepTable {
    after: String,
    from: Vec<String>,
}

impl RuleTable {
    /// The matchers, and the demand.
    pub fn split(self, is_of_project: bool) -> Result<(PolicyTable, RuleDemand), String> {
        let is_own = !self.escalate.is_empty() || self.rejections.is_some() || self.park.is_some();
        if is_of_project && is_own {
            let problem = "escalate, park and rejections are for policy.toml only";
            return Err(format!("rule: {problem}"));
        }
        let approvals = number("approvals", self.approvals)?;
        let mut demand = RuleDemand::new(approvals, sources(self.from)?);
        demand.rejections = number("rejections", self.rejections)?;
        demand.separate = self.separate;
        demand.comment = self.comment.unwrap_or(CommentDuty::None);
        demand.park_seconds = self.park.map(|text| park_seconds(&text)).transpose()?;
        let parked = demand.park_seconds.unwrap_or_default();
        let end = u64::from(parked).max(MAX_AFTER_SECONDS);
        for step in self.escalate {
            let after = parse_duration(&step.after).map_err(|it| format!("rule: after: {it}"))?;
            let from = sources(step.from)?;
            let before = demand.escalate.last().map_or(0, |step| step.after_seconds);
            let seconds = u32::try_from(after.as_secs()).unwrap_or(u32::MAX);
            if after.as_secs() >= end || seconds <= before || from.is_empty() {
                let problem = "each step needs people, and a time that is longer than the one before and shorter than the 9 minutes that hooks wait, or than park";
                return Err(format!("rule: escalate: {problem}"));
            }
            demand.escalate.push(EscalationDemand {
                after_seconds: seconds,
                from,
            });
        }
        let later = demand.escalate.iter().flat_map(|step| &step.from);
        let asked: BTreeSet<_> = demand.from.iter().chain(later).collect();
        if asked.len() > MAX_PEOPLE {
            return Err(format!("rule: it names more than {MAX_PEOPLE} people"));
        }
        // The members of teams are counted when they are asked.
        let has_team = asked.iter().any(|source| team_name(source).is_some());
        if !demand.from.is_empty() && !has_team && asked.len() < demand.approvals as usize {
            let (needed, named) = (demand.approvals, asked.len());
            return Err(format!(
                "rule: it needs {needed} approvals and names {named} people"
            ));
        }
        let is_option = |command: &&String| command.split(' ').any(|word| word.starts_with('-'));
        if let Some(command) = self.commands.iter().find(is_option) {
            return Err(format!(
                "rule: commands: {command:?}: options can be spelt in many ways; leave them out"
            ));
        }
        let matchers = PolicyTable {
            tools: self.tools,
            commands: self.commands,
            paths: self.paths,
        };
        Ok((matchers, demand))
    }
}

fn number(name: &str, value: Option<u32>) -> Result<u32, String> {
    let value = value.unwrap_or(1);
    let wrong = || format!("rule: {name}: expected a number from 1 to {MAX_APPROVALS}");
    (1..=MAX_APPROVALS)
        .contains(&value)
        .then_some(value)
        .ok_or_else(wrong)
}

fn park_seconds(text: &str) -> Result<u32, String> {
    let time = parse_duration(text).map_err(|it| format!("rule: park: {it}"))?;
    let seconds = u32::try_from(time.as_secs()).ok();
    let seconds = seconds.filter(|seconds| *seconds <= MAX_PARK_SECONDS);
    seconds.ok_or_else(|| "rule: park: at most 24h".to_owned())
}

/// Approvers by their ids, or one team.
fn sources(from: Vec<String>) -> Result<BTreeSet<String>, String> {
    let from: BTreeSet<_> = from.into_iter().collect();
    if from.len() > 1 && from.iter().any(|source| team_name(source).is_some()) {
        let problem = "it names either people or one team; for more, write a rule for each";
        return Err(format!("rule: from: {problem}"));
    }
    let is_source = |source: &&String| match team_name(source) {
        Some(name) => !name.is_empty(),
        None => ApproverId::parse(source).is_some(),
    };
    match from.iter().find(|source| !is_source(source)) {
        Some(other) => Err(format!(
            "rule: from: {other:?} is neither the id of an approver nor team: with the name of a team"
        )),
        None => Ok(from),
    }
}

impl CallRule {
    pub fn new(list: RuleList<Vec<String>>, demand: RuleDemand) -> Result<Self, String> {
        let never = [ToolRule::ReadCommands, ToolRule::Class("question")];
        if list.tools.iter().any(|tool| never.contains(tool)) {
            return Err(
                "rule: tools: \"read.commands\" and \"question\" cannot have a rule".to_owned(),
            );
        }
        Ok(Self { list, demand })
    }

    /// Whether it is about certain calls, and not about every call that is asked.
    pub fn has_matchers(&self) -> bool {
        let list = &self.list;
        !(list.tools.is_empty() && list.commands.is_empty() && list.paths.is_empty())
    }

    /// `parts` are those of a command that can be parsed with certainty. `named` is `None` if it is
    /// unclear which files the call names.
    pub fn matches(
        &self,
        agent: Agent,
        call: &ToolCall,
        parts: Option<&[CommandPart]>,
        named: Option<&[NamedPath]>,
    ) -> bool {
        // An answer to a question permits nothing.
        if matches!(call.action, ToolAction::Question { .. }) {
            return false;
        }
        let list = &self.list;
        if !self.has_matchers() || list.has_tool(agent, call) {
            return true;
        }
        // A tool that nothing is known of may be of any kind.
        let is_unknown = call.action == ToolAction::Other;
        let has_class = |tool: &ToolRule| matches!(tool, ToolRule::Class(_));
        if is_unknown && list.tools.iter().any(has_class) {
            return true;
        }
        let is_unclear = is_unknown
            || match (&call.action, parts) {
                (ToolAction::Command { .. }, Some(parts)) => parts.iter().any(is_hidden),
                (action, _) => matches!(action, ToolAction::Command { .. }),
            };
        let is_named = |words: &[String]| list.commands.iter().any(|it| has_words(words, it));
        let has_command = match parts {
            Some(parts) => parts.iter().any(|part| is_named(&part.words)),
            None if matches!(call.action, ToolAction::Mcp { .. }) => {
                is_named(&texts_in(&Value::Object(call.input.clone())))
            }
            None => false,
        };
        if !list.commands.is_empty() && (is_unclear || has_command) {
            return true;
        }
        let moves = parts.is_some_and(moves_elsewhere);
        let mut paths = list.paths.iter();
        match named {
            Some(named) if !is_unclear && !moves => {
                paths.any(|place| named.iter().any(|it| it.touches(place)))
            }
            _ => paths.next().is_some(),
        }
    }
}

/// Whether it may run something that its words do not show.
fn is_hidden(part: &CommandPart) -> bool {
    let runs_words = |word: &String| {
        let reads = ["/dev/stdin", "/dev/fd/", "/proc/"];
        word.contains("$(") || word.contains('`') || reads.iter().any(|it| word.starts_with(it))
    };
    let words = &part.words;
    !only_reads(words) && (hides_what_runs(words) || words.iter().any(runs_words))
}

/// Whether its relative paths may begin in a directory that no word names.
fn moves_elsewhere(parts: &[CommandPart]) -> bool {
    let changes = |part: &CommandPart| match part.words.as_slice() {
        [program, words @ ..] if ["cd", "chdir", "pushd", "popd"].contains(&program.as_str()) => {
            Some(
                words.is_empty()
                    || words
                        .iter()
                        .any(|word| word == "-" || word.starts_with('+')),
            )
        }
        words => {
            let is_option = |word: &String| {
                let options = ["-C", "--directory", "-chdir", "--chdir"];
                options.iter().any(|option| word.starts_with(option))
            };
            words.iter().any(is_option).then_some(false)
        }
    };
    let climbs = |part: &CommandPart| part.words.iter().any(|word| word.contains(".."));
    let mut changes = parts.iter().filter_map(changes).peekable();
    changes.peek().is_some() && (changes.any(|is_unnamed| is_unnamed) || parts.iter().any(climbs))
}

/// Whether the names in a rule's command stand in these words, in this order. The command may stand in quotes, behind another
/// program, or be spelt as one word, and anything may stand between its names. Only a program that just reads may have them in
/// its words, unless the rule is about that program.
fn has_words(words: &[String], rule: &[String]) -> bool {
    let program = |words: &[String]| {
        let name = words.first().and_then(|word| word.rsplit('/').next());
        name.and_then(|name| names_in(name).next())
    };
    if only_reads(words) && program(words) != program(rule) {
        return false;
    }
    let mut found = words.iter().flat_map(|word| names_in(word));
    let mut wanted = rule.iter().flat_map(|word| names_in(word));
    wanted.all(|name| found.any(|it| it == name))
}

/// All texts of an input, behind an empty word: the first of them is no program.
fn texts_in(value: &Value) -> Vec<String> {
    let inner = |value: &Value| texts_in(value).into_iter().skip(1).collect::<Vec<_>>();
    let texts = match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(list) => list.iter().flat_map(inner).collect(),
        Value::Object(object) => object.values().flat_map(inner).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    };
    std::iter::once(String::new()).chain(texts).collect()
}

/// The names in a text, without case, versions and `.exe`.
fn names_in(text: &str) -> impl Iterator<Item = String> {
    let names = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.');
    let names = names.map(|name| {
        let name = name.to_lowercase();
        let name = name.strip_suffix(".exe").unwrap_or(&name);
        let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        plain.to_owned()
    });
    names.filter(|name| !name.is_empty())
}

/// One line for people.
impl fmt::Display for CallRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let demand = &self.demand;
        let people = |from: &BTreeSet<String>| match from.iter().cloned().collect::<Vec<_>>() {
            from if from.is_empty() => "everyone who is paired, or else the paired team".to_owned(),
            from => from.join(", "),
        };
        let noun = if demand.approvals == 1 {
            "approval"
        } else {
            "approvals"
        };
        write!(
            f,
            "{} {noun} from {}",
            demand.approvals,
            people(&demand.from)
        )?;
        for step in &demand.escalate {
            write!(
                f,
                ", after {} s also {}",
                step.after_seconds,
                people(&step.from)
            )?;
        }
        if demand.rejections > 1 {
            write!(f, "; {} rejections end it", demand.rejections)?;
        }
        if demand.comment != CommentDuty::None {
            write!(f, "; comment: {}", demand.comment.as_str())?;
        }
        if demand.separate {
            f.write_str("; not by people who work with the agent")?;
        }
        if let Some(seconds) = demand.park_seconds {
            write!(f, "; open for {seconds} s, also after the call")?;
        }
        Ok(())
    }
}
