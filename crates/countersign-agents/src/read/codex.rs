//! Codex CLI. It reads files with commands, so few of its tools only read.

use super::{EventMembers, ReadProblem, call, common, listed, mcp, unknown_event};
use crate::event::{EventKind, HookEvent, ToolAction};

const READING: &[&str] = &["grep_files", "list_dir", "read_file", "view_image"];
const WEB: &[&str] = &["web_search"];
/// The calls that a subagent makes reach the hook one by one.
const INTERNAL: &[&str] = &[
    "collaborationspawn_agent",
    "collaborationwait",
    "collaborationwait_agent",
    "spawn_agent",
    "update_plan",
    "wait",
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
        "Interrupt" | "Stop" => Ok(EventKind::TurnEnd),
        "PostCompact" | "PostToolUse" | "PreCompact" | "SubagentStart" | "SubagentStop" => {
            Ok(EventKind::Other)
        }
        name => Err(unknown_event(name)),
    })
}

fn action(tool: &str, input: &mut EventMembers) -> Result<ToolAction, ReadProblem> {
    Ok(match tool {
        "Bash" => ToolAction::Command {
            command: input.text("command")?,
            directory: None,
            background: false,
        },
        "apply_patch" => ToolAction::Patch {
            patch: input.text("command")?,
        },
        tool => mcp(tool).unwrap_or_else(|| listed(tool, READING, WEB, INTERNAL)),
    })
}
