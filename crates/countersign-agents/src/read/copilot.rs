//! Copilot CLI. It does not name the event: which one it is shows in the members.

use super::{EventMembers, ReadProblem, call, listed};
use crate::event::{EventKind, HookEvent, ToolAction};

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

pub fn event(mut members: EventMembers) -> Result<HookEvent, ReadProblem> {
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
    Ok(HookEvent {
        name: name.to_owned(),
        session,
        turn: None,
        directory,
        kind,
    })
}

fn action(tool: &str, input: &mut EventMembers) -> Result<ToolAction, ReadProblem> {
    Ok(match tool {
        "bash" => ToolAction::Command {
            command: input.text("command")?,
            directory: None,
            background: match input.optional_text("mode")?.as_deref() {
                None | Some("sync") => false,
                Some("async") => true,
                Some(_) => return Err(input.expected("mode", "sync or async")),
            },
        },
        "create" => ToolAction::Write {
            path: input.text("path")?,
            content: input.optional_text("file_text")?.unwrap_or_default(),
        },
        "edit" => ToolAction::Replace {
            path: input.text("path")?,
            edits: vec![input.replacement("old_str", "new_str", "replace_all")?],
        },
        "apply_patch" => ToolAction::Patch {
            patch: (input.text_of(&["patch", "input", "command"])?)
                .ok_or_else(|| input.expected("patch", "a text"))?,
        },
        // With another server's tools, whose names have the server's before a dash, it may be anything.
        tool => listed(tool, READING, WEB, INTERNAL),
    })
}
