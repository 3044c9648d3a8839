//! Cursor. Its tools' inputs are not all documented: what has another form than expected is asked about whole.

use serde_json::{Map, Value};

use super::{EventMembers, ReadProblem, call, listed, unknown_event};
use crate::event::{EventKind, HookEvent, ToolAction};

const READING: &[&str] = &[
    "Glob",
    "Grep",
    "LS",
    "Read",
    "ReadLints",
    "SemanticSearch",
    "codebase_search",
    "file_search",
    "grep_search",
    "list_dir",
    "read_file",
];
const WEB: &[&str] = &["Fetch", "WebFetch", "WebSearch", "web_search"];
/// The calls that a subagent makes reach the hook one by one.
const INTERNAL: &[&str] = &["AskQuestion", "Task", "TodoWrite", "todo_write"];

pub fn event(mut members: EventMembers) -> Result<HookEvent, ReadProblem> {
    let name = members.text("hook_event_name")?;
    let session = match members.optional_text("conversation_id")? {
        Some(session) => Some(session),
        None => members.optional_text("session_id")?,
    };
    let directory = directory(&mut members)?;
    let kind = match name.as_str() {
        "preToolUse" => {
            let tool = members.text("tool_name")?;
            let input = members.object_or_text("tool_input")?;
            call(tool, input, action)?
        }
        "beforeShellExecution" => {
            let command = Value::String(members.text("command")?);
            let input = Map::from_iter([("command".to_owned(), command)]);
            call("Shell".to_owned(), input, action)?
        }
        "beforeMCPExecution" => {
            let tool = format!("MCP:{}", members.text("tool_name")?);
            let mut input = members.object_or_text("tool_input")?;
            // Which server it is shows only in how it is reached.
            for name in ["url", "command"] {
                if let Some(text) = members.optional_text(name)? {
                    input.insert(format!("server {name}"), text.into());
                }
            }
            call(tool, input, action)?
        }
        "beforeReadFile" => {
            let path = Value::String(members.text("file_path")?);
            let input = Map::from_iter([("file_path".to_owned(), path)]);
            call("Read".to_owned(), input, action)?
        }
        "sessionStart" => EventKind::SessionStart,
        "sessionEnd" => EventKind::SessionEnd,
        "beforeSubmitPrompt" => EventKind::Prompt,
        "afterAgentResponse"
        | "afterAgentThought"
        | "afterFileEdit"
        | "afterMCPExecution"
        | "afterShellExecution"
        | "postToolUse"
        | "postToolUseFailure"
        | "preCompact"
        | "stop"
        | "subagentStop" => EventKind::Other,
        name => return Err(unknown_event(name)),
    };
    Ok(HookEvent {
        name,
        session,
        turn: None,
        directory,
        kind,
    })
}

/// `cwd` is missing or empty where the first of the workspace's directories is meant.
fn directory(members: &mut EventMembers) -> Result<Option<String>, ReadProblem> {
    let cwd = members.optional_text("cwd")?;
    let roots = members.left.remove("workspace_roots");
    let first = roots.as_ref().and_then(|roots| roots[0].as_str());
    Ok(cwd
        .filter(|cwd| !cwd.is_empty())
        .or_else(|| first.map(str::to_owned)))
}

fn action(tool: &str, input: &mut EventMembers) -> Result<ToolAction, ReadProblem> {
    if let Some(name) = tool.strip_prefix("MCP:") {
        return Ok(ToolAction::Mcp {
            server: None,
            tool: name.to_owned(),
        });
    }
    Ok(match tool {
        "Shell" | "run_terminal_cmd" => ToolAction::Command {
            command: input.text("command")?,
            directory: input.optional_text("working_directory")?,
            background: input.flag("is_background")?,
        },
        "Write" => {
            let path = input.text_of(&["file_path", "path"])?;
            let content = input.text_of(&["content", "contents"])?;
            match (path, content) {
                (Some(path), Some(content)) => ToolAction::Write { path, content },
                _ => ToolAction::Other,
            }
        }
        "Edit" | "StrReplace" => {
            let path = input.text_of(&["file_path", "path"])?;
            let edit = input.replacement("old_string", "new_string", "replace_all");
            match (path, edit) {
                (Some(path), Ok(edit)) => ToolAction::Replace {
                    path,
                    edits: vec![edit],
                },
                _ => ToolAction::Other,
            }
        }
        "Delete" => match input.text_of(&["file_path", "path", "target_file"])? {
            Some(path) => ToolAction::Delete { path },
            None => ToolAction::Other,
        },
        "ApplyPatch" => match input.text_of(&["patch", "input"])? {
            Some(patch) => ToolAction::Patch { patch },
            None => ToolAction::Other,
        },
        tool => listed(tool, READING, WEB, INTERNAL),
    })
}
