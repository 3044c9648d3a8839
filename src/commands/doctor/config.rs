//! Our hook in the configuration that an agent reads: whether it is there, and whether it is complete.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use countersign::agent::Agent;
use countersign::agent::edit::json::Document;
use serde_json::Value;

use crate::commands::install::file;
use crate::commands::install::hooks;
use crate::commands::install::place::{InstallPlaces, InstallScope};
use crate::commands::install::shell::{AGENT_SECONDS, HOOK_TIMEOUT, command_of, program_of, words};
use crate::commands::install::{codex, codex_managed, opencode};
use crate::commands::terminal::parse_duration;

/// Larger ones overflow in Node.js, and the hook is given up at once.
const LARGEST_MILLISECONDS: f64 = 2_147_483_647.0;
const SCOPES: [InstallScope; 3] = [
    InstallScope::Managed,
    InstallScope::User,
    InstallScope::Project,
];

/// How an agent's configuration says what our hook needs.
struct ConfigForm {
    event: &'static str,
    timeout: &'static str,
    milliseconds: f64,
    /// The member that makes a failure block, and its value.
    blocks: Option<(&'static str, Value)>,
}

fn form(agent: Agent) -> ConfigForm {
    let form = |event, timeout, milliseconds, blocks| ConfigForm {
        event,
        timeout,
        milliseconds,
        blocks,
    };
    match agent {
        Agent::Claude => form(
            "PreToolUse",
            "timeout",
            1e3,
            Some(("onFailure", "block".into())),
        ),
        Agent::Codex => form("PreToolUse", "timeout", 1e3, None),
        Agent::Copilot => form("preToolUse", "timeoutSec", 1e3, None),
        Agent::Gemini => form("BeforeTool", "timeout", 1.0, None),
        Agent::Cursor => form(
            "preToolUse",
            "timeout",
            1e3,
            Some(("failClosed", true.into())),
        ),
        Agent::Opencode => form("", "", 1.0, None),
    }
}

/// Our hook, where it was found.
pub struct InstalledHook {
    pub scope: InstallScope,
    pub path: PathBuf,
    /// For a call; what a shell runs.
    pub command: String,
    /// What is wrong with it. The call would happen unasked, or would never be allowed.
    pub problems: Vec<String>,
}

/// A file of the agent's.
pub struct SettingsFile {
    pub scope: InstallScope,
    pub path: PathBuf,
    pub value: Value,
}

#[derive(Default)]
pub struct AgentConfiguration {
    pub settings: Vec<SettingsFile>,
    /// Files that the agent cannot read either.
    pub malformed: Vec<String>,
    pub installed: Vec<InstalledHook>,
}

pub fn path(agent: Agent, scope: InstallScope, places: &InstallPlaces) -> Option<PathBuf> {
    Some(match agent {
        Agent::Claude => places.claude(scope),
        Agent::Codex => places.codex(scope),
        Agent::Copilot => places.copilot(scope),
        Agent::Gemini => places.gemini(scope),
        Agent::Opencode => return places.opencode(scope),
        Agent::Cursor => places.cursor(scope),
    })
}

pub fn read(agent: Agent, places: &InstallPlaces) -> AgentConfiguration {
    let mut found = AgentConfiguration::default();
    for scope in SCOPES {
        let Some(path) = path(agent, scope, places) else {
            continue;
        };
        let text = match file::read(&path) {
            Ok(Some(text)) => text,
            Ok(None) => continue,
            Err(error) => {
                found.malformed.push(error.to_string());
                continue;
            }
        };
        if agent == Agent::Opencode {
            found.installed.extend(plugin(scope, path, &text));
            continue;
        }
        match parse(agent, scope, &text) {
            Ok(value) => {
                found
                    .installed
                    .extend(installed(agent, scope, &path, &value, places));
                found.settings.push(SettingsFile { scope, path, value });
            }
            Err(error) => found.malformed.push(format!("{}, {error}", path.display())),
        }
    }
    found
}

fn parse(agent: Agent, scope: InstallScope, text: &str) -> Result<Value, String> {
    if agent == Agent::Codex {
        return match scope {
            InstallScope::Managed => codex_managed::value(text),
            // It takes no comments.
            InstallScope::User | InstallScope::Project => {
                serde_json::from_str(text).map_err(|error| error.to_string())
            }
        };
    }
    let document = Document::parse(text).and_then(|document| document.value());
    document.map_err(|error| error.to_string())
}

/// The best of our entries for a call: others do not matter.
fn installed(
    agent: Agent,
    scope: InstallScope,
    path: &Path,
    settings: &Value,
    places: &InstallPlaces,
) -> Option<InstalledHook> {
    let form = form(agent);
    let ours = hooks::find(agent, settings).into_iter();
    let ours = ours.filter(|found| found.event == form.event);
    let mut all: Vec<InstalledHook> = ours
        .filter_map(|found| {
            let element = found.element(settings);
            let hook = match (&element["hooks"], found.inner) {
                (Value::Array(hooks), inner) => hooks.get(inner.unwrap_or_default())?,
                _ => element,
            };
            let command = command_of(hook)?;
            let mut problems = problems(agent, &form, element, hook, &command);
            if agent == Agent::Codex && scope != InstallScope::Managed {
                problems.extend(codex::distrust(path, settings, &found, places));
            }
            Some(InstalledHook {
                scope,
                path: path.to_owned(),
                command,
                problems,
            })
        })
        .collect();
    all.sort_by_key(|installed| installed.problems.len());
    all.into_iter().next()
}

fn problems(
    agent: Agent,
    form: &ConfigForm,
    element: &Value,
    hook: &Value,
    command: &str,
) -> Vec<String> {
    let mut problems = Vec::new();
    let matcher = &element["matcher"];
    let all = matcher.is_null() || ["", "*", ".*"].iter().any(|all| matcher == all);
    if !all {
        problems.push(format!("it is called for the tools {matcher} only"));
    }
    let milliseconds = hook[form.timeout]
        .as_f64()
        .map(|number| number * form.milliseconds);
    let deadline = deadline(command);
    let installed = Duration::from_secs(AGENT_SECONDS).as_secs_f64() * 1e3;
    match milliseconds {
        Some(time) if time > deadline && (installed..=LARGEST_MILLISECONDS).contains(&time) => {}
        Some(time) if time > deadline && time < installed => problems.push(format!(
            "its {} is {}: an agent that is suspended for longer runs the call when it goes on",
            form.timeout,
            hook[form.timeout],
        )),
        Some(_) => problems.push(format!(
            "its {} is {}, which must be more than the {} s of the hook's own deadline, and not huge",
            form.timeout,
            hook[form.timeout],
            deadline / 1e3
        )),
        None => problems.push(format!("it has no {}, and the agent's own may be too short", form.timeout)),
    }
    let guarded = command.contains("||") && command.contains("exit 2");
    let blocks = form
        .blocks
        .as_ref()
        .is_some_and(|(name, value)| hook[*name] == *value);
    let covered = guarded || (blocks && agent == Agent::Claude);
    if !covered {
        problems
            .push("the command has no guard: if the hook is killed, the call happens".to_owned());
    }
    if let (Some((name, value)), false) = (&form.blocks, blocks) {
        problems.push(format!(
            "{name} is not {value}: if the hook fails, the call may happen"
        ));
    }
    problems.extend(program_of(agent, command).and_then(|program| unusable(&program)));
    problems
}

/// The hook's own, in milliseconds.
fn deadline(command: &str) -> f64 {
    let words = words(command);
    let given = words.iter().position(|word| word == "--timeout");
    let given = given.and_then(|index| words.get(index + 1));
    let time = parse_duration(given.map_or(HOOK_TIMEOUT, String::as_str));
    time.map_or(0.0, |time| time.as_secs_f64() * 1e3)
}

fn unusable(program: &Path) -> Option<String> {
    let shown = program.display();
    if !program.is_absolute() {
        return Some(format!(
            "{shown} is not an absolute path: which program runs depends on the agent"
        ));
    }
    match program.metadata() {
        Ok(metadata) if metadata.permissions().mode() & 0o111 == 0 => Some(format!(
            "{shown} is not executable, so every call is denied"
        )),
        Ok(_) => None,
        Err(error) => Some(format!("{shown}: {error}; so every call is denied")),
    }
}

/// Our plugin for opencode.
fn plugin(scope: InstallScope, path: PathBuf, text: &str) -> Option<InstalledHook> {
    let plugin = opencode::InstalledPlugin::read(text)?;
    let mut problems: Vec<_> = unusable(&plugin.program).into_iter().collect();
    if !plugin.is_current {
        problems.push("it was written by another version, or changed".to_owned());
    }
    Some(InstalledHook {
        scope,
        path,
        command: plugin.command,
        problems,
    })
}
