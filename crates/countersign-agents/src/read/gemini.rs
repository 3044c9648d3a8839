//! Gemini CLI.

use super::{EventMembers, ReadProblem, call, common, listed, unknown_event};
use crate::event::{EventKind, HookEvent, MatchCount, TextReplacement, ToolAction};

const READING: &[&str] = &[
    "get_internal_docs",
    "glob",
    "grep_search",
    "list_directory",
    "read_file",
    "read_many_files",
    "search_file_content",
];
const WEB: &[&str] = &["google_web_search", "web_fetch"];
const INTERNAL: &[&str] = &[
    "activate_skill",
    "ask_user",
    "complete_task",
    "enter_plan_mode",
    "update_topic",
    "write_todos",
];

pub fn event(members: EventMembers) -> Result<HookEvent, ReadProblem> {
    common(members, |name, members| match name {
        "BeforeTool" => {
            let tool = members.text("tool_name")?;
            let input = members.object("tool_input")?;
            let mcp = if members.left.contains_key("mcp_context") {
                Some(server_and_tool(members)?)
            } else {
                None
            };
            call(tool, input, |tool, input| match mcp {
                Some(mcp) => Ok(mcp),
                None => action(tool, input),
            })
        }
        "SessionStart" => Ok(EventKind::SessionStart),
        "SessionEnd" => Ok(EventKind::SessionEnd),
        "BeforeAgent" => Ok(EventKind::Prompt),
        "AfterAgent"
        | "AfterModel"
        | "AfterTool"
        | "BeforeModel"
        | "BeforeToolSelection"
        | "Notification"
        | "PreCompress" => Ok(EventKind::Other),
        name => Err(unknown_event(name)),
    })
}

fn server_and_tool(members: &mut EventMembers) -> Result<ToolAction, ReadProblem> {
    let context = members.object("mcp_context")?;
    let mut context = EventMembers::new("mcp_context.", context);
    Ok(ToolAction::Mcp {
        server: Some(context.text("server_name")?),
        tool: context.text("tool_name")?,
    })
}

fn action(tool: &str, input: &mut EventMembers) -> Result<ToolAction, ReadProblem> {
    Ok(match tool {
        "run_shell_command" => ToolAction::Command {
            command: input.text("command")?,
            directory: input.text_of(&["dir_path", "directory"])?,
            background: input.flag("is_background")?,
        },
        "write_file" => ToolAction::Write {
            path: input.text("file_path")?,
            content: input.text("content")?,
        },
        "replace" => {
            let (all, expected) = (
                input.flag("allow_multiple")?,
                input.number("expected_replacements")?,
            );
            ToolAction::Replace {
                path: input.text("file_path")?,
                edits: vec![TextReplacement {
                    old: input.text("old_string")?,
                    new: input.text("new_string")?,
                    occurrences: match (all, expected) {
                        (true, _) => MatchCount::All,
                        (false, Some(count)) => MatchCount::Exactly(count),
                        (false, None) => MatchCount::One,
                    },
                }],
            }
        }
        tool => listed(tool, READING, WEB, INTERNAL),
    })
}
