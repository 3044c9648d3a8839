//! Claude Code.

use super::{EventMembers, ReadProblem, call, common, listed, mcp, unknown_event};
use crate::event::{CellChange, EventKind, HookEvent, ToolAction};

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

pub fn event(members: EventMembers) -> Result<HookEvent, ReadProblem> {
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

fn action(tool: &str, input: &mut EventMembers) -> Result<ToolAction, ReadProblem> {
    Ok(match tool {
        "Bash" => ToolAction::Command {
            command: input.text("command")?,
            directory: None,
            background: input.flag("run_in_background")?,
        },
        "Write" => ToolAction::Write {
            path: input.text("file_path")?,
            content: input.text("content")?,
        },
        "Edit" => ToolAction::Replace {
            path: input.text("file_path")?,
            edits: vec![input.replacement("old_string", "new_string", "replace_all")?],
        },
        "MultiEdit" => ToolAction::Replace {
            path: input.text("file_path")?,
            edits: (input.list("edits")?.into_iter())
                .map(|mut edit| edit.replacement("old_string", "new_string", "replace_all"))
                .collect::<Result<_, _>>()?,
        },
        "NotebookEdit" => {
            let mode = input.optional_text("edit_mode")?;
            ToolAction::Cell {
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
            Some(text) => ToolAction::Plan { text },
            None => ToolAction::Other,
        },
        tool => mcp(tool).unwrap_or_else(|| listed(tool, READING, WEB, INTERNAL)),
    })
}
