//! opencode: a plugin of our own, since it has no hooks that run a command. So the form of the
//! events is our own too.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::definition::{AgentDefinition, KnownHole, MovedDirectory};
use crate::event::{EventKind, HookEvent, MatchCount, TextReplacement, ToolAction};
use crate::install::file::{self, FileChange, InstallRefusal};
use crate::install::hooks::InstallRequest;
use crate::install::inspect::{InstalledHook, SettingsFile, unusable};
use crate::install::places::{InstallPlaces, InstallScope, variable};
use crate::install::shell::command_of;
use crate::members::{EventMembers, EventTable, ReadProblem, ToolTable, call};
use crate::question::question;

pub static OPENCODE: AgentDefinition = AgentDefinition {
    name: "opencode",
    title: "opencode",
    programs: &["opencode"],
    measured: Some("1.18.33"),

    read,
    deletes_line_ends: false,
    takes_context: false,
    takes_answers: false,
    denial: |_, reason| json!({ "decision": "deny", "reason": reason }),
    verdict: "/decision",
    // Our own plugin goes on after nothing else.
    permission: |_, _, _| Some(json!({ "decision": "allow" })),

    protected: &[
        ".config/opencode",
        ".opencode/plugin",
        ".opencode/plugins",
        "etc/opencode",
        "opencode.json",
        "opencode.jsonc",
    ],
    moved: Some(MovedDirectory {
        variable: "XDG_CONFIG_HOME",
        below: "opencode",
        usual: ".config/opencode",
    }),
    settings,
    plan,
    limits_hook: true,

    inspect: |_, file, configuration| {
        configuration.installed.extend(installed(file));
        Ok(())
    },
    runs_managed_alone: false,
    switches: |_, _| switches(),
    holes: &[KnownHole::Always(
        "with --pure or OPENCODE_PURE=1 the plugin is not loaded, and nothing needs approval",
    )],
    canary: |command, directory| {
        json!({
            "event": "tool.execute.before", "sessionID": "doctor", "callID": "doctor", "tool": "bash",
            "args": {"command": command, "description": "Canary"}, "directory": directory,
        })
    },
};

const PLUGIN: &str = include_str!("opencode.js");
/// The beginning of every plugin that was ever written here.
const MARK: &str = "// Countersign: ";

/// The calls that a subagent makes reach the hook one by one.
const TOOLS: ToolTable = ToolTable {
    reading: "glob grep list lsp read",
    web: "codesearch webfetch websearch",
    internal: "invalid skill task todoread todowrite",
};

const EVENTS: EventTable = EventTable {
    session_start: "session.created",
    session_end: "session.deleted",
    prompt: "chat.message",
    turn_end: "",
    other: "session.error session.idle",
};

fn read(mut members: EventMembers) -> Result<HookEvent, ReadProblem> {
    let name = members.text("event")?;
    let session = members.optional_text("sessionID")?;
    let directory = members.optional_text("directory")?;
    let kind = match name.as_str() {
        "tool.execute.before" => {
            let tool = members.text("tool")?;
            call(tool, members.object("args")?, action)?
        }
        name => match EVENTS.kind(name)? {
            // A session that is deleted does not come back; the end of the program is not told.
            EventKind::SessionEnd => EventKind::SessionClose,
            kind => kind,
        },
    };
    Ok(HookEvent {
        name,
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
            directory: input.optional_text("workdir")?,
            background: false,
        },
        "write" => ToolAction::Write {
            path: input.text("filePath")?,
            content: input.text("content")?,
        },
        "edit" => {
            let path = input.text("filePath")?;
            let edit = replacement(input)?;
            // It takes an empty old text for the whole file.
            if edit.old.is_empty() {
                let content = edit.new;
                ToolAction::Write { path, content }
            } else {
                let edits = vec![edit];
                ToolAction::Replace { path, edits }
            }
        }
        "multiedit" => {
            let path = input.text("filePath")?;
            let edits = (input.list("edits")?.into_iter())
                .map(|mut edit| replacement(&mut edit))
                .collect::<Result<_, _>>()?;
            ToolAction::Replace { path, edits }
        }
        "apply_patch" | "patch" => ToolAction::Patch {
            patch: input.text("patchText")?,
        },
        "question" => question(input),
        tool => TOOLS.action(tool),
    })
}

