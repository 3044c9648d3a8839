//! Gemini CLI: `settings.json`. Its time-outs are in milliseconds.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::definition::{
    AgentDefinition, ENVIRONMENT, KnownHole, MovedDirectory, OTHER_HOOKS, SHELL_KILLED, SUSPENDED,
};
use crate::event::{HookEvent, MatchCount, TextReplacement, ToolAction};
use crate::install::hooks::{HookForm, RequiredSetting, SettingNeed};
use crate::install::inspect::AgentConfiguration;
use crate::install::places::{InstallPlaces, InstallScope, variable};
use crate::install::shell::SESSION_SECONDS;
use crate::members::{EventMembers, EventTable, ReadProblem, ToolTable, call, common};
use crate::question::question;

pub static GEMINI: AgentDefinition = AgentDefinition {
    name: "gemini",
    title: "Gemini CLI",
    programs: &["gemini"],
    measured: Some("0.61.0"),

    read,
    deletes_line_ends: false,
    takes_context: false,
    takes_answers: false,
    denial: |_, reason| json!({ "decision": "deny", "reason": reason }),
    verdict: "/decision",
    permission: |_, approved, _| approved.map(|_| json!({ "decision": "allow" })),

    protected: &[
        ".gemini/.env",
        ".gemini/settings.json",
        "Library/Application Support/GeminiCli",
        "etc/gemini-cli",
    ],
    moved: Some(MovedDirectory {
        variable: "GEMINI_CLI_HOME",
        below: ".gemini",
        usual: ".gemini",
    }),
    settings: |places, scope| Some(settings(places, scope)),
    plan: |request, places| Ok(vec![FORM.plan(request, settings(places, request.scope))?]),
    limits_hook: false,

    inspect: |_, file, configuration| FORM.inspect(file, configuration),
    runs_managed_alone: false,
    switches,
    holes: &[
        KnownHole::Always(SUSPENDED),
        KnownHole::Always(SHELL_KILLED),
        KnownHole::Always("a project can disable the hook by name, even a managed one"),
        KnownHole::UnlessManaged(
            "a project can switch all hooks off with hooksConfig, unless they are managed",
        ),
        KnownHole::Always(OTHER_HOOKS),
        KnownHole::Always(ENVIRONMENT),
    ],
    canary: |command, directory| {
        json!({
            "session_id": "doctor", "transcript_path": "", "cwd": directory, "hook_event_name": "BeforeTool",
            "timestamp": "2026-01-01T00:00:00.000Z", "tool_name": "run_shell_command",
            "tool_input": {"command": command},
        })
    },
};

static FORM: HookForm = HookForm {
    agent: "gemini",
    call: "BeforeTool",
    reported: &[
        ("SessionStart", SESSION_SECONDS),
        ("SessionEnd", SESSION_SECONDS),
    ],
    matcher: Some(".*"),
    texts: &[("type", "command"), ("name", "countersign")],
    command: "command",
    timeout: "timeout",
    unit_milliseconds: 1,
    block: None,
    setting: Some(RequiredSetting {
        path: &["hooksConfig"],
        name: "enabled",
        need: SettingNeed::TrueIfManaged,
    }),
};

const TOOLS: ToolTable = ToolTable {
    reading: "
        get_internal_docs glob grep_search list_directory read_file read_many_files
        search_file_content
    ",
    web: "google_web_search web_fetch",
    internal: "
        activate_skill complete_task enter_plan_mode update_topic write_todos
    ",
};

const EVENTS: EventTable = EventTable {
    session_start: "SessionStart",
    session_end: "SessionEnd",
    prompt: "BeforeAgent",
    turn_end: "",
    other: "
        AfterAgent AfterModel AfterTool BeforeModel BeforeToolSelection Notification PreCompress
    ",
};

fn read(members: EventMembers) -> Result<HookEvent, ReadProblem> {
    common(members, |name, members| match name {
        "BeforeTool" => {
            let tool = members.text("tool_name")?;
            let input = members.object("tool_input")?;
            if !members.left.contains_key("mcp_context") {
                return call(tool, input, action);
            }
            let mcp = server_and_tool(members)?;
            call(tool, input, |_, _| Ok(mcp))
        }
        name => EVENTS.kind(name),
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
            let is_for_all = input.flag("allow_multiple")?;
            let expected = input.number("expected_replacements")?;
            ToolAction::Replace {
                path: input.text("file_path")?,
                edits: vec![TextReplacement {
                    old: input.text("old_string")?,
                    new: input.text("new_string")?,
                    occurrences: match expected {
                        _ if is_for_all => MatchCount::All,
                        Some(count) => MatchCount::Exactly(count),
                        None => MatchCount::One,
                    },
                }],
            }
        }
        "ask_user" => question(input),
        tool => TOOLS.action(tool),
    })
}

fn settings(places: &InstallPlaces, scope: InstallScope) -> PathBuf {
    match scope {
        InstallScope::User => {
            let home = variable("GEMINI_CLI_HOME").unwrap_or_else(|| places.home.clone());
            home.join(".gemini/settings.json")
        }
        InstallScope::Project => places.directory.join(".gemini/settings.json"),
        InstallScope::Managed => variable("GEMINI_CLI_SYSTEM_SETTINGS_PATH").unwrap_or_else(|| {
            places.system(
                "etc/gemini-cli/settings.json",
                "Library/Application Support/GeminiCli/settings.json",
            )
        }),
    }
}

/// A project can switch off a hook by its name even where the system's settings have it.
fn switches(_: &InstallPlaces, configuration: &AgentConfiguration) -> Vec<String> {
    let managed = configuration.managed();
    let is_pinned = managed.is_some_and(|it| it.content["hooksConfig"]["enabled"] == true);
    let mut found = Vec::new();
    for settings in &configuration.settings {
        let path = settings.path.display();
        let switches = &settings.content["hooksConfig"];
        if switches["enabled"] == false && !is_pinned {
            found.push(format!("{path} has hooksConfig.enabled: false"));
        }
        let disabled = switches["disabled"].as_array().into_iter().flatten();
        let mut disabled = disabled.filter_map(Value::as_str);
        if disabled.any(|name| name == "countersign" || name.contains(" hook gemini")) {
            found.push(format!("{path} has our hook in hooksConfig.disabled"));
        }
    }
    found
}
