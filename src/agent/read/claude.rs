//! Claude Code.

use super::{Members, Problem, call, common, listed, mcp, unknown_event};
use crate::agent::event::{Action, CellChange, Event, EventKind};

const READING: &[&str] = &[
    "BashOutput",
    "Glob",
    "Grep",
    "LS",
    "LSP",
    "ListMcpResourcesTool",
    "NotebookRead",
    "Read",
    "TaskOutput",
    "ToolSearch",
];
const WEB: &[&str] = &["WebFetch", "WebSearch"];
/// The calls that a subagent makes reach the hook one by one.
const INTERNAL: &[&str] = &[
    "Agent",
    "AskUserQuestion",
    "EnterPlanMode",
    "KillShell",
    "StructuredOutput",
    "Task",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskStop",
    "TaskUpdate",
    "TodoRead",
    "TodoWrite",
];

pub fn event(members: Members) -> Result<Event, Problem> {
    common(members, |name, members| match name {
        "PreToolUse" => {
            let tool = members.text("tool_name")?;
            let input = members.object("tool_input")?;
            call(tool, input, action)
        }
        "SessionStart" => Ok(EventKind::SessionStart),
        "SessionEnd" => Ok(EventKind::SessionEnd),
        "UserPromptSubmit" => Ok(EventKind::Prompt),
        "Notification" | "PostToolUse" | "PostToolUseFailure" | "PreCompact" | "Stop"
        | "SubagentStart" | "SubagentStop" => Ok(EventKind::Other),
        name => Err(unknown_event(name)),
    })
}

fn action(tool: &str, input: &mut Members) -> Result<Action, Problem> {
    Ok(match tool {
        "Bash" => Action::Command {
            command: input.text("command")?,
            directory: None,
            background: input.flag("run_in_background")?,
        },
        "Write" => Action::Write {
            path: input.text("file_path")?,
            content: input.text("content")?,
        },
        "Edit" => Action::Replace {
            path: input.text("file_path")?,
            edits: vec![input.replacement("old_string", "new_string", "replace_all")?],
        },
        "MultiEdit" => Action::Replace {
            path: input.text("file_path")?,
            edits: (input.list("edits")?.into_iter())
                .map(|mut edit| edit.replacement("old_string", "new_string", "replace_all"))
                .collect::<Result<_, _>>()?,
        },
        "NotebookEdit" => {
            let mode = input.optional_text("edit_mode")?;
            Action::Cell {
                path: input.text("notebook_path")?,
                cell: input.optional_text("cell_id")?,
                change: match mode.as_deref() {
                    None | Some("replace") => CellChange::Replace,
                    Some("insert") => CellChange::Insert,
                    Some("delete") => CellChange::Delete,
                    Some(_) => {
                        return Err(input.expected("edit_mode", "replace, insert or delete"));
                    }
                },
                source: input.optional_text("new_source")?.unwrap_or_default(),
            }
        }
        "ExitPlanMode" => match input.optional_text("plan")? {
            Some(text) => Action::Plan { text },
            None => Action::Other,
        },
        tool => mcp(tool).unwrap_or_else(|| listed(tool, READING, WEB, INTERNAL)),
    })
}
