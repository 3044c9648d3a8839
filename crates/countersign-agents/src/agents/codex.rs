//! Codex CLI: `hooks.json`, its trust in `config.toml`, and `requirements.toml` for everybody. It
//! reads files with commands, so few of its tools only read.

mod document;
mod managed;
mod trust;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toml_edit::{DocumentMut, Item};

use super::shared::{hook_specific_denial, hook_specific_permission, read_event};
use crate::definition::{
    AgentDefinition, KnownHole, MovedDirectory, OTHER_HOOKS, SHELL_KILLED, SUSPENDED, SWITCHED_OFF,
};
use crate::event::ToolAction;
use crate::install::file::{self, FileChange, InstallRefusal};
use crate::install::hooks::{HookForm, InstallRequest};
use crate::install::inspect::{AgentConfiguration, SettingsFile};
use crate::install::places::{InstallPlaces, InstallScope, variable};
use crate::install::shell::SESSION_SECONDS;
use crate::members::{EventMembers, EventTable, ReadProblem, ToolTable, mcp};
use crate::question::question;

/// Codex shortens it to this, and its trust is in the shortened form.
const SESSION_END_SECONDS: u64 = 3;

pub static CODEX: AgentDefinition = AgentDefinition {
    name: "codex",
    title: "Codex CLI",
    programs: &["codex"],
    measured: Some("0.166.0"),

    read: |members| read_event(members, &EVENTS, action),
    deletes_line_ends: false,
    takes_context: true,
    takes_answers: false,
    denial: hook_specific_denial,
    verdict: "/hookSpecificOutput/permissionDecision",
    // It takes an explicit allow for a failure.
    permission: |event, _, context| hook_specific_permission(event, None, context),

    protected: &[".codex/config.toml", ".codex/hooks.json", "etc/codex"],
    moved: Some(MovedDirectory {
        variable: "CODEX_HOME",
        below: "",
        usual: ".codex",
    }),
    settings: |places, scope| Some(settings(places, scope)),
    plan,
    limits_hook: false,

    inspect,
    runs_managed_alone: true,
    switches,
    holes: &[
        KnownHole::Always(SUSPENDED),
        KnownHole::Always(SHELL_KILLED),
        KnownHole::Always(
            "input to an approved interactive program (write_stdin) needs no approval",
        ),
        KnownHole::UnlessManaged(SWITCHED_OFF),
        KnownHole::UnlessManaged(OTHER_HOOKS),
    ],
    canary: |command, directory| {
        json!({
            "session_id": "doctor", "turn_id": "doctor", "transcript_path": null, "cwd": directory,
            "hook_event_name": "PreToolUse", "model": "doctor", "permission_mode": "default",
            "tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "doctor",
        })
    },
};

static FORM: HookForm = HookForm {
    agent: "codex",
    call: "PreToolUse",
    reported: &[
        ("SessionStart", SESSION_SECONDS),
        ("SessionEnd", SESSION_END_SECONDS),
        ("UserPromptSubmit", SESSION_SECONDS),
        ("Stop", SESSION_SECONDS),
    ],
    matcher: Some("*"),
    texts: &[("type", "command")],
    command: "command",
    timeout: "timeout",
    unit_milliseconds: 1_000,
    block: None,
    setting: None,
};

/// The calls that a subagent makes reach the hook one by one.
const TOOLS: ToolTable = ToolTable {
    reading: "grep_files list_dir read_file view_image",
    web: "web_search",
    internal: "
        collaborationspawn_agent collaborationwait collaborationwait_agent spawn_agent update_plan
        wait
    ",
};

const EVENTS: EventTable = EventTable {
    session_start: "SessionStart",
    session_end: "SessionEnd",
    prompt: "UserPromptSubmit",
    turn_end: "Interrupt Stop",
    other: "PostCompact PostToolUse PreCompact SubagentStart SubagentStop",
};

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
        "request_user_input" => question(input),
        tool => mcp(tool).unwrap_or_else(|| TOOLS.action(tool)),
    })
}

/// Codex resolves links in `CODEX_HOME`, but not in the default.
fn home(places: &InstallPlaces) -> PathBuf {
    match variable("CODEX_HOME") {
        Some(path) => path.canonicalize().unwrap_or(path),
        None => places.home.join(".codex"),
    }
}

fn settings(places: &InstallPlaces, scope: InstallScope) -> PathBuf {
    match scope {
        InstallScope::User => home(places).join("hooks.json"),
        InstallScope::Project => places.directory.join(".codex/hooks.json"),
        InstallScope::Managed => places.system.join("etc/codex/requirements.toml"),
    }
}

fn plan(
    request: &InstallRequest,
    places: &InstallPlaces,
) -> Result<Vec<FileChange>, InstallRefusal> {
    let path = settings(places, request.scope);
    if request.scope == InstallScope::Managed {
        let entries = FORM.entries(&request.hook);
        return Ok(vec![managed::plan(request, path, &entries)?]);
    }
    let hooks = FORM.plan(request, path)?;
    // It reads no comments, and then has no hooks at all.
    if let Some(Err(error)) = hooks.after.as_deref().map(serde_json::from_str::<Value>) {
        return Err(InstallRefusal::Malformed(format!(
            "{} is not plain JSON, so Codex ignores all of it: {error}. Nothing was changed",
            hooks.path.display()
        )));
    }
    let trust = trust::plan(&FORM, &hooks, home(places).join("config.toml"))?;
    Ok(vec![hooks, trust])
}

fn inspect(
    places: &InstallPlaces,
    file: &SettingsFile<String>,
    configuration: &mut AgentConfiguration,
) -> Result<(), String> {
    let text = &file.content;
    if file.scope == InstallScope::Managed {
        let parsed: Result<Value, _> = toml::from_str(text);
        let settings = parsed.map_err(|error| error.message().to_owned())?;
        FORM.inspect_value(file, settings, configuration, |_, _| None);
        return Ok(());
    }
    let settings = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let config = home(places).join("config.toml");
    FORM.inspect_value(file, settings, configuration, |settings, found| {
        trust::distrust(&FORM, &file.path, settings, found, &config)
    });
    Ok(())
}

fn switches(places: &InstallPlaces, configuration: &AgentConfiguration) -> Vec<String> {
    if configuration.is_managed() {
        return Vec::new();
    }
    let off = |path: &Path| {
        let text = file::read(path).ok().flatten()?;
        let document: DocumentMut = text.parse().ok()?;
        let hooks = document.get("features")?.get("hooks");
        (hooks.and_then(Item::as_bool) == Some(false))
            .then(|| format!("{} has features.hooks = false", path.display()))
    };
    let mut found = Vec::new();
    found.extend(off(&home(places).join("config.toml")));
    found.extend(off(&places.directory.join(".codex/config.toml")));
    let policy = configuration.managed();
    let policy = policy.filter(|policy| policy.content["allow_managed_hooks_only"] == true);
    found.extend(policy.map(|policy| {
        format!(
            "{} has allow_managed_hooks_only, and our hook is not in it; use install --managed",
            policy.path.display()
        )
    }));
    found
}
