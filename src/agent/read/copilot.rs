//! Copilot CLI. It does not name the event: which one it is shows in the members.

use super::{Members, Problem, call, listed};
use crate::agent::event::{Action, Event, EventKind};

const READING: &[&str] = &[
    "fetch_copilot_cli_documentation",
    "glob",
    "grep",
    "list_agents",
    "list_bash",
    "read_agent",
    "read_bash",
    "rg",
    "view",
];
const WEB: &[&str] = &["web_fetch", "web_search"];
/// The calls that a subagent makes reach the hook one by one.
const INTERNAL: &[&str] = &[
    "ask_user",
    "report_intent",
    "skill",
    "stop_bash",
    "task",
    "task_complete",
    "update_todo",
];

pub fn event(mut members: Members) -> Result<Event, Problem> {
    let session = members.optional_text("sessionId")?;
    let directory = members.optional_text("cwd")?;
    let has = |name: &str| members.left.contains_key(name);
    let name = match () {
        () if has("toolResult") || has("toolError") => "postToolUse",
        () if has("hookName") => "permissionRequest",
        () if has("toolName") => "preToolUse",
        // `sessionStart` may have a prompt too.
        () if has("source") => "sessionStart",
        () if has("prompt") => "userPromptSubmitted",
        () if has("stopReason") => "agentStop",
        () if has("reason") => "sessionEnd",
        () if has("error") => "errorOccurred",
        () => {
            return Err("none of its members tells which event it is; update countersign".into());
        }
    };
    let kind = match name {
        "preToolUse" => {
            let tool = members.text("toolName")?;
            let input = members.object_or_text("toolArgs")?;
            call(tool, input, action)?
        }
        "sessionStart" => EventKind::SessionStart,
        "sessionEnd" => EventKind::SessionEnd,
        "userPromptSubmitted" => EventKind::Prompt,
        "permissionRequest" => return Err(super::unknown_event(name)),
        _ => EventKind::Other,
    };
    Ok(Event {
        name: name.to_owned(),
        session,
        turn: None,
        directory,
        kind,
    })
}

fn action(tool: &str, input: &mut Members) -> Result<Action, Problem> {
    Ok(match tool {
        "bash" => Action::Command {
            command: input.text("command")?,
            directory: None,
            background: match input.optional_text("mode")?.as_deref() {
                None | Some("sync") => false,
                Some("async") => true,
                Some(_) => return Err(input.expected("mode", "sync or async")),
            },
        },
        "create" => Action::Write {
            path: input.text("path")?,
            content: input.optional_text("file_text")?.unwrap_or_default(),
        },
        "edit" => Action::Replace {
            path: input.text("path")?,
            edits: vec![input.replacement("old_str", "new_str", "replace_all")?],
        },
        "apply_patch" => Action::Patch {
            patch: (input.text_of(&["patch", "input", "command"])?)
                .ok_or_else(|| input.expected("patch", "a text"))?,
        },
        // With another server's tools, whose names have the server's before a dash, it may be anything.
        tool => listed(tool, READING, WEB, INTERNAL),
    })
}
