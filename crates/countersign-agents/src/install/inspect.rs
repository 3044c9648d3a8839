//! Our hook in the settings that an agent reads: whether it is there, and whether it is complete.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::file;
use super::hooks::{BlockMember, FoundHook, HookForm};
use super::places::InstallScope;
use super::shell::{AGENT_SECONDS, command_of, program_of, timeout_of};
use crate::edit::json::JsonDocument;

/// Larger ones overflow in Node.js, and the hook is given up at once.
const LARGEST_MILLISECONDS: f64 = 2_147_483_647.0;

/// Our hook, where it was found.
pub struct InstalledHook {
    pub scope: InstallScope,
    pub path: PathBuf,
    /// For a call, as a shell runs it.
    pub command: String,
    /// With one of these the call would happen unasked, or would never be allowed.
    pub problems: Vec<String>,
}

/// A file of the agent's, as a text or as a value.
pub struct SettingsFile<T> {
    pub scope: InstallScope,
    pub path: PathBuf,
    pub content: T,
}

#[derive(Default)]
pub struct AgentConfiguration {
    pub settings: Vec<SettingsFile<Value>>,
    /// Files that the agent cannot read either.
    pub malformed: Vec<String>,
    pub installed: Vec<InstalledHook>,
}

impl AgentConfiguration {
    /// Whether our hook is in the settings for everybody.
    pub fn is_managed(&self) -> bool {
        let mut installed = self.installed.iter();
        installed.any(|found| found.scope == InstallScope::Managed)
    }

    /// The settings for everybody.
    pub fn managed(&self) -> Option<&SettingsFile<Value>> {
        let mut settings = self.settings.iter();
        settings.find(|settings| settings.scope == InstallScope::Managed)
    }
}

/// JSON with comments and trailing commas.
pub fn json(text: &str) -> Result<Value, String> {
    let document = JsonDocument::parse(text).and_then(|document| document.value());
    document.map_err(|error| error.to_string())
}

/// Whether a file has `disableAllHooks`, if it is there and can be read.
pub fn disables_hooks(path: &Path) -> bool {
    let text = file::read(path).ok().flatten();
    let value = text.and_then(|text| json(&text).ok());
    value.is_some_and(|value| value["disableAllHooks"] == true)
}

impl HookForm {
    /// Looks for our hooks in a file.
    pub fn inspect(
        &self,
        file: &SettingsFile<String>,
        configuration: &mut AgentConfiguration,
    ) -> Result<(), String> {
        self.inspect_value(file, json(&file.content)?, configuration, |_, _| None);
        Ok(())
    }

    /// Of our entries for a call the best one counts. `further` finds a problem that only this
    /// agent knows.
    pub fn inspect_value(
        &self,
        file: &SettingsFile<String>,
        settings: Value,
        configuration: &mut AgentConfiguration,
        further: impl Fn(&Value, &FoundHook) -> Option<String>,
    ) {
        let (scope, path) = (file.scope, &file.path);
        let ours = self.find(&settings).into_iter();
        let ours = ours.filter(|found| found.event == self.call);
        let ours = ours.filter_map(|found| {
            let element = found.element(&settings);
            let hook = match &element["hooks"] {
                Value::Array(hooks) => hooks.get(found.inner.unwrap_or_default())?,
                _ => element,
            };
            let command = command_of(hook)?;
            let mut problems = self.problems(element, hook, &command);
            problems.extend(further(&settings, &found));
            Some(InstalledHook {
                scope,
                path: path.clone(),
                command,
                problems,
            })
        });
        let best = ours.min_by_key(|installed| installed.problems.len());
        configuration.installed.extend(best);
        configuration.settings.push(SettingsFile {
            scope,
            path: path.clone(),
            content: settings,
        });
    }

    fn problems(&self, element: &Value, hook: &Value, command: &str) -> Vec<String> {
        let mut problems = Vec::new();
        let matcher = &element["matcher"];
        let is_for_all = matcher.is_null() || ["", "*", ".*"].iter().any(|all| matcher == all);
        if !is_for_all {
            problems.push(format!("it is called only for the tools {matcher}"));
        }
        problems.extend(self.timeout_problem(&hook[self.timeout], command));
        let has_guard = command.contains("||") && command.contains("exit 2");
        let block = self.block.as_ref().map(|it| (it, (it.value)()));
        let blocks = |it: &BlockMember, value: &Value| hook[it.name] == *value;
        let is_covered = block
            .as_ref()
            .is_some_and(|(it, value)| it.is_enough && blocks(it, value));
        if !has_guard && !is_covered {
            let problem = "the command has no fallback: if the hook is killed, the call goes ahead";
            problems.push(problem.to_owned());
        }
        if let Some((it, value)) = block.filter(|(it, value)| !blocks(it, value)) {
            let name = it.name;
            problems.push(format!(
                "{name} is not {value}: if the hook fails, the call may go ahead"
            ));
        }
        problems.extend(program_of(self.agent, command).and_then(|program| unusable(&program)));
        problems
    }

    fn timeout_problem(&self, value: &Value, command: &str) -> Option<String> {
        let name = self.timeout;
        let Some(number) = value.as_f64() else {
            return Some(format!(
                "it has no {name}, and the agent's default may be too short"
            ));
        };
        let time = number * f64::from(self.unit_milliseconds);
        let deadline = timeout_of(command).as_secs_f64();
        if time <= deadline * 1e3 || time > LARGEST_MILLISECONDS {
            return Some(format!(
                "its {name} is {value}, but must be longer than the hook's own deadline of {deadline} s, and not huge"
            ));
        }
        let installed = Duration::from_secs(AGENT_SECONDS).as_secs_f64() * 1e3;
        (time < installed).then(|| {
            format!(
                "its {name} is {value}: an agent that is suspended for longer runs the call when it resumes"
            )
        })
    }
}

/// Why a program cannot be the hook.
pub fn unusable(program: &Path) -> Option<String> {
    let shown = program.display();
    if !program.is_absolute() {
        return Some(format!(
            "{shown} is not an absolute path, so the agent decides which program runs"
        ));
    }
    match program.metadata() {
        Ok(metadata) if metadata.permissions().mode() & 0o111 == 0 => Some(format!(
            "{shown} is not executable, so every call is denied"
        )),
        Ok(_) => None,
        Err(error) => Some(format!("{shown}: {error}, so every call is denied")),
    }
}
