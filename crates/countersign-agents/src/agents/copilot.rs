//! Copilot CLI: a file of our own in a directory of hooks. The policy of the system has the same
//! form. The events have no name: the members show which one it is.

use std::path::PathBuf;

use serde_json::json;

use crate::definition::{
    AgentDefinition, KnownHole, MovedDirectory, OTHER_HOOKS, SUSPENDED, SWITCHED_OFF,
};
use crate::event::{HookEvent, ToolAction};
use crate::install::hooks::{HookForm, VERSION_1};
use crate::install::inspect::{AgentConfiguration, disables_hooks};
use crate::install::places::{InstallPlaces, InstallScope};
use crate::install::shell::SESSION_SECONDS;
use crate::members::{EventMembers, EventTable, ReadProblem, ToolTable, call};
use crate::question::question;

pub static COPILOT: AgentDefinition = AgentDefinition {
    name: "copilot",
    title: "Copilot CLI",
    programs: &["copilot"],
    measured: Some("1.0.102"),

    read,
    deletes_line_ends: false,
    takes_context: false,
    takes_answers: false,
    denial: |_, reason| json!({ "permissionDecision": "deny", "permissionDecisionReason": reason }),
    verdict: "/permissionDecision",
    permission: |_, approved, _| approved.map(|_| json!({ "permissionDecision": "allow" })),

    protected: &[
        ".copilot/config.json",
        ".copilot/hooks",
        ".copilot/settings.json",
        ".github/copilot",
        ".github/hooks",
        "etc/github-copilot",
    ],
    moved: Some(MovedDirectory {
        variable: "COPILOT_HOME",
        below: "",
        usual: ".copilot",
    }),
    settings: |places, scope| Some(settings(places, scope)),
    plan: |request, places| Ok(vec![FORM.plan(request, settings(places, request.scope))?]),
    limits_hook: false,

    inspect: |_, file, configuration| FORM.inspect(file, configuration),
    runs_managed_alone: false,
    switches,
    holes: &[
        KnownHole::Always(SUSPENDED),
        KnownHole::UnlessManaged(SWITCHED_OFF),
        KnownHole::Always(OTHER_HOOKS),
    ],
    canary: |command, directory| {
        json!({
            "sessionId": "doctor", "timestamp": 1_767_225_600_000_u64, "cwd": directory, "toolName": "bash",
            "toolArgs": {"command": command, "description": "Canary"},
        })
    },
};

static FORM: HookForm = HookForm {
    agent: "copilot",
    call: "preToolUse",
    reported: &[
        ("sessionStart", SESSION_SECONDS),
        ("sessionEnd", SESSION_SECONDS),
    ],
    matcher: None,
    texts: &[("type", "command")],
    command: "bash",
    timeout: "timeoutSec",
    unit_milliseconds: 1_000,
    block: None,
    setting: Some(VERSION_1),
};

/// The calls that a subagent makes reach the hook one by one. The tools of MCP servers, whose names
/// have the server's before a dash, could do anything.
const TOOLS: ToolTable = ToolTable {
    reading: "
        fetch_copilot_cli_documentation glob grep list_agents list_bash read_agent read_bash rg view
    ",
    web: "web_fetch web_search",
    internal: "report_intent skill stop_bash task task_complete update_todo",
};

const EVENTS: EventTable = EventTable {
    session_start: "sessionStart",
    session_end: "sessionEnd",
    prompt: "userPromptSubmitted",
    turn_end: "",
    other: "agentStop errorOccurred postToolUse",
};

/// Members that only one event has, in the order in which they count: `sessionStart` may have a
/// prompt too.
const MARKS: [(&str, &str); 9] = [
    ("toolResult", "postToolUse"),
    ("toolError", "postToolUse"),
    ("hookName", "permissionRequest"),
    ("toolName", "preToolUse"),
    ("source", "sessionStart"),
    ("prompt", "userPromptSubmitted"),
    ("stopReason", "agentStop"),
    ("reason", "sessionEnd"),
    ("error", "errorOccurred"),
];

fn read(mut members: EventMembers) -> Result<HookEvent, ReadProblem> {
    let session = members.optional_text("sessionId")?;
    let directory = members.optional_text("cwd")?;
    let mark = (MARKS.iter()).find(|(member, _)| members.left.contains_key(*member));
    let (_, name) = mark.ok_or("nothing in it says which event it is; update countersign")?;
    let kind = match *name {
        "preToolUse" => {
            let tool = members.text("toolName")?;
            call(tool, members.object_or_text("toolArgs")?, action)?
        }
        name => EVENTS.kind(name)?,
    };
    Ok(HookEvent {
        name: (*name).to_owned(),
        session,
        turn: None,
        directory,
        kind,
    })
}

fn action(tool: &str, input: &mut EventMembers) -> Result<ToolAction, ReadProblem> {
    Ok(match tool {
        "bash" => ToolAction::Command {
            command: input.text("command")?,
            directory: None,
            background: match input.optional_text("mode")?.as_deref() {
                None | Some("sync") => false,
                Some("async") => true,
                Some(_) => return Err(input.expected("mode", "sync or async")),
            },
        },
        "create" => ToolAction::Write {
            path: input.text("path")?,
            content: input.optional_text("file_text")?.unwrap_or_default(),
        },
        "edit" => ToolAction::Replace {
            path: input.text("path")?,
            edits: vec![input.replacement("old_str", "new_str", "replace_all")?],
        },
        "apply_patch" => ToolAction::Patch {
            patch: (input.text_of(&["patch", "input", "command"])?)
                .ok_or_else(|| input.expected("patch", "a text"))?,
        },
        "ask_user" => question(input),
        tool => TOOLS.action(tool),
    })
}

fn home(places: &InstallPlaces) -> PathBuf {
    places.own("COPILOT_HOME", ".copilot")
}

fn settings(places: &InstallPlaces, scope: InstallScope) -> PathBuf {
    let directory = match scope {
        InstallScope::User => home(places).join("hooks"),
        InstallScope::Project => places.repository().join(".github/hooks"),
        InstallScope::Managed => places.system.join("etc/github-copilot/policy.d"),
    };
    directory.join("countersign.json")
}

fn switches(places: &InstallPlaces, configuration: &AgentConfiguration) -> Vec<String> {
    if configuration.is_managed() {
        return Vec::new();
    }
    let home = home(places);
    let project = places.repository().join(".github");
    let mut files = vec![
        home.join("config.json"),
        home.join("settings.json"),
        project.join("copilot/settings.json"),
        project.join("copilot/settings.local.json"),
    ];
    for directory in [home.join("hooks"), project.join("hooks")] {
        let entries = directory.read_dir().into_iter().flatten().flatten();
        let entries = entries.map(|entry| entry.path());
        files.extend(entries.filter(|path| path.extension().is_some_and(|name| name == "json")));
    }
    let off = files.iter().filter(|path| disables_hooks(path));
    off.map(|path| format!("{} has disableAllHooks", path.display()))
        .collect()
}