/// It hands both texts to `String.replaceAll`, to which a dollar sign may mean another text.
fn replacement(input: &mut EventMembers) -> Result<TextReplacement, ReadProblem> {
    let edit = input.replacement("oldString", "newString", "replaceAll")?;
    if edit.occurrences == MatchCount::All && edit.new.contains('$') {
        let expected = "no $ together with replaceAll; replace one after the other";
        return Err(input.expected("newString", expected));
    }
    Ok(edit)
}

/// opencode loads every script in `plugin` and `plugins`. It has no place that withstands its own
/// switches.
fn settings(places: &InstallPlaces, scope: InstallScope) -> Option<PathBuf> {
    let directory = match scope {
        InstallScope::User => places.own("XDG_CONFIG_HOME", ".config").join("opencode"),
        InstallScope::Project => places.repository().join(".opencode"),
        InstallScope::Managed => return None,
    };
    Some(directory.join("plugin/countersign.js"))
}

fn plan(
    request: &InstallRequest,
    places: &InstallPlaces,
) -> Result<Vec<FileChange>, InstallRefusal> {
    let path = settings(places, request.scope).ok_or_else(|| {
        let message = "opencode has no settings that withstand its own switches (OPENCODE_PURE, --pure), so there is \
                       nothing to manage; install it for each user";
        InstallRefusal::Usage(message.to_owned())
    })?;
    let before = file::read(&path)?;
    if before.as_ref().is_some_and(|text| !text.starts_with(MARK)) {
        return Err(InstallRefusal::Malformed(format!(
            "{} is not Countersign's plugin; move it away first. Nothing was changed",
            path.display()
        )));
    }
    let hook = &request.hook;
    let plugin = || {
        let program = hook.program.to_string_lossy().into_owned();
        let (call, session) = (hook.words(true), hook.words(false));
        filled(&program.into(), &call.into(), &session.into())
    };
    let after = (!request.remove).then(plugin);
    Ok(vec![FileChange {
        path,
        before,
        after,
        public: false,
    }])
}

fn filled(program: &Value, call: &Value, session: &Value) -> String {
    PLUGIN
        .replace("\"PROGRAM\"", &program.to_string())
        .replace("\"CALL\"", &call.to_string())
        .replace("\"SESSION\"", &session.to_string())
}

/// Our plugin, if the file is one.
fn installed(file: &SettingsFile<String>) -> Option<InstalledHook> {
    let text = &file.content;
    if !text.starts_with(MARK) {
        return None;
    }
    let constant = |name: &str| {
        let mut lines = text.lines();
        let value = lines.find_map(|line| line.strip_prefix(&format!("const {name} = ")))?;
        serde_json::from_str::<Value>(value).ok()
    };
    let program = constant("PROGRAM_PATH").unwrap_or_default();
    let call = constant("CALL_ARGUMENTS").unwrap_or_default();
    let session = constant("SESSION_ARGUMENTS").unwrap_or_default();
    let path = Path::new(program.as_str().unwrap_or_default());
    let mut problems: Vec<_> = unusable(path).into_iter().collect();
    if filled(&program, &call, &session) != *text {
        problems.push("it was written by another version, or was changed".to_owned());
    }
    let command = command_of(&json!({ "command": program, "args": call }));
    Some(InstalledHook {
        scope: file.scope,
        path: file.path.clone(),
        command: command.unwrap_or_default(),
        problems,
    })
}

fn switches() -> Vec<String> {
    let pure = variable("OPENCODE_PURE");
    let pure = pure.filter(|value| !["0", "false"].iter().any(|off| value == Path::new(off)));
    let found = pure.map(|_| "OPENCODE_PURE is set here, so opencode loads no plugins".to_owned());
    found.into_iter().collect()
}
