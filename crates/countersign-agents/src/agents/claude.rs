//! Claude Code: `settings.json`.

use std::path::PathBuf;

use serde_json::json;

use super::shared::{hook_specific_denial, hook_specific_permission, read_event};
use crate::definition::{
    AgentDefinition, ENVIRONMENT, KnownHole, MovedDirectory, OTHER_HOOKS, SWITCHED_OFF,
};
use crate::event::{CellChange, ToolAction};
use crate::install::hooks::{BlockMember, HookForm, RequiredSetting, SettingNeed};
use crate::install::inspect::{AgentConfiguration, disables_hooks};
use crate::install::places::{InstallPlaces, InstallScope};
use crate::install::shell::SESSION_SECONDS;
use crate::members::{EventMembers, EventTable, ReadProblem, ToolTable, mcp};
use crate::question::question;

pub static CLAUDE: AgentDefinition = AgentDefinition {
    name: "claude",
    title: "Claude Code",
    programs: &["claude"],
    measured: Some("2.1.325"),

    read: |members| read_event(members, &EVENTS, action),
    deletes_line_ends: true,
    takes_context: true,
    takes_answers: true,
    denial: hook_specific_denial,
    verdict: "/hookSpecificOutput/permissionDecision",
    permission: hook_specific_permission,

    protected: &[
        ".claude.json",
        ".claude/hooks",
        ".claude/settings.json",
        ".claude/settings.local.json",
        "Library/Application Support/ClaudeCode",
        "etc/claude-code",
    ],
    moved: Some(MovedDirectory {
        variable: "CLAUDE_CONFIG_DIR",
        below: "",
        usual: ".claude",
    }),
    settings: |places, scope| Some(settings(places, scope)),
    plan: |request, places| Ok(vec![FORM.plan(request, settings(places, request.scope))?]),
    limits_hook: false,

    inspect: |_, file, configuration| FORM.inspect(file, configuration),
    runs_managed_alone: true,
    switches,
    holes: &[
        KnownHole::Always(
            "if the shell around the hook is killed, versions without onFailure go ahead with the call",
        ),
        KnownHole::UnlessManaged(SWITCHED_OFF),
        KnownHole::UnlessManaged(OTHER_HOOKS),
        KnownHole::Always(ENVIRONMENT),
    ],
    canary: |command, directory| {
        json!({
            "session_id": "doctor", "transcript_path": "/dev/null", "cwd": directory, "permission_mode": "default",
            "hook_event_name": "PreToolUse", "tool_name": "Bash",
            "tool_input": {"command": command, "description": "Canary"}, "tool_use_id": "doctor",
        })
    },
};

static FORM: HookForm = HookForm {
    agent: "claude",
    call: "PreToolUse",
    reported: &[
        ("SessionStart", SESSION_SECONDS),
        ("SessionEnd", SESSION_SECONDS),
        ("UserPromptSubmit", SESSION_SECONDS),
    ],
    matcher: Some("*"),
    texts: &[("type", "command")],
    command: "command",
    timeout: "timeout",
    unit_milliseconds: 1_000,
    // Old versions do not know it: the command guards itself.
    block: Some(BlockMember {
        name: "onFailure",
        value: || "block".into(),
        is_enough: true,
    }),
    setting: Some(RequiredSetting {
        path: &[],
        name: "allowManagedHooksOnly",
        need: SettingNeed::TrueIfManaged,
    }),
};

/// The calls that a subagent makes reach the hook one by one.
const TOOLS: ToolTable = ToolTable {
    reading: "
        BashOutput Glob Grep LS LSP ListMcpResourcesTool NotebookRead Read TaskOutput ToolSearch
    ",
    web: "WebFetch WebSearch",
    internal: "
        Agent EnterPlanMode KillShell StructuredOutput Task TaskCreate TaskGet TaskList
        TaskStop TaskUpdate TodoRead TodoWrite
    ",
};

const EVENTS: EventTable = EventTable {
    session_start: "SessionStart",
    session_end: "SessionEnd",
    prompt: "UserPromptSubmit",
    turn_end: "",
    other: "
        Notification PostToolUse PostToolUseFailure PreCompact Stop SubagentStart SubagentStop
    ",
};

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
        "AskUserQuestion" => question(input),
        tool => mcp(tool).unwrap_or_else(|| TOOLS.action(tool)),
    })
}

fn settings(places: &InstallPlaces, scope: InstallScope) -> PathBuf {
    match scope {
        InstallScope::User => {
            let directory = places.own("CLAUDE_CONFIG_DIR", ".claude");
            directory.join("settings.json")
        }
        InstallScope::Project => places.directory.join(".claude/settings.json"),
        InstallScope::Managed => places.system(
            "etc/claude-code/managed-settings.json",
            "Library/Application Support/ClaudeCode/managed-settings.json",
        ),
    }
}

fn switches(places: &InstallPlaces, configuration: &AgentConfiguration) -> Vec<String> {
    let managed = configuration.is_managed();
    let mut found = Vec::new();
    for settings in &configuration.settings {
        let path = settings.path.display();
        let in_policy = settings.scope == InstallScope::Managed;
        if settings.content["disableAllHooks"] == true && (in_policy || !managed) {
            found.push(format!("{path} has disableAllHooks"));
        }
        if in_policy && settings.content["allowManagedHooksOnly"] == true && !managed {
            found.push(format!(
                "{path} has allowManagedHooksOnly, and our hook is not in it; use install --managed"
            ));
        }
    }
    // The user's own file in this project, which is not shared.
    let local = places.directory.join(".claude/settings.local.json");
    if !managed && disables_hooks(&local) {
        found.push(format!("{} has disableAllHooks", local.display()));
    }
    found
}
