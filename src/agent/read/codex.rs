//! Codex CLI. It reads files with commands, so few of its tools only read.

use super::{Members, Problem, call, common, listed, mcp, unknown_event};
use crate::agent::event::{Action, Event, EventKind};

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
        "Interrupt" | "Stop" => Ok(EventKind::TurnEnd),
        "PostCompact" | "PostToolUse" | "PreCompact" | "SubagentStart" | "SubagentStop" => {
            Ok(EventKind::Other)
        }
        name => Err(unknown_event(name)),
    })
}

fn action(tool: &str, input: &mut Members) -> Result<Action, Problem> {
    Ok(match tool {
        "Bash" => Action::Command {
            command: input.text("command")?,
            directory: None,
            background: false,
        },
        "apply_patch" => Action::Patch {
            patch: input.text("command")?,
        },
        tool => mcp(tool).unwrap_or_else(|| listed(tool, READING, WEB, INTERNAL)),
    })
}
