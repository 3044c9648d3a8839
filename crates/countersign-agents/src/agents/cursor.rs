//! Cursor: `hooks.json`. Its format is taken from its documentation; it was not tried with the
//! program itself. Not all inputs of its tools are documented: an input of another form than
//! expected is asked about whole.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::definition::{AgentDefinition, KnownHole, OTHER_HOOKS};
use crate::event::{EventKind, HookEvent, ToolAction};
use crate::install::hooks::{BlockMember, HookForm, VERSION_1};
use crate::install::places::{InstallPlaces, InstallScope};
use crate::install::shell::SESSION_SECONDS;
use crate::members::{EventMembers, EventTable, ReadProblem, ToolTable, call};
use crate::question::question;

pub static CURSOR: AgentDefinition = AgentDefinition {
    name: "cursor",
    title: "Cursor",
    programs: &["cursor-agent", "cursor"],
    measured: None,

    read,
    deletes_line_ends: false,
    takes_context: false,
    takes_answers: false,
    denial: |_, reason| {
        json!({
            "permission": "deny",
            "user_message": format!("Countersign: {reason}"),
            "agent_message": reason,
        })
    },
    verdict: "/permission",
    permission: |event, approved, _| {
        Some(match (approved, &event.kind) {
            (Some(_), _) => json!({ "permission": "allow" }),
            (None, EventKind::Prompt) => json!({ "continue": true }),
            // It may be told to block when a hook prints nothing.
            (None, _) => json!({}),
        })
    },

    protected: &[
        ".cursor/cli.json",
        ".cursor/hooks.json",
        "Library/Application Support/Cursor",
        "etc/cursor",
    ],
    moved: None,
    settings: |places, scope| Some(settings(places, scope)),
    plan: |request, places| Ok(vec![FORM.plan(request, settings(places, request.scope))?]),
    limits_hook: false,

    inspect: |_, file, configuration| FORM.inspect(file, configuration),
    runs_managed_alone: false,
    switches: |_, _| Vec::new(),
    holes: &[
        KnownHole::Always("this is untested: the format follows Cursor's documentation"),
        KnownHole::Always(OTHER_HOOKS),
    ],
    canary: |command, directory| {
        json!({
            "conversation_id": "doctor", "generation_id": "doctor", "model": "doctor",
            "hook_event_name": "preToolUse", "cursor_version": "doctor", "workspace_roots": [directory],
            "tool_name": "Shell", "tool_input": {"command": command}, "tool_use_id": "doctor", "cwd": directory,
        })
    },
};

/// `preToolUse` sees every tool. The events for single kinds of tools would ask a second time.
static FORM: HookForm = HookForm {
    agent: "cursor",
    call: "preToolUse",
    reported: &[
        ("sessionStart", SESSION_SECONDS),
        ("sessionEnd", SESSION_SECONDS),
    ],
    matcher: None,
    texts: &[],
    command: "command",
    timeout: "timeout",
    unit_milliseconds: 1_000,
    block: Some(BlockMember {
        name: "failClosed",
        value: || true.into(),
        is_enough: false,
    }),
    setting: Some(VERSION_1),
};

/// The calls that a subagent makes reach the hook one by one.
const TOOLS: ToolTable = ToolTable {
    reading: "
        Glob Grep LS Read ReadLints SemanticSearch codebase_search file_search grep_search list_dir
        read_file
    ",
    web: "Fetch WebFetch WebSearch web_search",
    internal: "Task TodoWrite todo_write",
};

const EVENTS: EventTable = EventTable {
    session_start: "sessionStart",
    session_end: "sessionEnd",
    prompt: "beforeSubmitPrompt",
    turn_end: "",
    other: "
        afterAgentResponse afterAgentThought afterFileEdit afterMCPExecution afterShellExecution
        postToolUse postToolUseFailure preCompact stop subagentStop
    ",
};

fn read(mut members: EventMembers) -> Result<HookEvent, ReadProblem> {
    let name = members.text("hook_event_name")?;
    let session = match members.optional_text("conversation_id")? {
        Some(session) => Some(session),
        None => members.optional_text("session_id")?,
    };
    let directory = directory(&mut members)?;
    let kind = match name.as_str() {
        "preToolUse" => {
            let tool = members.text("tool_name")?;
            call(tool, members.object_or_text("tool_input")?, action)?
        }
        "beforeShellExecution" => call_with(&mut members, "Shell", "command")?,
        "beforeReadFile" => call_with(&mut members, "Read", "file_path")?,
        "beforeMCPExecution" => {
            let tool = format!("MCP:{}", members.text("tool_name")?);
            let mut input = members.object_or_text("tool_input")?;
            // Only the way to reach it shows which server it is.
            for name in ["url", "command"] {
                if let Some(text) = members.optional_text(name)? {
                    input.insert(format!("server {name}"), text.into());
                }
            }
            call(tool, input, action)?
        }
        name => EVENTS.kind(name)?,
    };
    Ok(HookEvent {
        name,
        session,
        turn: None,
        directory,
        kind,
    })
}

/// An event for one kind of tools, as a call of `tool` with the member `name` as its input.
fn call_with(members: &mut EventMembers, tool: &str, name: &str) -> Result<EventKind, ReadProblem> {
    let value = Value::String(members.text(name)?);
    let input = Map::from_iter([(name.to_owned(), value)]);
    call(tool.to_owned(), input, action)
}

/// `cwd` is missing or empty where the first of the workspace's directories is meant.
fn directory(members: &mut EventMembers) -> Result<Option<String>, ReadProblem> {
    let cwd = members.optional_text("cwd")?;
    let roots = members.left.remove("workspace_roots");
    let first = roots.as_ref().and_then(|roots| roots[0].as_str());
    let cwd = cwd.filter(|cwd| !cwd.is_empty());
    Ok(cwd.or_else(|| first.map(str::to_owned)))
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
        "AskQuestion" => question(input),
        tool => TOOLS.action(tool),
    })
}

fn settings(places: &InstallPlaces, scope: InstallScope) -> PathBuf {
    match scope {
        InstallScope::User => places.home.join(".cursor/hooks.json"),
        InstallScope::Project => places.directory.join(".cursor/hooks.json"),
        InstallScope::Managed => places.system(
            "etc/cursor/hooks.json",
            "Library/Application Support/Cursor/hooks.json",
        ),
    }
}
