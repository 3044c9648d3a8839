//! The rules about a request that is not a tool call of an agent: of `run`, `ask` and MCP, and of a
//! guard's caller. It is judged by its payload, which people are shown.

use std::path::{Path, PathBuf};

use countersign_client::enforcer::RuleDemand;
use countersign_client::profile::ProfileFile;
use serde_json::{Map, Value};

use crate::agent::Agent;
use crate::event::{ToolAction, ToolCall};
use crate::files::{self, OwnPolicy};
use crate::places::{NamedPath, WorkDirectories, normal};
use crate::policy::HookPolicy;

/// By the policy that holds in `directory`. An error is why the request is denied.
pub fn demands_here(
    payload: &Map<String, Value>,
    directory: &str,
    file: &ProfileFile,
    own_policy: &OwnPolicy,
) -> Result<Vec<RuleDemand>, String> {
    let places = files::work_directories(directory, file)?;
    let policy = files::policy(&places, own_policy)?;
    let (agent, call) = call(payload);
    let names = names(&call, payload);
    let named = names.and_then(|names| files::named(&places, &names));
    Ok(policy.demands(agent, &call, named.as_deref()))
}

/// By the user's policy alone, without a look at files: a guard may not read those of its caller,
/// who has judged the call with them. `home` is the caller's.
pub fn demands_unseen(
    payload: &Map<String, Value>,
    home: Option<PathBuf>,
    file: &ProfileFile,
    own_policy: &OwnPolicy,
) -> Result<Vec<RuleDemand>, String> {
    let Some(text) = &own_policy.text else {
        return Ok(Vec::new());
    };
    let directory = payload.get("directory").and_then(Value::as_str);
    let directory = Path::new("/").join(directory.unwrap_or_default());
    let places = WorkDirectories {
        project: directory.clone(),
        directory,
        home,
        own: file.path().to_owned(),
        program: None,
        moved: Vec::new(),
    };
    let policy = HookPolicy::parse(text, &places);
    let policy = policy.map_err(|problem| format!("{}: {problem}", own_policy.source))?;
    let (agent, call) = call(payload);
    let named = names(&call, payload).map(|names| {
        let paths = names.iter().flat_map(|name| places.readings(name));
        let named = paths.map(|path| NamedPath {
            path: normal(&path),
            real: normal(&path),
        });
        named.collect::<Vec<_>>()
    });
    Ok(policy.demands(agent, &call, named.as_deref()))
}

/// The call that a payload shows. A payload of an unknown form is a tool that nothing is known of.
fn call(payload: &Map<String, Value>) -> (Agent, ToolCall) {
    let text = |name: &str| payload.get(name).and_then(Value::as_str);
    let object = |name: &str| payload.get(name).and_then(Value::as_object).cloned();
    let has = |names: &[&str]| names.iter().any(|name| payload.contains_key(*name));
    let action = match text("kind") {
        // It cannot be said which of the two runs.
        Some("command") if has(&["command"]) && has(&["argv"]) => ToolAction::Other,
        Some("command") => ToolAction::Command {
            command: text("command").map_or_else(|| written(payload), str::to_owned),
            directory: text("directory").map(str::to_owned),
            background: false,
        },
        Some("patch") => ToolAction::Patch {
            patch: text("patch").unwrap_or_default().to_owned(),
        },
        Some("plan") => ToolAction::Plan {
            text: text("text").unwrap_or_default().to_owned(),
        },
        Some("question") if is_question(payload) => ToolAction::Question {
            questions: Vec::new(),
        },
        _ => match object("mcp") {
            Some(mcp) => {
                let member = |name: &str| mcp.get(name).and_then(Value::as_str).map(str::to_owned);
                ToolAction::Mcp {
                    server: member("server"),
                    tool: member("tool").unwrap_or_default(),
                }
            }
            None => ToolAction::Other,
        },
    };
    let agent = text("agent").and_then(|name| name.parse().ok());
    let call = ToolCall {
        tool: text("tool").unwrap_or("countersign").to_owned(),
        input: object("input").unwrap_or_else(|| payload.clone()),
        rest: object("options").unwrap_or_default(),
        action,
    };
    (agent.unwrap_or(Agent::Claude), call)
}

/// Whether it only asks: what shows a call beside its questions is none.
fn is_question(payload: &Map<String, Value>) -> bool {
    let questions = payload.get("questions").and_then(Value::as_array);
    let acts = [
        "argv", "command", "files", "input", "mcp", "patch", "program", "text",
    ];
    questions.is_some_and(|questions| !questions.is_empty())
        && !acts.iter().any(|name| payload.contains_key(*name))
}

/// The words of a command as a shell would read them.
fn written(payload: &Map<String, Value>) -> String {
    let words = payload.get("argv").and_then(Value::as_array);
    let words = words.into_iter().flatten().filter_map(Value::as_str);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,@+=".contains(c);
    let words = words.map(|word| {
        if word.chars().all(is_plain) && !word.is_empty() {
            word.to_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// `None` if it is unclear which files it names.
fn names(call: &ToolCall, payload: &Map<String, Value>) -> Option<Vec<String>> {
    if !matches!(call.action, ToolAction::Patch { .. }) {
        return call.named_paths();
    }
    let files = payload.get("files")?.as_array()?.iter();
    let paths = files.flat_map(|file| [file.get("path"), file.get("realPath")]);
    let paths = paths.flatten().map(|path| path.as_str().map(str::to_owned));
    let paths: Vec<_> = paths.collect::<Option<_>>()?;
    (!paths.is_empty()).then_some(paths)
}
